/* Models as text, for other programs: LIBLINEAR's model file, and CSV. Atomically, as model_file.h.
 *
 * LIBLINEAR's, as liblinear-predict reads it:
 *
 *     solver_type L2R_LR          what the scores mean
 *     nr_class 2
 *     label 1 -1                  whole numbers; of two, the first one is that of positive scores. Not for regressions
 *     nr_feature 123              features are 1 .. 123
 *     bias 1                      below 0: none; else what the last feature, which every example has, is
 *     w
 *     0.1 ...                     for each feature, and the bias: a weight, or one for each class
 *
 * CSV: "feature,weight", or with several classes "feature,weight,class"; the bias is the feature "bias". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A linear model, wherever its weights stand: weight of feature j (from 0) for output k is weight[j * by_feature + k * by_output],
 * bias[k]. */
struct shmt_linear {
    const char *solver;                 /* LIBLINEAR's name for it */
    const float *weight, *bias;         /* bias NULL: none */
    uint64_t n_features, first_feature; /* the id of feature 0 */
    const uint64_t *id;                 /* (n_features) of each, ascending; NULL: one after the other */
    const char *const *name;            /* (n_names) in CSV, of the features with ids from 1 on; NULL: its id */
    const char *const *mark;            /* (n_names) what a mark (files/csv_plan.h) says of such a feature; NULL: it has none */
    const double *from;                 /* (n_names) what such a feature is counted from (likewise); 0: it is as it is */
    uint64_t n_names;
    bool is_hashed; /* features are hashes of ids */
    uint64_t by_feature, by_output;
    uint32_t n_outputs;
    bool is_softmax;    /* of two classes: an output for each, of which only the difference counts */
    uint32_t n_labels;  /* 0: a regression */
    const float *label; /* (n_labels) ascending; with one output, it is the larger one's */
};

/* Whether the format has such a model, whatever its weights are: they may be NULL. Errors: _USAGE (why, and what to take
 * instead). */
int shmt_liblinear_check(const struct shmt_linear *model, struct shmt_error *e);
int shmt_csv_check(const struct shmt_linear *model, struct shmt_error *e);

/* Errors: _USAGE (the format has no such model), _SYSTEM, _MEMORY. */
int shmt_liblinear_write(const char *path, const struct shmt_linear *model, struct shmt_error *e);
int shmt_csv_write(const char *path, const struct shmt_linear *model, struct shmt_error *e);
