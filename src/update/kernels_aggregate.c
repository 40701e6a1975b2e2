/* The kernels of `aggregate`: gradient sums into a buffer that one worker alone writes, whatever the rule is; the update comes
 * later (apply.c). Those of rounds read weights that others may be updating. Found by kernels.c. */
#include "update/kernels_priv.h"

SHMT_SPARSE_KERNELS(aggregate_ones, .write = SHMT_WRITE_AGGREGATE, .rule = SHMT_RULE_SGD)
SHMT_SPARSE_KERNELS(aggregate_values, .write = SHMT_WRITE_AGGREGATE, .rule = SHMT_RULE_SGD, .values = true)
SHMT_SPARSE_KERNELS(rounds_ones, .write = SHMT_WRITE_AGGREGATE, .rule = SHMT_RULE_SGD, .moving = true)
SHMT_SPARSE_KERNELS(rounds_values, .write = SHMT_WRITE_AGGREGATE, .rule = SHMT_RULE_SGD, .values = true, .moving = true)

static void dot_ones(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    shmt_dot_rows(span, x, dot_out, aggregate_ones_how);
}

static void dot_values(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    shmt_dot_rows(span, x, dot_out, aggregate_values_how);
}

static void push_dense(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u) {
    float *sink = span->sink + at;
    (void)u;
    if (n > 0) shmt_terms_note_sum(&span->terms);
    for (uint64_t i = 0; i < n; i++) sink[i] += grad[i];
    if (span->touched && n > 0)
        memset(span->touched + at / SHMT_TOUCH_FLOATS, 1, (at + n - 1) / SHMT_TOUCH_FLOATS - at / SHMT_TOUCH_FLOATS + 1);
}

const struct shmt_kernels SHMT_AGGREGATE_KERNELS[2] = {
    {"aggregate_ones", shmt_need_ones, dot_ones, aggregate_ones_push_sparse, aggregate_ones_each, push_dense},
    {"aggregate_values", shmt_need_values, dot_values, aggregate_values_push_sparse, aggregate_values_each, push_dense},
};

const struct shmt_kernels SHMT_ROUNDS_KERNELS[2] = {
    {"rounds_ones", shmt_need_ones, shmt_live_dot_ones, rounds_ones_push_sparse, rounds_ones_each, push_dense},
    {"rounds_values", shmt_need_values, shmt_live_dot_values, rounds_values_push_sparse, rounds_values_each, push_dense},
};
