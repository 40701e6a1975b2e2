/* The store: parameters in memory that many workers share, and runs that train them. All that an application calls.
 *
 * Minimal program: examples/line.c. A store is made, options are set by name, tables are declared (or a model and data are
 * named), a run trains, parameters are read. Several stores in one process are independent of one another. A store belongs to
 * one thread at a time, except where a function says otherwise.
 *
 * Calls return 0 or more, or a negative status (status.h) with a sentence in shmtrain_store_message. The library prints
 * nothing, never exits, and installs no signal handler. */
#ifndef SHMTRAIN_STORE_H
#define SHMTRAIN_STORE_H

#include <shmtrain/model.h>
#include <shmtrain/report.h>
#include <shmtrain/session.h>
#include <shmtrain/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* A worker: runs in a process (or thread) of its own until shmtrain_next returns 0. Returns 0 or a negative status. */
typedef int shmtrain_worker(shmtrain_session *s, void *arg);

/* What the application wants to hear while a run goes on; each may be NULL. Called on the application's thread, inside
 * shmtrain_store_run or _train. */
struct shmtrain_listener {
    void *arg;
    void (*begin)(void *arg, const struct shmtrain_report *so_far); /* data is loaded, workers are about to start */
    void (*epoch)(void *arg, const struct shmtrain_report *so_far,
                  const struct shmtrain_epoch *epoch); /* one more epoch is done */
    void (*note)(void *arg, const char *line);         /* what deserves a line without being an error; no line break */
};

/* Makes a store with every option at its default. Errors: _MEMORY. */
SHMTRAIN_API int shmtrain_store_create(struct shmtrain_store **out);

/* Frees it, its parameters and its data. NULL is fine. Not while it runs. */
SHMTRAIN_API void shmtrain_store_destroy(struct shmtrain_store *store);

/* The sentence of the last failed call on this store; "" when there was none. Valid until the next call. NULL: a sentence for
 * the store that shmtrain_store_create could not make. */
SHMTRAIN_API const char *shmtrain_store_message(const struct shmtrain_store *store);

/* ---- configuration ---- */

/* One option, as the command line, the environment and shmtrain_store_set know it. */
struct shmtrain_option {
    const char *name;        /* "workers": --workers, shmtrain_store_set(s, "workers", ...) */
    char letter;             /* 'w': -w; 0: none */
    const char *argument;    /* "N"; NULL: a switch, set with "1" or "0" */
    const char *standard;    /* the default, in words that may be typed, or "" */
    const char *environment; /* "SHMTRAIN_WORKERS" */
    const char *group;       /* heading in the help */
    const char *help;        /* one line */
};

/* Option number i, from 0; NULL behind the last. Any thread, any time. */
SHMTRAIN_API const struct shmtrain_option *shmtrain_option_at(size_t i);

/* Sets an option by name. Errors: _USAGE, naming the option, what was given and what is expected; nothing changes then. */
SHMTRAIN_API int shmtrain_store_set(struct shmtrain_store *store, const char *name, const char *value);

/* Sets every option whose environment variable is set. Errors: as above, naming the variable. */
SHMTRAIN_API int shmtrain_store_set_from_environment(struct shmtrain_store *store);

SHMTRAIN_API void shmtrain_store_listen(struct shmtrain_store *store,
                                        const struct shmtrain_listener *listener); /* copied; NULL: nobody */

/* ---- own worker functions ---- */

/* Declares a table of (rows, width) floats, zero at first; returns its number: 0, 1, ... Errors: _USAGE (name taken, size, more
 * than 8, after a run). */
SHMTRAIN_API int shmtrain_store_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width);

/* How many examples an epoch deals out, each exactly once. */
SHMTRAIN_API int shmtrain_store_examples(struct shmtrain_store *store, uint64_t n);

/* Trains with `worker` in every worker, for all epochs; returns when all have ended. A further run goes on with the parameters
 * that the one before left. Errors: _USAGE, _MEMORY (with figures), _SYSTEM, _DIED (which worker, of what), a worker's own, and
 * _STOPPED is none: a run that shmtrain_store_stop ended returns 0. Blocks; listeners are called meanwhile. */
SHMTRAIN_API int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg);

/* ---- models and data ---- */

/* Offers a model of your own, to be chosen by option `model`; it must outlive the store. Errors: _USAGE (no name, name
 * taken). */
SHMTRAIN_API int shmtrain_store_offer(struct shmtrain_store *store, const struct shmtrain_model *model);

/* A model, built in or offered, from 0; NULL behind the last. */
SHMTRAIN_API const struct shmtrain_model *shmtrain_store_model_at(const struct shmtrain_store *store, size_t i);

/* Loads the data (a path, or "builtin:sparse", "builtin:line") with all workers, trains the model on it from zero, evaluates
 * after each epoch. The store's tables become the model's; tables that were declared before are gone. Errors: as
 * shmtrain_store_run, _DATA with file:line:column, and _NUMBERS when a loss or the parameters are no finite numbers. */
SHMTRAIN_API int shmtrain_store_train(struct shmtrain_store *store, const char *data);

/* Writes the model to a file (safetensors), atomically: the file is whole or as it was before. After a run. */
SHMTRAIN_API int shmtrain_store_save(struct shmtrain_store *store, const char *path);

/* ---- looking and stopping ---- */

/* What the last run did, or so far. Owned by the store, valid until its next run. */
SHMTRAIN_API const struct shmtrain_report *shmtrain_store_report(const struct shmtrain_store *store);

/* Rows row .. row + n - 1 of table t: (n, width). After a run; during one, from a listener: as they are at the moment. */
SHMTRAIN_API int shmtrain_store_read(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, float *out);

/* Sets rows before the first run, or between runs. */
SHMTRAIN_API int shmtrain_store_write(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, const float *in);

/* Asks a run to end at its next consistent point. From any thread, and from signal handlers; does nothing when nothing runs. */
SHMTRAIN_API void shmtrain_store_stop(struct shmtrain_store *store);

#ifdef __cplusplus
}
#endif
#endif
