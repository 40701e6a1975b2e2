/* The store: parameters in memory that many workers share, and runs that train them. All that an application calls.
 *
 * Minimal program: examples/line.c. A store is made, options are set by name, tables are declared (or a model and data are
 * named), a run trains, parameters are read. Several stores in one process are independent of one another. A store belongs to
 * one thread at a time, except where a function says otherwise.
 *
 * Calls return 0 or more, or a negative status (status.h) with a sentence in shmtrain_store_message. The library prints
 * nothing, never exits, and leaves the application's signals as they are. (A worker that is a process of its own answers
 * SIGBUS, for a mapped file that becomes shorter, with a sentence.) NULL where a call needs a name, a path, data, a struct of
 * the application's or a function is SHMTRAIN_E_USAGE; memory that a call is to fill, and the store itself, have to be there. */
#ifndef SHMTRAIN_STORE_H
#define SHMTRAIN_STORE_H

#include <shmtrain/option.h>
#include <shmtrain/arrays.h>
#include <shmtrain/collective.h>
#include <shmtrain/data_info.h>
#include <shmtrain/hooks.h>
#include <shmtrain/inspect.h>
#include <shmtrain/layer.h>
#include <shmtrain/model.h>
#include <shmtrain/plan.h>
#include <shmtrain/report.h>
#include <shmtrain/session.h>
#include <shmtrain/snapshot.h>
#include <shmtrain/status.h>
#include <shmtrain/validation.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* A worker: runs in a process (or thread) of its own until shmtrain_next returns 0. Returns 0 or a negative status. */
typedef int shmtrain_worker(shmtrain_session *s, void *arg);

/* What the application wants to hear while a run goes on; each may be NULL. Called on the application's thread, inside
 * shmtrain_store_run or _train, or inside shmtrain_store_step. May call what is allowed while a run goes on (see "runs for
 * event loops"); a call that fails in there is no failure of the run. */
struct shmtrain_listener {
    uint32_t size; /* sizeof(struct shmtrain_listener) */
    void *arg;
    void (*begin)(void *arg, const struct shmtrain_report *so_far); /* data is loaded, workers are about to start */
    void (*epoch)(void *arg, const struct shmtrain_report *so_far,
                  const struct shmtrain_epoch *epoch); /* one more epoch is done */
    void (*note)(void *arg, const char *line);         /* what deserves a line without being an error; no line break */
    void (*progress)(void *arg, const struct shmtrain_report *so_far,
                     const struct shmtrain_progress *now); /* about ten times a second while workers train; `now` is valid
                                                              during the call */
    void (*steps)(void *arg, const struct shmtrain_report *so_far,
                  const struct shmtrain_steps *steps); /* option log-every: so many more are done */
    void (*checkpoint)(
        void *arg, const struct shmtrain_report *so_far,
        const struct shmtrain_checkpoint *checkpoint); /* before a checkpoint is written, and when that has ended;
                                                                         `checkpoint` is valid during the call */
};

/* Makes a store with every option at its default. Errors: _MEMORY, _SYSTEM (no file descriptor is left). */
SHMTRAIN_API int shmtrain_store_create(struct shmtrain_store **out);

/* Frees it, its parameters and its data. NULL is fine. A run that was started in the background is stopped and waited for, and
 * its listeners are not called any more. Not inside of a listener. */
SHMTRAIN_API void shmtrain_store_destroy(struct shmtrain_store *store);

/* The sentence of the last failed call on this store; "" when there was none. Valid until the next call. While a run goes on:
 * of the last call that failed beside it. NULL: a sentence for the store that shmtrain_store_create could not make. */
SHMTRAIN_API const char *shmtrain_store_message(const struct shmtrain_store *store);

/* ---- configuration ---- */

/* Option number i, from 0; NULL behind the last. Any thread, any time. */
SHMTRAIN_API const struct shmtrain_option *shmtrain_option_at(size_t i);

/* Words that this option takes as its value, with '|' between, into `out` (`bytes` large, 0-terminated; 256 suffice):
 * "racy|atomic|locked|aggregate", "cores", with a letter for a number "ssp:S"; "" for an option that takes other values only.
 * Numbers, names and files, where it takes these, are not among them, nor are models that were offered. Any thread, any
 * time. */
