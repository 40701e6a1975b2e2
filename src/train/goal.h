/* When a run has learned enough, before its last epoch. Pure: the chief asks at the end of each epoch, and the answer is a
 * function of the figures that all workers have found together, so that in `sync` it does not depend on their number. */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>

struct shmt_goal {
    double target_loss; /* NaN: none */
    uint32_t patience;  /* so many epochs in a row may bring no loss below the lowest one so far, but those of a fit that have
                           left the parameters as they were; 0: any number */
    bool validated;     /* losses are those of the validation data, else of training */
};

/* What ended a run before its last epoch. */
enum shmt_end {
    SHMT_END_NOT,
    SHMT_END_TARGET_LOSS,
    SHMT_END_PATIENCE,
    SHMT_END_TIME_LIMIT,
    SHMT_END_STEPS,
    SHMT_END_REQUEST,
    SHMT_END_TOLERANCE, /* the parameters are proved to be as near the optimum as was asked for */
    SHMT_END_PRECISION, /* they cannot be proved to be, for numbers have not enough digits */
    SHMT_END_HOST,      /* another host has ended it, for a reason of its own */
};
#define SHMT_N_ENDS 9

/* _TARGET_LOSS, _PATIENCE, or _NOT, after the epochs 0 .. n - 1. A loss that is no number reaches no target, and is no better
 * than any. */
enum shmt_end shmt_goal_reached(const struct shmt_goal *goal, const struct shmtrain_epoch *epoch, uint32_t n);

/* The option that stands behind an end, "request" for _REQUEST, "precision" for _PRECISION, "host" for _HOST, "" for _NOT and for what is
 * none of them. */
const char *shmt_end_name(uint32_t end);
enum shmt_end shmt_end_of(const char *name); /* the other way; _NOT for what is none */
