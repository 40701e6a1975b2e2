/* Features of tables on their way into a network, each on a scale of its own.
 *
 * Called by models of networks for each example of a batch, and once for the scales. `normal` (n, 2) has for each feature what is taken
 * from it, and what it is then divided by. All functions are pure. */
#pragma once

#include <stdint.h>

#include "layers/spread.h"

/* Sums over one feature of many examples. {0} to begin with. */
struct shmt_feature_sums {
    uint64_t n, nonzeros;
    struct shmt_spread all;
    double square; /* of the numbers themselves */
};

/* One more example: n features of it. */
void shmt_features_add(struct shmt_feature_sums *sums, const float *row, uint64_t n);

/* Of n features into normal_out (n, 2): mean and standard deviation. A feature that is mostly 0, such as a category, stays 0 there, and
 * is divided by the root mean square of its other values: by its deviation a rare one would become large. What does not vary is not
 * divided. */
void shmt_features_normal(const struct shmt_feature_sums *sums, uint64_t n, float *normal_out);

/* One example: row (n) into out (n), which may be the same. */
void shmt_features_put(const float *normal, uint64_t n, const float *row, float *out);
