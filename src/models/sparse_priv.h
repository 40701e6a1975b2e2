/* What the linear models on sparse rows share: one table "weight" of (features + 1, 1), whose last row is the bias, and
 *
 *     minimise  mean over i of a_i loss(w . x_i + b, t_i)  +  l2 / 2 * |w|^2  +  l1 * |w|_1        b not regularised
 *
 * over sparse examples x_i with weights a_i (1 where the data has none) and targets t_i: the label, or for two classes +1 where
 * it is the larger one and -1 where not. A model is its `losses`. L1 and L2 are part of the update rule (update/rule.h).
 *
 * Called by the models of this room. The functions are inlined into each model with its `losses` and `signs` as constants, so
 * that a group of examples costs one indirect call, from the kernels. */
#pragma once

#include <shmtrain/model.h>
#include <stdbool.h>

#include "models/examples_priv.h"

#define SHMT_INLINED static inline __attribute__((always_inline))

/* Losses of n examples, without their weights: slope[k] holds the dot product, and becomes d loss / d dot. (n) each, n at most
 * 64. A dot product that is no number gives a loss that is none. */
typedef void shmt_losses(uint32_t n, const float *target, float *slope, float *loss_out);

/* The work of one item; what `slope` of shmtrain_each gets as its argument. */
struct shmt_slopes {
    const struct shmtrain_batch *batch;
    const struct shmtrain_settings *with;
    double loss; /* of the examples so far */
};

/* sparse.c: the table, and the rows of a batch. */
uint32_t shmt_sparse_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            struct shmtrain_shape *out);
struct shmtrain_csr shmt_sparse_rows(const struct shmtrain_batch *batch, const struct shmtrain_settings *with);

/* The target of example k; for two classes without a branch, which nobody could predict. */
SHMT_INLINED float shmt_target(const struct shmtrain_batch *batch, const struct shmtrain_settings *with, uint32_t k,
                               bool signs) {
    const float label = batch->data->label[shmt_example_at(batch, k)];
    return signs ? (float)(2 * (label == with->classes[with->n_classes - 1]) - 1) : label;
}

/* In shuffled order the labels are far apart: asks for that of an example which comes AHEAD places after example k. One request
 * for a group is enough, because the order keeps neighbours together. */
SHMT_INLINED void shmt_fetch_labels(const struct shmtrain_batch *batch, uint32_t k) {
    enum { AHEAD = 16 };
    if (!batch->example || k + AHEAD >= batch->n) return;
    __builtin_prefetch(&batch->data->label[batch->example[k + AHEAD]]);
    if (batch->data->weight) __builtin_prefetch(&batch->data->weight[batch->example[k + AHEAD]]);
}

/* Losses and slopes of examples first .. first + n - 1, their weights included; slope[] as in `losses`. */
SHMT_INLINED double shmt_sparse_losses(const struct shmtrain_batch *batch, const struct shmtrain_settings *with, uint32_t first,
                                       uint32_t n, float *slope, shmt_losses *losses, bool signs) {
    float target[SHMTRAIN_MODEL_GROUP], loss[SHMTRAIN_MODEL_GROUP];
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) target[k] = shmt_target(batch, with, first + k, signs);
    losses(n, target, slope, loss);
    if (batch->data->weight)
        for (uint32_t k = 0; k < n; k++) {
            const float weight = batch->data->weight[shmt_example_at(batch, first + k)];
            slope[k] *= weight;
            loss[k] *= weight;
        }
    for (uint32_t k = 0; k < n; k++) sum += (double)loss[k];
    return sum;
}

/* The body of a model's shmtrain_slope. */
SHMT_INLINED void shmt_sparse_slope(struct shmt_slopes *s, uint32_t first, uint32_t n, const float *dot, float *slope_out,
                                    shmt_losses *losses, bool signs) {
    shmt_fetch_labels(s->batch, first);
    for (uint32_t k = 0; k < n; k++) slope_out[k] = dot[k];
    s->loss += shmt_sparse_losses(s->batch, s->with, first, n, slope_out, losses, signs);
}

/* The bodies of a model's `step` and `score`. */
SHMT_INLINED int shmt_sparse_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                                  shmtrain_slope *slope, double *loss_out) {
    const struct shmtrain_settings *with = pass->with;
    struct shmt_slopes slopes = {.batch = batch, .with = with};
    const struct shmtrain_csr x = shmt_sparse_rows(batch, with);
    const int rc = shmtrain_each(s, 0, &x, with->group, slope, &slopes);
    if (rc == 0) *loss_out = slopes.loss;
    return rc;
}

SHMT_INLINED int shmt_sparse_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                                   float *score_out, double *loss_out, shmt_losses *losses, bool signs) {
    const struct shmtrain_settings *with = pass->with;
    float slope[SHMTRAIN_MODEL_GROUP];
    const struct shmtrain_csr x = shmt_sparse_rows(batch, with);
    const int rc = shmtrain_dot(s, 0, &x, score_out);
    if (rc < 0) return rc;
    for (uint32_t k = 0; k < batch->n; k++) slope[k] = score_out[k];
    *loss_out = shmt_sparse_losses(batch, with, 0, batch->n, slope, losses, signs);
    return 0;
}
