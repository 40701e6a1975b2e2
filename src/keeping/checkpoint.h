/* Checkpoints: a run at one moment, in a file from which it can go on.
 *
 * A checkpoint is a model file (model_file.h) with more in it, so whatever reads models reads checkpoints, too: the tables and
 * the notes are those that a model saved at that moment would have. docs/reliability.md lists what is added. Names of added
 * tensors have a '/', which names of tables cannot have.
 *
 * Nothing here knows a store or a segment. Who writes one (checkpoints/checkpoints.c) fills a struct shmt_checkpoint with pointers to
 * memory of its own, which may be shared memory that nobody changes meanwhile; nothing is copied but a row buffer. Who reads
 * one gets the same struct, with what is small in it, and reads tables and planes into memory of its own, one by one. Nothing
 * in a file is believed: what cannot be is one sentence that names the file and the place in it.
 */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>
#include <sys/types.h>

#include "configuration/model_options.h"
#include "files/model_file.h"
#include "ps/spec.h"
#include "solve/keep.h"

#define SHMT_CHECKPOINT_FORMAT 2 /* of what is added to a model: 2 with an exact fit, 1 without */

/* Where a run stands: at the beginning of an epoch, or in the middle of one, with nothing in flight. */
struct shmt_moment {
    uint32_t epoch;        /* from 0: the epoch that goes on, or is to begin; spec.epochs: the run was done */
    uint64_t step;         /* steps of it that are done: in sync the first so many batches, else so many items anywhere in it */
    uint64_t steps_before; /* spec.steps_before of a run that goes on from here */
    uint64_t n_pieces;     /* of its ledger (shmt_spec_pieces); 0: nothing of it is done, and there is no ledger */
    const uint32_t *done;  /* (n_pieces) examples that each was done with; 0: it is still to be done, or had none */
    const double *loss;    /* (n_pieces) their losses, summed over these examples; 0 of those that are to be done */
    uint32_t n_clocks;     /* seats that the run had; for display, because any number of them may go on */
    const uint64_t *clock; /* (n_clocks) what each had completed */
    uint32_t n_records;    /* the epochs before: as many as `epoch` says */
    const struct shmtrain_epoch *record; /* (n_records) */
    double epoch_seconds;                /* of training, in this epoch so far, without evaluation */
    double seconds;                      /* since the run began, with those of runs that it went on from */
};

/* A table as it stands in memory. */
struct shmt_checkpoint_table {
    struct shmt_table_spec table;
    const float *value;                  /* (rows, width); NULL in what was read */
    const float *state[SHMT_MAX_PLANES]; /* (n_planes) of (rows, width); likewise */
    const uint32_t *place;               /* (rows) the file's row r is row place[r] of memory; NULL: row r */
};

/* What the data was like, as far as it tells one data set from another. */
struct shmt_data_print {
    uint64_t examples, features, nonzeros;
    uint64_t xxh64; /* of labels, weights and lengths of rows, in order */
};

/* What tells data sets apart: labels, weights and lengths of rows, in order. Takes some milliseconds for a million rows. */
void shmt_data_print_make(const struct shmtrain_data *data, struct shmt_data_print *out);

/* Of an exact fit: what is kept of it (solve/keep.h). It stands at the end of an epoch. */
struct shmt_checkpoint_fit {
    bool is;       /* the run is one; else all of this is 0 */
    uint32_t live; /* enum shmt_solve_live */
    double l1, l2, tolerance;
    struct shmt_kept_fit kept;
    uint64_t rows; /* of the point: features, and a bias behind them */
    uint32_t width;
    const double *point;   /* (rows, width) */
    const uint32_t *place; /* (rows) as of a table's rows; NULL */
    uint64_t n_dual;       /* examples of the fit; 0: it has none of these */
    const double *dual;    /* (n_dual) dual ascent: u */
    uint64_t n_inner;
    const struct shmt_interior *stands; /* (n_inner) interior points */
};

struct shmt_checkpoint {
    uint32_t format; /* of what was read */
    struct shmt_moment at;
    /* The run: what must be the same for one that goes on. Of the spec: n_seats, n_workers, epochs, n_examples, policy, batch,
     * n_chunks, item, order, rate, rule. */
    struct shmt_spec spec;
    char mode[64];                        /* the policy's name (shmt_mode_name) */
    char model[40];                       /* "": own worker functions */
    char model_options[SHMT_MODEL_TEXTS]; /* joined; "": none, also of older files */
    uint32_t group, bias;                 /* as in struct shmtrain_settings */
    struct shmt_data_print data;
    struct shmt_checkpoint_fit fit;
    bool l2_chosen;    /* steps of SGD: that of the rule was chosen, not typed; older files do not say so */
    uint32_t ended_by; /* enum shmt_end: what had ended the run when this was written; SHMT_END_NOT: it went on */
    uint32_t n_tables, n_planes;
    struct shmt_checkpoint_table table[SHMT_MAX_TABLES];
    const uint64_t *id; /* (n_ids) of features, where models of such data list them (SHMT_MODEL_IDS) */
    uint64_t n_ids;
    const struct shmt_note *note; /* (n_notes) those of the model; unset in what was read */
    uint32_t n_notes;
};

