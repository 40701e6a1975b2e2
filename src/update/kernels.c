/* Finding kernels, and those that all rules share: see kernels.h. Compiled for each CPU path, and brings its table (path.h). */
#include "update/kernels_priv.h"
#include "update/path.h"

static const struct shmt_how live_values = {.values = true}, live_ones = {.values = false};

SHMT_INLINE void need_rows(const struct shmt_span *span, const struct shmtrain_csr *x, bool values) {
    const uint32_t lines = shmt_row_lines(x);
    for (uint32_t k = 0; k < x->n; k++) {
        shmt_fetch_row(x, (uint64_t)k + SHMT_AHEAD, lines, values);
        shmt_fetch_weights(span, x, k, 0);
    }
}

void shmt_need_values(const struct shmt_span *span, const struct shmtrain_csr *x) { need_rows(span, x, true); }
void shmt_need_ones(const struct shmt_span *span, const struct shmtrain_csr *x) { need_rows(span, x, false); }

void shmt_live_dot_values(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    shmt_dot_rows(span, x, dot_out, live_values);
}

void shmt_live_dot_ones(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    shmt_dot_rows(span, x, dot_out, live_ones);
}

const struct shmt_kernels *shmt_kernels_find(enum shmt_write write, enum shmt_rule_kind rule, bool values, bool regularised) {
    static const struct shmt_live_set *const LIVE[SHMT_N_RULES] = {
        [SHMT_RULE_SGD] = SHMT_SGD_KERNELS,         [SHMT_RULE_MOMENTUM] = SHMT_MOMENTUM_KERNELS,
        [SHMT_RULE_ADAGRAD] = SHMT_ADAGRAD_KERNELS, [SHMT_RULE_ADAM] = SHMT_ADAM_KERNELS,
        [SHMT_RULE_FTRL] = SHMT_FTRL_KERNELS,       [SHMT_RULE_NESTEROV] = SHMT_NESTEROV_KERNELS,
        [SHMT_RULE_RMSPROP] = SHMT_RMSPROP_KERNELS, [SHMT_RULE_ADADELTA] = SHMT_ADADELTA_KERNELS,
        [SHMT_RULE_ADAMW] = SHMT_ADAMW_KERNELS};
    if (write == SHMT_WRITE_AGGREGATE) return &SHMT_AGGREGATE_KERNELS[values];
    if (!LIVE[rule]) return NULL;
    const struct shmt_kernels *found = &LIVE[rule][write].of[regularised][values];
    return found->name ? found : NULL;
}

const struct shmt_kernels *shmt_kernels_of_rounds(bool values) { return &SHMT_ROUNDS_KERNELS[values]; }

extern const struct shmt_path SHMT_THIS_PATH; /* for path.c */
const struct shmt_path SHMT_THIS_PATH = {.find = shmt_kernels_find,
                                         .of_rounds = shmt_kernels_of_rounds,
                                         .apply = shmt_rule_apply,
                                         .squares = shmt_rule_squares,
                                         .terms_sum = shmt_terms_sum,
                                         .merge_damped = shmt_merge_damped};
