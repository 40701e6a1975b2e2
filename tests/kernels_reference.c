/* Plain loops: see kernels_reference.h. */
#include "kernels_reference.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static uint64_t example_at(const struct shmtrain_csr *x, uint32_t k) { return x->order ? x->order[k] : k; }

static void need(const struct shmt_span *span, const struct shmtrain_csr *x) { (void)span, (void)x; }

static float dot_of(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k) {
    const uint64_t i = example_at(x, k), from = x->start[i], n = x->start[i + 1] - from;
    float lane[8] = {0};
    for (uint64_t j = 0; j < n; j++) {
        const float product = span->weight[x->id[from + j]] * (x->value ? x->value[from + j] : 1.0f);
        lane[j % 8] += product;
    }
    const float sum = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    return x->bias ? sum + span->weight[span->rows - 1] : sum;
}

static void dot(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    for (uint32_t k = 0; k < x->n; k++) dot_out[k] = dot_of(span, x, k);
}

/* ---- live modes: one parameter ---- */

/* rate, l1 and l2: what this parameter moves with, its share included. */
static float proximal(float w, float a, float t, float d, bool l1) {
    if (!l1) return w - (a + d * w) / (1 + d);
    const float moved = w - a, size = fabsf(moved) - t;
    return size <= 0 ? 0 : copysignf(size, moved) / (1 + d);
}

static float stepped(float w, float a, float rate, float share, const struct shmt_update *u) {
    return proximal(w, a, (rate * u->l1) * share, (rate * u->l2) * share, u->l1 > 0);
}

/* sign(g) min(|g|, most), where there is a most; of sgd all is times the rate. */
static float clipped(float g, float most) { return most > 0 && fabsf(g) > most ? copysignf(most, g) : g; }

static float normal(float x) { return fabsf(x) < FLT_MIN ? 0 : x; }

/* Float `at` of the table; `a` is rate * g for sgd, which multiplies in another order. */
typedef void push_one(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u);

static void push_sgd(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u) {
    float *w = span->sink + at;
    (void)g;
    *w = stepped(*w, a, u->rate, share, u);
}

static void push_momentum(const struct shmt_span *span, uint64_t at, float g, float a, float share,
                          const struct shmt_update *u) {
    float *w = span->sink + at, *velocity = span->state + at;
    (void)a;
    *velocity = normal(u->momentum * *velocity + g);
    *w = stepped(*w, u->rate * *velocity, u->rate / (1 - u->momentum), share, u);
}

static void push_adagrad(const struct shmt_span *span, uint64_t at, float g, float a, float share,
                         const struct shmt_update *u) {
    float *w = span->sink + at, *squares = span->state + at;
    (void)a;
    *squares += g * g;
    const float rate = *squares != 0 ? u->rate / (sqrtf(*squares) + u->epsilon) : 0;
    *w = stepped(*w, rate * g, rate, share, u);
}

static void push_nesterov(const struct shmt_span *span, uint64_t at, float g, float a, float share,
                          const struct shmt_update *u) {
    float *w = span->sink + at, *velocity = span->state + at;
    (void)a;
    *velocity = normal(u->momentum * *velocity + g);
    *w = stepped(*w, u->rate * (g + u->momentum * *velocity), u->rate / (1 - u->momentum), share, u);
}

static void push_rmsprop(const struct shmt_span *span, uint64_t at, float g, float a, float share,
                         const struct shmt_update *u) {
    float *w = span->sink + at, *square = span->state + at;
    (void)a;
    *square = normal(*square + (1 - u->rho) * (g * g - *square));
    const float rate = *square != 0 ? u->rate / (sqrtf(*square) + u->epsilon) : 0;
    *w = stepped(*w, rate * g, rate, share, u);
}

static void push_adadelta(const struct shmt_span *span, uint64_t at, float g, float a, float share,
                          const struct shmt_update *u) {
    float *w = span->sink + at, *square = span->state + at, *step = square + span->plane;
    (void)a;
    *square = normal(*square + (1 - u->rho) * (g * g - *square));
    const float ratio = sqrtf(*step + u->epsilon) / sqrtf(*square + u->epsilon), moved = ratio * g;
    *step = normal(*step + (1 - u->rho) * (moved * moved - *step));
    const float rate = *square != 0 ? u->rate * ratio : 0;
    *w = stepped(*w, rate * g, rate, share, u);
}