/* ---- writing ---- */

/* A run's claim on the folder that it keeps checkpoints in: two runs there would remove each other's. It ends with the process
 * that has made it, however that ends; processes that are forked from it have no part in it. */
struct shmt_checkpoint_claim {
    const char *folder;
    bool made; /* the folder, for this run */
    int fd;    /* of a file in it, which is locked; -1: there can be no locks, and other processes do not see the claim */
    pid_t pid;
    dev_t device;
    ino_t inode; /* of the folder */
    struct shmt_checkpoint_claim *next;
};

/* Makes sure that `folder` is one that checkpoints can be written to, makes it where its own folder is there, and claims it.
 * The claim must stay where it is until it is given up, and `folder`, too. Any thread. Errors: _SYSTEM (what is in the way, and
 * what to name instead), _USAGE (another run keeps its checkpoints there; which process that is); then nothing is left. */
int shmt_checkpoint_claim(const char *folder, struct shmt_checkpoint_claim *claim, struct shmt_error *e);

/* Gives it up, and removes the folder again if it was made for it and is empty. Without effect on a claim of zeros. */
void shmt_checkpoint_unclaim(struct shmt_checkpoint_claim *claim);

/* Writes it as `folder`/checkpoint-STEP.safetensors, STEP being the step of the run in 12 digits: under another name, synced,
 * renamed, folder synced. Then the oldest whole ones but `keep` of them are removed (0: none is), which takes room for keep + 1
 * of them. Where there is none, the oldest ones but keep - 1 good ones, and at least the newest of these, make room; else all
 * that was there is there on an error. `path_out` (PATH_MAX): its name, also on errors. Errors: _SYSTEM, _MEMORY. */
int shmt_checkpoint_write(const char *folder, const struct shmt_checkpoint *checkpoint, uint32_t keep, char *path_out,
                          struct shmt_error *e);

/* The name that it would be written as; out (PATH_MAX). Errors: _SYSTEM: it is too long. */
int shmt_checkpoint_name(const char *folder, const struct shmt_checkpoint *checkpoint, char *out, struct shmt_error *e);

/* The last one of a folder by its name, good or not. 1: there is one; 0: none, or no folder. `path_out` (PATH_MAX). Errors:
 * _SYSTEM, _MEMORY. */
int shmt_checkpoint_last(const char *folder, char *path_out, struct shmt_error *e);

/* ---- reading ---- */

struct shmt_checkpoint_in;

/* Opens a checkpoint and checks all of it: each length and offset, each number's range, and the checksum over the whole file.
 * Errors: _DATA (damaged, or no checkpoint), _SYSTEM, _MEMORY. */
int shmt_checkpoint_open(const char *path, struct shmt_checkpoint_in **out, struct shmt_error *e);
void shmt_checkpoint_close(struct shmt_checkpoint_in *in); /* NULL is fine */

/* What is in it; valid until close. */
const struct shmt_checkpoint *shmt_checkpoint_of(const struct shmt_checkpoint_in *in);

/* The step of the run that a checkpoint is of. */
uint64_t shmt_checkpoint_step(const struct shmt_checkpoint *checkpoint);

/* A note of the model that it is; NULL: it has none of this key. Valid until close. */
const char *shmt_checkpoint_model_note(const struct shmt_checkpoint_in *in, const char *key);

/* Table t (plane -1) or a plane of its state: (rows, width) into out. Errors: _SYSTEM, _DATA. */
int shmt_checkpoint_read(const struct shmt_checkpoint_in *in, uint32_t t, int plane, float *out, struct shmt_error *e);

/* Opens the newest good checkpoint of a folder, by the steps in their names. `skipped` is told of each one that is not good,
 * or of another step, in a sentence; NULL: nobody. 1: opened; 0: there is none, neither good nor bad (or no folder). Errors:
 * _DATA (there are only bad ones), _SYSTEM, _MEMORY. `path_out` (PATH_MAX): which one it is. */
int shmt_checkpoint_newest(const char *folder, void (*skipped)(void *arg, const char *why), void *arg,
                           struct shmt_checkpoint_in **out, char *path_out, struct shmt_error *e);