SHMTRAIN_API void shmtrain_option_words(const struct shmtrain_option *option, char *out, size_t bytes);

/* A name for a point of the consistency space: what option `mode` takes, and what it stands for. */
struct shmtrain_mode {
    const char *name;     /* "ssp" */
    const char *form;     /* "ssp:S", with a letter for the number that it takes; without one, the name */
    const char *about;    /* what it does, in a few words */
    const char *known_as; /* in the literature */
    const char *axes;     /* the options that it is short for: "--write atomic --staleness S" */
    const char *number;   /* which of them its number is: "staleness", "quorum", "merge-every"; "": it takes none */
    const char *standard; /* the number where none is given, in words: "4"; "" */
};

/* Mode number i, from 0; NULL behind the last. Any thread, any time. */
SHMTRAIN_API const struct shmtrain_mode *shmtrain_mode_at(size_t i);

/* Sets an option by name; "" takes back what was set of a model's own. Errors: _USAGE, naming the option, what was given and what
 * is expected; nothing changes then. */
SHMTRAIN_API int shmtrain_store_set(struct shmtrain_store *store, const char *name, const char *value);

/* Sets every option whose environment variable is set. Errors: as above, naming the variable. */
SHMTRAIN_API int shmtrain_store_set_from_environment(struct shmtrain_store *store);

/* What is to be called on this thread from now on; copied; NULL: nothing. Errors: _USAGE (its size). */
SHMTRAIN_API int shmtrain_store_listen(struct shmtrain_store *store, const struct shmtrain_listener *listener);

/* What is to be called in the workers of runs from now on, see hooks.h; copied; NULL: nothing. Errors: _USAGE (a run is going
 * on). */
SHMTRAIN_API int shmtrain_store_hooks(struct shmtrain_store *store, const struct shmtrain_hooks *hooks);

/* ---- own worker functions ---- */

/* How many bytes of shared memory each worker of shmtrain_store_run may lend to collectives from now on (shmtrain_collective_lend of
 * <shmtrain/collective.h>); 0 at first. They are part of the store, which a run makes and accounts for, whether they are lent or not. Runs
 * with a name have none. Errors: _USAGE (beyond all memory; a run is going on). */
SHMTRAIN_API int shmtrain_store_lend(struct shmtrain_store *store, uint64_t bytes);

/* Declares a table of (rows, width) floats, zero at first; returns its number: 0, 1, ... Errors: _USAGE (name taken, size, more
 * than 8, after a run). */
SHMTRAIN_API int shmtrain_store_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width);

/* How many examples an epoch deals out, each exactly once. */
SHMTRAIN_API int shmtrain_store_examples(struct shmtrain_store *store, uint64_t n);

/* Trains with `worker` in every worker, for all epochs; returns when all have ended. A further run goes on with the
 * parameters that the one before left, and with the optimizer's state when it has the same optimizer (adam: in the same
 * family of modes, live or aggregate; ftrl: with the same rate, l1, l2 and beta); its epochs and its rate's schedule begin
 * anew. Errors: _USAGE, _MEMORY (with figures), _SYSTEM, _DIED (a worker, once more often than option max-respawns allows,
 * or a guest whose part is needed: which one, of what, at which piece of work; or one that stands still, as on-stall and
 * time-limit say), a worker's own, and _STOPPED is none: a run that shmtrain_store_stop ended returns 0. Blocks; listeners
 * are called meanwhile. */
SHMTRAIN_API int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg);

/* ---- runs for event loops ----
 *
 * Instead of a call that blocks: start, a descriptor to poll, a step that never blocks. The run is driven by a thread of the
 * library's own, which has all signals blocked and never waits for the application: workers train whether somebody steps or
 * not. Listeners are called from step, on the thread that calls it. Of begin, epochs, steps and notes none is lost, and they
 * come in their order, however late; of progress the newest is told.
 *
 * While a run goes on (until step has returned 0 or less; also in a listener of a call that blocks) a store takes these calls
 * only: _step, _fd, _stop, _read, _snapshot, _report, _look, _table_at, _model_at, _listen and _message, from the thread that
 * started it (_stop: from anywhere). The rest is refused with _USAGE. Several stores may run at once, each from its own thread or
 * all from one.
 *
 * A process that the application forks meanwhile has no part in the run: it may exec, exit, or destroy its copy of the store,
 * which does nothing to the run; but a _stop from there counts. */

