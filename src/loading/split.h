/* Setting a share of the examples aside for validation: each example by a random number that is a function of (seed, example),
 * so the same ones for every number of workers, and without regard to the order of the file. */
#pragma once

#include <shmtrain/data.h>
#include <stdbool.h>

#include "base/error.h"

struct shmt_split {
    uint32_t *train_example, *valid_example; /* (n_train), (n_valid) ascending */
    float *valid_label;                      /* (n_valid) */
    uint64_t n_train, n_valid;
};

/* Errors: _MEMORY; _DATA when one of the two would be empty. */
int shmt_split_make(struct shmt_split *split, uint64_t seed, uint64_t n_examples, double share, struct shmt_error *e);

/* Gathers the labels of the validation examples, when the data is there. */
int shmt_split_labels(struct shmt_split *split, const struct shmtrain_data *data, struct shmt_error *e);

void shmt_split_nonzeros(const struct shmt_split *split, const struct shmtrain_data *data, uint64_t *train_out,
                         uint64_t *valid_out);

void shmt_split_free(struct shmt_split *split); /* {0} is fine */