static void push_adam(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u) {
    float *w = span->sink + at, *mean = span->state + at, *square = mean + span->plane;
    float *correct1 = square + span->plane, *correct2 = correct1 + span->plane;
    (void)a;
    *mean = normal(*mean + (1 - u->momentum) * (g - *mean));
    *square = normal(*square + (1 - u->beta2) * (g * g - *square));
    *correct1 = u->momentum * *correct1 + (1 - u->momentum);
    *correct2 = u->beta2 * *correct2 + (1 - u->beta2);
    const float rate = *square != 0 ? u->rate / (sqrtf(*square / *correct2) + u->epsilon) : 0;
    *w = stepped(*w, rate * (*mean / *correct1), rate, share, u);
}

static void push_adamw(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u) {
    float *w = span->sink + at;
    *w -= fminf(1, u->rate * u->weight_decay * share) * *w;
    push_adam(span, at, g, a, share, u);
}

static void push_ftrl(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u) {
    float *w = span->sink + at, *z = span->state + at, *squares = z + span->plane;
    const float before = *squares;
    (void)a, (void)share; /* l1 and l2 are of all pushes together, not of each */
    *squares = before + g * g;
    *z += g - (sqrtf(*squares) - sqrtf(before)) / u->rate * *w;
    const float size = fabsf(*z) - u->l1;
    const float hold = (u->beta + sqrtf(*squares)) / u->rate + u->l2;
    if (hold != 0) *w = size <= 0 ? 0 : -copysignf(size, *z) / hold;
}

/* ---- live modes: examples and dense gradients ---- */

/* One update more, and the value that it has made. */
static void count(_Atomic uint64_t *word, float value) {
    const uint64_t updates = (load_relaxed(word) >> 32) + 1; /* one thread */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    store_relaxed(word, updates << 32 | bits);
}

static void push_at(const struct shmt_span *span, uint64_t at, float g, float a, float share, const struct shmt_update *u,
                    push_one *push) {
    push(span, at, clipped(g, u->clip), clipped(a, u->rate * u->clip), share, u);
    if (span->counted) count(&span->counted[at], span->sink[at]);
}

static void push_example(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, float slope,
                         const struct shmt_update *u, push_one *push) {
    const uint64_t i = example_at(x, k);
    struct shmt_update unruled = *u;
    shmt_update_unrule(&unruled);
    for (uint64_t j = x->start[i]; j < x->start[i + 1]; j++) {
        const float value = x->value ? x->value[j] : 1.0f, share = span->l2_share ? span->l2_share[x->id[j]] : 1.0f;
        push_at(span, x->id[j], slope * value, (u->rate * slope) * value, share, u, push);
    }
    if (x->bias) push_at(span, span->rows - 1, slope, u->rate * slope, 1, &unruled, push);
}

static void push_examples(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                          const struct shmt_update *u, push_one *push) {
    for (uint32_t k = 0; k < x->n; k++) push_example(span, x, k, slope[k], u, push);
}

static void push_floats(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u,
                        push_one *push) {
    for (uint64_t i = 0; i < n; i++) push_at(span, at + i, grad[i] * u->scale, u->rate * (grad[i] * u->scale), 1, u, push);
}

/* ---- aggregate ---- */

static void add_at(const struct shmt_span *span, uint64_t at, float g) {
    span->sink[at] += g;
    if (span->touched) span->touched[at / SHMT_TOUCH_FLOATS] = 1;
}

static void add_examples(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                         const struct shmt_update *u, push_one *push) {
    (void)u, (void)push;
    for (uint32_t k = 0; k < x->n; k++) {
        const uint64_t i = example_at(x, k);
        for (uint64_t j = x->start[i]; j < x->start[i + 1]; j++)
            add_at(span, x->id[j], slope[k] * (x->value ? x->value[j] : 1.0f));
        if (x->bias) add_at(span, span->rows - 1, slope[k]);
    }
}