/* As shmtrain_store_run and shmtrain_store_train, but returns at once; their errors are step's. Errors: _USAGE (a run is going
 * on), _MEMORY, _SYSTEM (no thread, no descriptor). */
SHMTRAIN_API int shmtrain_store_start(struct shmtrain_store *store, shmtrain_worker *worker, void *arg);
SHMTRAIN_API int shmtrain_store_start_training(struct shmtrain_store *store, const char *data);

/* A descriptor that is readable whenever step has something to do (poll, epoll, select). Owned by the store, valid from start
 * until step has returned 0 or less; -1 when nothing runs. */
SHMTRAIN_API int shmtrain_store_fd(const struct shmtrain_store *store);

/* Never blocks: calls listeners for what has happened. 1: the run goes on; 0: it has ended well (or there was none); negative:
 * it has ended with this status, the sentence is in shmtrain_store_message. */
SHMTRAIN_API int shmtrain_store_step(struct shmtrain_store *store);

/* ---- stores with a name ----
 *
 * With option `name`, the parameters of a run lie in /dev/shm under that name, and other processes of the same user may join
 * while the run goes on: as workers, on places that option `guests` keeps free, or as observers. The named store stays when the
 * run is over, until shmtrain_named_remove; a further run of the same handle under the same name takes its place. Whoever joins
 * uses a store of its own, made by shmtrain_store_create, whose tables and parameters are the named store's from then on: they
 * can be read, saved and evaluated, not written. A further run of that handle goes on from them, for itself. Where the data's
 * ids are no range but a list (shmtrain_store_feature_id), only the maker knows it: then parameters can be read here, and
 * saving and evaluating are _USAGE. */

/* Joins a named store, to look only. shmtrain_store_look says how the run goes: _DIED when it has failed, or its maker has
 * died. Errors: _AGAIN (its run is still being prepared: once more in a moment), _USAGE (no such store, not ours, another
 * version, damaged), _DIED (its run died before it began), _MEMORY, _SYSTEM; the store is as it was then. */
SHMTRAIN_API int shmtrain_store_observe(struct shmtrain_store *store, const char *name);

/* Joins a named store as option `workers` workers (by default: as many as there are cores and free places), which begin at
 * the next epoch, the first that the listener is told of; returns when the run is over or has been left (shmtrain_store_stop:
 * at the end of the epoch). `worker` NULL: the run's own model and data. In the live modes the run goes on without guests that
 * die or fail; in `aggregate` and with replicas it fails. Errors: _AGAIN (as above), _USAGE (as above; no free place; the run
 * needs a worker function, has ended, or keeps its data private), _DIED (the run has died or failed, or a worker of this
 * program), _MEMORY, _SYSTEM, and a worker's own. */
SHMTRAIN_API int shmtrain_store_join(struct shmtrain_store *store, const char *name, shmtrain_worker *worker, void *arg);

/* A named store of this user. */
struct shmtrain_named {
    char name[64];
    char model[32];  /* "": own worker functions */
    uint64_t bytes;  /* with its data, while it runs */
    int64_t made_at; /* seconds since 1970; 0: it says nothing of itself yet (or never did), or is not intact */
    int32_t pid;     /* of who made it */
    uint32_t in_use; /* 1: somebody has it open (told by a lock, not by the process number) */
    uint32_t intact; /* 0: no store of this version; it can be removed all the same */
    uint32_t workers, guests;
    uint32_t died; /* 1: its run has not ended, but who made it is gone */
    uint32_t reserved[7];
};

/* All of this user's named stores, by name: (n) into *out, to be freed. Returns n, or _SYSTEM, _MEMORY. */
SHMTRAIN_API int shmtrain_named_list(struct shmtrain_named **out);

/* Removes a named store. One that is in use is refused unless `force`; who has it open keeps its memory. The sentence of an
 * error goes into `message` (`bytes` large). Errors: _USAGE, _SYSTEM. */
SHMTRAIN_API int shmtrain_named_remove(const char *name, int force, char *message, size_t bytes);

/* ---- models and data ---- */

/* Offers a model of your own, to be chosen by option `model`. It is copied; its texts must outlive the store. Errors: _USAGE
 * (its size, no name, name taken). */
