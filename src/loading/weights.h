/* Weights of the training examples, from the options `weights` and `class-weight`: their product, for each example. Called by
 * train.c. */
#pragma once

#include <shmtrain/data.h>
#include <shmtrain/model.h>

#include "configuration/options.h"

/* Does any option ask for weights? */
bool shmt_weights_wanted(const struct shmt_config *config);

/* Are they right for this data, of which the classes are known (its arrays need not be there)? Before any memory is made.
 * Errors: _USAGE (class-weight: its form, a label that is none, a model that knows no classes), _DATA and _SYSTEM (the
 * file). */
int shmt_weights_check(const struct shmt_config *config, const struct shmtrain_model *model, const struct shmtrain_data *data,
                       struct shmt_error *e);

/* The examples that are trained on: example[0 .. n), or all n where it is NULL. */
struct shmt_weights_of {
    const uint32_t *example;
    uint64_t n;
};

/* The mean weight of the examples that are trained on; 1 for data without weights. */
double shmt_weights_mean(const struct shmtrain_data *data, const struct shmt_weights_of *trained);

/* What weights consist of. */
struct shmt_weights_wish {
    const struct shmt_config *config;
    const struct shmt_weights_of *trained;
    bool has_some; /* each example has a weight already, and option weights is not used */
};

/* Writes weight (data->n_examples), when the labels are there. "balanced" weights are those for the examples that are trained
 * on: n / (classes that occur * examples of the class). Errors: as above; _DATA when nothing trained on has a weight. */
int shmt_weights_fill(const struct shmt_weights_wish *wish, const struct shmtrain_data *data, float *weight,
                      struct shmt_error *e);