static void add_floats(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u) {
    (void)u;
    for (uint64_t i = 0; i < n; i++) add_at(span, at + i, grad[i]);
}

/* ---- sets ---- */

typedef void push_all(const struct shmt_span *, const struct shmtrain_csr *, const float *slope, const struct shmt_update *,
                      push_one *);

/* A group is a csr of its own: examples first .. first + n - 1, named by their numbers. */
static void each(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope, void *arg,
                 const struct shmt_update *u, push_all *all, push_one *push) {
    for (uint32_t first = 0; first < x->n; first += group) {
        uint32_t order[SHMT_MAX_GROUP];
        float dots[SHMT_MAX_GROUP], slopes[SHMT_MAX_GROUP];
        struct shmtrain_csr part = *x;
        part.n = x->n - first < group ? x->n - first : group;
        part.order = order;
        for (uint32_t k = 0; k < part.n; k++) order[k] = (uint32_t)example_at(x, first + k);
        dot(span, &part, dots);
        slope(arg, first, part.n, dots, slopes);
        all(span, &part, slopes, u, push);
    }
}

#define REFERENCE(rule, ALL, PUSH)                                                                                             \
    static void rule##_sparse(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,                  \
                              const struct shmt_update *u) {                                                                   \
        ALL(span, x, slope, u, PUSH);                                                                                          \
    }                                                                                                                          \
    static void rule##_each(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope, \
                            void *arg, const struct shmt_update *u) {                                                          \
        each(span, x, group, slope, arg, u, ALL, PUSH);                                                                        \
    }
#define LIVE_REFERENCE(rule)                                                                           \
    REFERENCE(rule, push_examples, push_##rule)                                                        \
    static void rule##_dense(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, \
                             const struct shmt_update *u) {                                            \
        push_floats(span, at, n, grad, u, push_##rule);                                                \
    }

LIVE_REFERENCE(sgd)
LIVE_REFERENCE(momentum)
LIVE_REFERENCE(adagrad)
LIVE_REFERENCE(adam)
LIVE_REFERENCE(ftrl)
LIVE_REFERENCE(nesterov)
LIVE_REFERENCE(rmsprop)
LIVE_REFERENCE(adadelta)
LIVE_REFERENCE(adamw)
REFERENCE(aggregate, add_examples, NULL)

const struct shmt_kernels *shmt_kernels_reference(enum shmt_write write, enum shmt_rule_kind rule) {
    static const struct shmt_kernels live[SHMT_N_RULES] =
        {[SHMT_RULE_SGD] = {"sgd", need, dot, sgd_sparse, sgd_each, sgd_dense},
         [SHMT_RULE_MOMENTUM] = {"momentum", need, dot, momentum_sparse, momentum_each, momentum_dense},
         [SHMT_RULE_ADAGRAD] = {"adagrad", need, dot, adagrad_sparse, adagrad_each, adagrad_dense},
         [SHMT_RULE_ADAM] = {"adam", need, dot, adam_sparse, adam_each, adam_dense},
         [SHMT_RULE_FTRL] = {"ftrl", need, dot, ftrl_sparse, ftrl_each, ftrl_dense},
         [SHMT_RULE_NESTEROV] = {"nesterov", need, dot, nesterov_sparse, nesterov_each, nesterov_dense},
         [SHMT_RULE_RMSPROP] = {"rmsprop", need, dot, rmsprop_sparse, rmsprop_each, rmsprop_dense},
         [SHMT_RULE_ADADELTA] = {"adadelta", need, dot, adadelta_sparse, adadelta_each, adadelta_dense},
         [SHMT_RULE_ADAMW] = {"adamw", need, dot, adamw_sparse, adamw_each, adamw_dense}},
                                     sums = {"aggregate", need, dot, aggregate_sparse, aggregate_each, add_floats};
    return write == SHMT_WRITE_AGGREGATE ? &sums : &live[rule];
}
