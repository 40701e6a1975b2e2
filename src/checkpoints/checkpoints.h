/* Checkpoints of a run: options checkpoint, checkpoint-every, keep and resume. Called by run.c and train.c, in this order:
 *
 *     begin -> settle -> [data is loaded: check_data] -> [restore] -> begin_board -> tick, [take,] tick, ... -> end -> close
 *
 * Workers only copy what they have learned (ps/snapshot.h); files are written by a thread of the application, so that neither
 * they nor who drives the run wait for a disk. A file that cannot be written while the run goes on is a line of the log, and
 * the older ones stay. Where the options ask for none, all of this does nothing. */
#pragma once

#include <limits.h>
#include <pthread.h>

#include "base/atomic.h"
#include "keeping/checkpoint.h"
#include "keeping/save.h"

struct shmt_run;
struct shmt_store;
struct shmt_snapshot;
struct shmtrain_model;

struct shmt_checkpoints {
    struct shmt_checkpoint_claim claim; /* on the folder */
    char from_path[PATH_MAX];           /* what the run goes on from (run.h) */
    bool done;                          /* nothing is left to be trained of what it goes on from */
    struct shmt_data_print data;        /* of this run */
    const struct shmt_trained *as;      /* what its model is, for the notes; the caller's; NULL: none */
    struct shmt_notes *notes;           /* the same as notes */

    uint64_t asked_ns;     /* when a snapshot was asked for */
    bool asked;            /* and has not come yet */
    uint64_t periods;      /* of steps or epochs, that were over at the last one that was due */
    uint64_t written_step; /* of the run, that the last file is of; UINT64_MAX: none was written */
    uint32_t n_failed;     /* since the last one that could be written: the first of them is told */
    bool writing;          /* a thread is at `now`, in the snapshot of the store */
    pthread_t thread;
    _Atomic uint32_t written; /* by the thread: 1, its work is done */
    struct shmt_checkpoint now;
    struct shmt_error error; /* why it could not be written */
    char path[PATH_MAX];
};

/* Before anything is loaded: the folder can be written to, no other run is at it, and there is nothing in it that this run
 * could spoil; with resume the newest good checkpoint is opened. Errors: _USAGE, _SYSTEM, _DATA. */
int shmt_checkpoints_begin(struct shmt_run *run);
void shmt_checkpoints_close(struct shmt_run *run);

/* When the spec is made, but for the rate that is found in the data: when it pauses; and where it begins, which must be a place
 * in a run of the same options. What these leave open is what it was then. Errors: _USAGE, with the option and both values. */
int shmt_checkpoints_settle(struct shmt_run *run, const struct shmtrain_model *model);

/* The data of the run as it will be compared, of `print`. Errors: _USAGE: it is not what the checkpoint's run had. */
int shmt_checkpoints_check_data(struct shmt_run *run, const struct shmt_data_print *print, const struct shmt_ids *ids);

/* The parameters and the optimizer's state into the declared tables, to be given to the backend. Then a line says where the run
 * goes on, as nothing is left that could be refused. */
int shmt_checkpoints_restore(struct shmt_run *run);

/* The backend and the board of a run, before workers exist: what is done already. */
int shmt_checkpoints_begin_board(struct shmt_run *run, struct shmt_store *made);

/* By who drives the run, ten times a second: sees that a file has been written, and asks for a snapshot when that is due. */
void shmt_checkpoints_tick(struct shmt_run *run);

/* What the workers have copied, while nothing is being written. True: it becomes a checkpoint, and a thread is at it, which
 * releases it. False: it is not needed (any more). `for_application`: it was the application that has asked for it. */
bool shmt_checkpoints_take(struct shmt_run *run, const struct shmt_snapshot *snapshot, bool for_application);

/* The workers have ended; rc: how. Where the run was well until then, what it has learned is written, too. */
void shmt_checkpoints_end(struct shmt_run *run, int rc);