SHMTRAIN_API int shmtrain_store_offer(struct shmtrain_store *store, const struct shmtrain_model *model);

/* Offers a layer of your own, for the texts of networks (option `net`), beside the built-in ones. It is copied; its texts and functions
 * must outlive the store. A model that uses it is saved with its name: whoever loads that file, or joins a run of the model, has to
 * offer the layer, too. Errors: _USAGE (its size, a name that is none or taken, an argument, a trait or a function that is wrong or
 * missing, a reserved member that is set, more than 16 layers), _MEMORY. */
SHMTRAIN_API int shmtrain_store_offer_layer(struct shmtrain_store *store, const struct shmtrain_layer_kind *kind);

/* A model, built in or offered, from 0; NULL behind the last. */
SHMTRAIN_API const struct shmtrain_model *shmtrain_store_model_at(const struct shmtrain_store *store, size_t i);

/* Several files of text as one: a name that every call takes as data, and option `valid`, into *out, to be freed. Their rows
 * come in the order of the files. Each may be packed (gzip, bzip2, xz, zstd, lz4, compress), a FIFO or the like, or "-",
 * standard input; what comes through a pipe is read once, so a further run needs it once more. Errors: _USAGE (n is 0; a name
 * that is empty, or has a line break in it), _MEMORY. Any thread, any time. */
SHMTRAIN_API int shmtrain_data_files(const char *const *names, size_t n, char **out);

/* Loads the data (a path, "-", several files, "builtin:sparse", "builtin:line", or "arrays:NAME": see arrays.h) with all workers,
 * trains the model on it from zero, evaluates after each epoch. The store's tables become the model's; tables that were declared
 * before are gone.
 * Errors: as shmtrain_store_run, _DATA with file:line:column, and _NUMBERS when a loss or the parameters are no finite numbers.
 * A trace, record or metrics that could not be written are no error: a note tells, and `unwritten` of the report. */
SHMTRAIN_API int shmtrain_store_train(struct shmtrain_store *store, const char *data);

/* Reads `data` for worker functions of your own, into *out, to be freed by shmtrain_data_free, before or after the store. Workers
 * find it at the same place in memory, be they processes or threads; nobody writes to it. `like`: data that was read so before, and
 * stays until this one is freed: feature j is then the same in both, as in training and test data; NULL: the features are its own.
 * Blocks. Errors: as shmtrain_store_train's for the data; _USAGE (`rows`). */
SHMTRAIN_API int shmtrain_store_read_data(struct shmtrain_store *store, const char *data, enum shmtrain_rows rows,
                                          const struct shmtrain_data *like, const struct shmtrain_data **out);
SHMTRAIN_API void shmtrain_data_free(const struct shmtrain_data *data); /* NULL is fine */

/* What `data` is like, into *out. Loads it, and trains nothing. Errors: as shmtrain_store_train's for the data. */
SHMTRAIN_API int shmtrain_store_data_info_sized(struct shmtrain_store *store, const char *data, struct shmtrain_data_info *out,
                                                uint64_t out_bytes);
static inline int shmtrain_store_data_info(struct shmtrain_store *store, const char *data, struct shmtrain_data_info *out) {
    return shmtrain_store_data_info_sized(store, data, out, sizeof *out);
}

/* Loads the data, and writes it to `path` as a cache: a file that _train, _evaluate and the others read like `data`, and map
 * instead of parsing it. Atomically: the file is whole or as it was before. Errors: as shmtrain_store_train's for the data;
 * _USAGE (`path` is read as the data), _SYSTEM (it cannot be written). */
SHMTRAIN_API int shmtrain_store_convert(struct shmtrain_store *store, const char *data, const char *path);

/* Writes the model to a file (safetensors), atomically: the file is whole or as it was before. After a run. */
SHMTRAIN_API int shmtrain_store_save(struct shmtrain_store *store, const char *path);

/* The same in another format: "safetensors" (what _save writes, and _load reads whole), "liblinear" (text that
 * liblinear-predict takes, and _load) or "csv" (feature,weight[,class]). The text formats are for the built-in models. Errors:
 * as _save; _USAGE: there is no such format, or it cannot hold this model: `path` is as it was. */
SHMTRAIN_API int shmtrain_store_save_as(struct shmtrain_store *store, const char *path, const char *format);

