/* Features on one scale, for steps of SGD: one rate suits all weights only if all features are of about one size.
 *
 * Data that is mostly there (a table: more than half of all values are not 0) is standardised: each feature has its mean taken off, and
 * is divided by its standard deviation; without a bias, by the root of its mean square. Sparse data is never centred; its features stay
 * as they are, but for those that are many times as large as others, which are brought down to LARGE times the median (of the roots
 * of the mean squares of what is there, by entries); and all are divided by the median where that is far from 1. Data with millions
 * of features is left alone.
 *
 * One value that is a million times as large as any other of its feature is a mistake, and counts as the feature's mean: else the
 * feature would be scaled down to nothing.
 *
 * The data is changed in memory, or copied where it is somebody else's. Workers, and whoever looks at the parameters while they train,
 * know scaled features; when the run is over its parameters are turned into those for features as they were given. Fits need none of
 * this: see solve/choose.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct shmt_held;
struct shmt_load;
struct shmtrain_model;

/* Arrays that stand in the place of a set's. */
struct shmt_standard_copy {
    uint64_t *start;
    uint32_t *id;
    float *value, *dense;
};

/* {0}: features are as they were given. */
struct shmt_standard {
    double *mean, *scale;  /* (n_features), by column of the data; NULL: nothing was changed */
    double *limit;         /* (n_features) sizes beyond which values are mistakes; NULL: there are none */
    double mistake, usual; /* the largest one, and the size of the next value of its feature */
    uint32_t mistake_column;
    uint64_t mistake_example; /* of the set */
    uint32_t n_mistakes;      /* features that have one */
    uint32_t n_features;
    bool by_place; /* columns of the data are places (places.h) */
    struct shmt_standard_copy train, valid;
};

/* What is to be put on one scale. */
struct shmt_standard_wish {
    struct shmt_load *train, *valid; /* filled; valid NULL: none, or a share of train */
    const uint32_t *example;         /* (n) of train: statistics are of these; NULL: of the first n */
    uint64_t n;
    bool bias;     /* of the model */
    bool may_grow; /* rows may get more entries */
    bool by_place;
};

/* Only looks for values that are mistakes: the members about these. Changes nothing, and finds nothing where that would take long.
 * Errors: _MEMORY. */
int shmt_standard_look(const struct shmt_standard_wish *wish, struct shmt_standard *out, struct shmt_error *e);

/* Memory that a set's copies take, at most, when it is counted. */
uint64_t shmt_standard_work_bytes(const struct shmt_load *load);

/* Errors: _MEMORY. */
int shmt_standard_make(const struct shmt_standard_wish *wish, struct shmt_standard *out, struct shmt_error *e);

/* The parameters of a run of `model`, which nobody trains any more, become those for features as they were. Errors: _USAGE, when
 * places are damaged; _MEMORY. */
int shmt_standard_undo(const struct shmt_standard *standard, const struct shmtrain_model *model, const struct shmt_held *held,
                       struct shmt_error *e);

void shmt_standard_free(struct shmt_standard *standard); /* {0} is fine */
