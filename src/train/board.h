/* The board: memory of the store that the drivers of a run share. What the chief found out about each epoch is pinned up here
 * for the application, and validation is computed here by all workers together.
 *
 *     head | epochs (n_epochs) | of each validation chunk: its loss; its note | scores (n_valid, n_outputs)
 *
 * A chunk's note says how many predictions were right, and in which epoch: written last, so that a chunk that somebody died
 * over is told from one that is done. */
#pragma once

#include <shmtrain/report.h>

#include "base/atomic.h"
#include "base/line.h"

#define SHMT_VALID_CHUNK 1024 /* examples whose losses one worker adds up */
#define SHMT_VALID_PARTS 256  /* chunks of an own function's validation, at most: calls of it in an epoch */

/* Written by the chief, but for the last word; read by the application. */
struct shmt_board {
    _Atomic uint32_t epochs_done;   /* release: that many records of epochs are complete */
    _Atomic uint32_t ended_by;      /* before that: what ends the run (enum shmt_end), if anything does */
    _Atomic uint64_t epoch_ns;      /* chief: monotonic time at which the epoch that goes on has begun; 0: the first has not */
    _Atomic uint64_t first_step_ns; /* whoever goes on first when all are there: monotonic time of that; 0: not yet */
    uint64_t before_examples;       /* application, before there are others: done in runs that this one goes on from, ... */
    double before_loss;             /* ... and their losses, summed: the counters do not have them */
    uint32_t lost_epochs;           /* chief, count_lost: epochs in which single parameters were updated, ... */
    uint32_t reserved;
    double lost_lowest, lost_highest; /* ... of which the one with the fewest losses lost this share of them; the most */
    uint64_t touched, counted;        /* chief: updates until the last epoch's end, and those of them that are not lost */
};

/* Of `touched` updates those that are not among the `counted` ones, as a share. Never below 0: a worker that died may have made
 * a push that it did not report. */
static inline double shmt_board_lost_share(uint64_t counted, uint64_t touched) {
    return counted < touched ? 1 - (double)counted / (double)touched : 0;
}

struct shmt_board_plan {
    uint64_t epochs_off, losses_off, notes_off, scores_off, bytes;
    uint64_t n_chunks, n_valid;
    uint64_t chunk; /* examples of one */
    uint32_t n_outputs;
};

/* Pure; n_valid 0: no validation. n_outputs: of the model for each example (shmtrain_model_outputs). */
void shmt_board_plan(uint32_t n_epochs, uint64_t n_valid, uint32_t n_outputs, struct shmt_board_plan *out);

/* The same for an own worker function, which has no outputs. How heavy its examples are nobody knows: chunks depend on their
 * number alone. */
void shmt_board_plan_of_function(uint32_t n_epochs, uint64_t n_valid, struct shmt_board_plan *out);

static inline struct shmtrain_epoch *shmt_board_epochs(void *board, const struct shmt_board_plan *plan) {
    return (struct shmtrain_epoch *)(void *)((unsigned char *)board + plan->epochs_off);
}
static inline double *shmt_board_losses(void *board, const struct shmt_board_plan *plan) {
    return (double *)(void *)((unsigned char *)board + plan->losses_off);
}
/* (epoch + 1) << 32 | right predictions. */
static inline _Atomic uint64_t *shmt_board_notes(void *board, const struct shmt_board_plan *plan) {
    return (_Atomic uint64_t *)(void *)((unsigned char *)board + plan->notes_off);
}
static inline float *shmt_board_scores(void *board, const struct shmt_board_plan *plan) {
    return (float *)(void *)((unsigned char *)board + plan->scores_off);
}