/* Whether a model that is trained with the store's options can be saved so, as far as that is known before its data. Errors:
 * _USAGE. */
SHMTRAIN_API int shmtrain_store_check_format(struct shmtrain_store *store, const char *format);

/* The same, and a promise: models of further runs are to be saved so. A run whose labels or features the format cannot hold is
 * refused (_USAGE) when its data has been loaded, before it is trained, and not when it is saved. "safetensors", which holds
 * all, takes it back. Errors: _USAGE: nothing is promised. */
SHMTRAIN_API int shmtrain_store_will_save_as(struct shmtrain_store *store, const char *format);

/* Whether `path` may be written when the store trains on `data`, or scores it. 0: yes. _USAGE: it is a file that is read there
 * (the data, labels that are found by its name, what options `valid`, `weights` and `replay` name), or written (`trace`,
 * `record`, `metrics`, what `cache` keeps), under whatever name. `data` NULL: what options name only. What cannot be read is
 * no error here. */
SHMTRAIN_API int shmtrain_store_check_output(struct shmtrain_store *store, const char *data, const char *path);

/* Reads a model file that shmtrain_store_save has written, or LIBLINEAR (the content tells): its tables, parameters and model.
 * The file's checksum is checked first. A note tells of a file that has none: an older one, or another program's. Errors:
 * _DATA (no model file, damaged: what and where), _SYSTEM, _USAGE (a model that is not built in or offered). */
SHMTRAIN_API int shmtrain_store_load(struct shmtrain_store *store, const char *path);

/* What is in a file: a model, a checkpoint or a model of LIBLINEAR's, into *out. All of it is read and checked, and the store
 * stays as it is. Errors: as _load's, but any model will do. */
SHMTRAIN_API int shmtrain_store_inspect_sized(struct shmtrain_store *store, const char *path, struct shmtrain_file_info *out,
                                              uint64_t out_bytes);
static inline int shmtrain_store_inspect(struct shmtrain_store *store, const char *path, struct shmtrain_file_info *out) {
    return shmtrain_store_inspect_sized(store, path, out, sizeof *out);
}

/* How good the model (after _train or _load) is on `data`, by all workers. *out is valid until the next call on the store. */
SHMTRAIN_API int shmtrain_store_evaluate(struct shmtrain_store *store, const char *data,
                                         const struct shmtrain_evaluation **out);

/* What a label is called in the table that the model (after _train or _load) was trained on; NULL: it is a number there, too.
 * Valid until the next call on the store. NULL, too, while a run goes on in the background. */
SHMTRAIN_API const char *shmtrain_store_label_name(const struct shmtrain_store *store, float label);

/* The id in data of feature `feature` (0, 1, ... are the first rows of the model's tables) of the model, after _train or _load:
 * ids may have any 64 bits, and are not always a range (see --hash-bits in the program's help); <shmtrain/data.h> has those of a
 * table's features. Errors: _USAGE: there is no model or no such feature, its features are hashed, or only another process knows
 * their ids (an observer's, a guest's). */
SHMTRAIN_API int shmtrain_store_feature_id(struct shmtrain_store *store, uint64_t feature, uint64_t *id_out);

/* What one example is predicted to be: the label (regression: the value), and `n` outputs (option `outputs`: scores or
 * probabilities): one for two classes or a regression, else one for each class. */
typedef int shmtrain_predicted(void *arg, uint64_t example, float label, const float *output, uint32_t n);

/* Predicts every example of `data`, in its order; its labels are not looked at, and an IDX file needs none. Computed by all
 * workers, `each` is called on this thread. A result of `each` other than 0 ends it and is returned, and a stop ends it
 * (_STOPPED). A file of LIBSVM text that memory has no room for is read line by line, as by _predict_stream. A bad line of a
 * text file is _DATA with name:line:column when all examples before it have been handed out, as there. Option skip-bad-lines is
 * refused: each line has its answer. */
SHMTRAIN_API int shmtrain_store_predict(struct shmtrain_store *store, const char *data, int probabilities,
                                        shmtrain_predicted *each, void *arg);

