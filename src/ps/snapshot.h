/* Snapshots: all that a run has learned at a moment at which nothing is under way, and where it stood then; what a checkpoint
 * is written from, and what another run begins with (spec.first_epoch, spec.first_step, the backend's `resume`).
 *
 * They are taken in pauses: everybody ends what it is at, as at the end of an epoch, so that the parameters have exactly the
 * pieces that the ledger calls done. Nothing in them depends on the number of workers. */
#pragma once

#include <stdint.h>

struct shmt_position {
    uint32_t epoch;        /* so many are over */
    uint64_t step;         /* so many steps of the next one are done: in `sync` the first ones, else any */
    uint64_t steps_before; /* spec.steps_before of a run that goes on from here */
};

/* A view; tables and planes lie as in ps/flat.h, in the backend's order of rows. */
struct shmt_snapshot {
    struct shmt_position at;
    const float *weight;   /* (n_floats) */
    const float *state;    /* (planes, n_floats) of the rule's state; NULL: there is none */
    uint64_t n_floats;     /* of the flat array, with the gaps between its tables */
    const uint64_t *start; /* (n_tables) where each begins in it */
    uint32_t planes;
    uint32_t n_clocks;
    const uint64_t *clock; /* (n_clocks) what each seat had completed; for display */
    uint64_t n_pieces;
    const uint32_t *done; /* (n_pieces) of epoch at.epoch: examples; 0: not done */
    const double *loss;   /* (n_pieces) of those that are */
};