/* An image and what it was predicted to be. Valid during the call that hands it out. */
struct shmtrain_image {
    uint32_t size;                    /* as the library knows it: SHMTRAIN_HAS */
    uint32_t channels, height, width; /* of `pixel` */
    uint64_t example;                 /* from 0 */
    const float *pixel;               /* (channels, height, width) as the data has them: unsigned bytes are 0 .. 1 */
    float predicted;                  /* the label, as shmtrain_predicted gets it */
    float probability;                /* of that, 0 .. 1; NAN: the model has none */
    float label;                      /* in the data; NAN: it has none */
    uint32_t is_number;               /* 1: what is predicted is a number, which may be near; 0: a class, right or wrong */
};
typedef int shmtrain_shown(void *arg, const struct shmtrain_image *image);

/* Predicts every example of `data`, as _predict, and hands out the example, too. Errors: likewise; _DATA: the data are no images whose
 * shape is known (<shmtrain/data.h>). */
SHMTRAIN_API int shmtrain_store_predict_images(struct shmtrain_store *store, const char *data, shmtrain_shown *each, void *arg);

/* Lines of text, packed or not, from a descriptor: a pipe, a terminal, a file from where it stands. */
struct shmtrain_stream {
    uint32_t size; /* sizeof(struct shmtrain_stream) */
    int fd;
    const char *name; /* for messages */

    /* All that has come was handed out, and it may take long until there is more: time to pass on what is kept back. A result
     * other than 0 ends the call and is returned. NULL: nothing is to be done. */
    int (*pause)(void *arg);
};

/* Predicts line by line as they come, on this thread, in memory that does not grow: each example is handed out as soon as no
 * further line is there to be read. `each` and `arg` as in _predict; examples are counted from 0. A stop ends it. Errors: as
 * _predict; _DATA with name:line:column, when all examples before that line have been handed out. */
SHMTRAIN_API int shmtrain_store_predict_stream(struct shmtrain_store *store, const struct shmtrain_stream *stream,
                                               int probabilities, shmtrain_predicted *each, void *arg);

/* What a run on `data` (NULL: only workers and machine) would do with this machine, without training. *out is valid until the
 * next call on the store. Errors: as shmtrain_store_train, but for a lack of memory, which the plan shows. */
SHMTRAIN_API int shmtrain_store_plan(struct shmtrain_store *store, const char *data, const struct shmtrain_plan **out);

/* ---- looking and stopping ---- */

/* Table t: name, rows, width; NULL pointers are skipped. Errors: _USAGE (there is none). */
SHMTRAIN_API int shmtrain_store_table_at(const struct shmtrain_store *store, int t, const char **name, uint64_t *rows,
                                         uint64_t *width);

/* The run as it is at this moment, also one that is observed. *out is valid until the next call of _look or _step. Returns 1
 * while the run goes on, 0 when it is over (report and parameters are final), or a negative status. */
SHMTRAIN_API int shmtrain_store_look(struct shmtrain_store *store, const struct shmtrain_progress **out);

/* What the last run did, or so far (in the background: as of the last step). Owned by the store, valid until its next run; in
 * the background until the next step. */
SHMTRAIN_API const struct shmtrain_report *shmtrain_store_report(const struct shmtrain_store *store);

/* Rows row .. row + n - 1 of table t: (n, width). During a run as they are at the moment: each float whole, but not all of one
 * moment. While a run takes steps of SGD on features on one scale (option scale, struct shmtrain_report `scaled`) they are those
 * of scaled features; when it is over, of features as they are. Those of a model of a table (CSV) are for its columns' numbers less
 * what each is counted from (struct shmtrain_data_info, counted_from; model files in CSV name it). Errors: _USAGE (no such table
 * or rows; a run that trains a model has no tables before its data is loaded). */
SHMTRAIN_API int shmtrain_store_read(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, float *out);

/* Sets rows before the first run, or between runs. */
SHMTRAIN_API int shmtrain_store_write(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, const float *in);

/* Asks a run to end at its next consistent point. From any thread, from signal handlers, and from worker functions; never
 * blocks. Does nothing when nothing runs: it counts from the moment on at which _start has returned, or _run, _train, _join,
 * ... has been entered. A thread that stops another one's blocking run knows that it is in time once the listener's `begin` was
 * called. */
SHMTRAIN_API void shmtrain_store_stop(struct shmtrain_store *store);

#ifdef __cplusplus
}
#endif
#endif
