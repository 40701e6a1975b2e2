/* The kernels for every machine: C without instructions of one CPU. See kernels.h for who calls them and what they compute.
 *
 * An epoch over sparse data is bound by memory, twice. The data, 8 bytes per nonzero, come from far away in shuffled order,
 * which the CPU's own prefetcher does not guess: so each kernel asks for the lines of the example AHEAD places from the one
 * in hand. It asks for them into the second-level cache. The first level has few slots for outstanding misses, and those
 * waiting for memory would hold up the misses of weights (measured on Zen 4: 175 ns per RCV1-shaped example with requests
 * into the first level, 147 into the second). The weights are where they are: 47,000 of them fit in the second level, where
 * out-of-order execution hides most of the latency, and asking for them costs more than it brings (20 %). Those of a larger
 * table are asked for one example before (1,000,000 features: 30 % won).
 *
 * Requests sit in functions that must be inlined: gcc takes one that only prefetches for a function without effect, and
 * drops the call. */
#include "store/kernels.h"

#include "store/row_priv.h"

enum {
    CACHE_LINE = 64,
    AHEAD = 8,           /* 4 to 16 are alike; less comes too late */
    NEAR_ROWS = 1 << 18, /* a table of at most 1 MiB is taken to be in the second-level cache */
    TO_SECOND_LEVEL = 2, /* the third argument of __builtin_prefetch */
};

SHMT_INLINE void fetch_lines(const void *from, const void *to) {
    for (const char *at = from; at < (const char *)to; at += CACHE_LINE) __builtin_prefetch(at, 0, TO_SECOND_LEVEL);
    __builtin_prefetch((const char *)to - 1, 0, TO_SECOND_LEVEL); /* a row seldom begins where a line does */
}

/* Asks for the nonzeros of example k, and for the place where those of an example still further on stand. */
SHMT_INLINE void fetch_row(const struct shmtrain_csr *x, uint64_t k, bool values) {
    if (k + AHEAD < x->n) __builtin_prefetch(x->start + (x->order ? x->order[k + AHEAD] : k + AHEAD));
    if (k >= x->n) return;
    const struct shmt_row row = shmt_row_at(x, (uint32_t)k, values);
    fetch_lines(row.id, row.id + row.n);
    if (values) fetch_lines(row.value, row.value + row.n);
}

SHMT_INLINE void fetch_weights(const struct shmt_span *span, const struct shmtrain_csr *x, uint64_t k) {
    if (k >= x->n) return;
    const struct shmt_row row = shmt_row_at(x, (uint32_t)k, false);
    for (uint64_t j = 0; j < row.n; j++) __builtin_prefetch(span->weight + row.id[j]);
}

/* Before example k is read: what the examples after it will need. */
SHMT_INLINE void look_ahead(const struct shmt_span *span, const struct shmtrain_csr *x, uint64_t k, struct shmt_how how) {
    fetch_row(x, k + AHEAD, how.values);
    if (span->rows > NEAR_ROWS) fetch_weights(span, x, k + 1);
}

SHMT_INLINE void need_rows(const struct shmt_span *span, const struct shmtrain_csr *x, struct shmt_how how) {
    for (uint32_t k = 0; k < x->n; k++) {
        fetch_row(x, (uint64_t)k + AHEAD, how.values);
        fetch_weights(span, x, k);
    }
}

SHMT_INLINE float dot_one(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, struct shmt_how how) {
    look_ahead(span, x, k, how);
    const float dot = shmt_row_dot(span->weight, shmt_row_at(x, k, how.values), how);
    return x->bias ? dot + shmt_weight(span->weight + span->rows - 1, how) : dot;
}

SHMT_INLINE void push_one(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, struct shmt_step step,
                          struct shmt_how how) {
    shmt_row_push(span, shmt_row_at(x, k, how.values), step, how);
    if (x->bias) shmt_bias_push(span, step, how);
}

SHMT_INLINE void dot_rows(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out, struct shmt_how how) {
    for (uint32_t k = 0; k < x->n; k++) dot_out[k] = dot_one(span, x, k, how);
}

SHMT_INLINE void push_rows(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                           const struct shmt_update *u, struct shmt_how how) {
    for (uint32_t k = 0; k < x->n; k++) {
        look_ahead(span, x, k, how);
        push_one(span, x, k, shmt_step_of(slope[k], u, how), how);
    }
}

SHMT_INLINE void each_group(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope,
                            void *arg, const struct shmt_update *u, struct shmt_how how) {
    float dot[SHMT_MAX_GROUP], slopes[SHMT_MAX_GROUP];
    for (uint32_t first = 0, n; first < x->n; first += n) {
        n = x->n - first < group ? x->n - first : group;
        for (uint32_t k = 0; k < n; k++) dot[k] = dot_one(span, x, first + k, how);
        slope(arg, first, n, dot, slopes);
        for (uint32_t k = 0; k < n; k++) push_one(span, x, first + k, shmt_step_of(slopes[k], u, how), how);
    }
}

SHMT_INLINE void push_floats(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,
                             const struct shmt_update *u, struct shmt_how how) {
    float *sink = span->sink + at;
    if (how.write == SHMT_WRITE_AGGREGATE) {
        for (uint64_t i = 0; i < n; i++) sink[i] += grad[i];
        if (span->touched && n > 0)
            memset(span->touched + at / SHMT_TOUCH_FLOATS, 1, (at + n - 1) / SHMT_TOUCH_FLOATS - at / SHMT_TOUCH_FLOATS + 1);
        return;
    }
    const float d = u->rate * u->l2;
    for (uint64_t i = 0; i < n; i++) {
        const float w = shmt_live_load(sink + i), a = u->rate * (grad[i] * u->scale);
        shmt_live_store(sink + i, how.l2 ? w - (a + d * w) / (1 + d) : w - a);
    }
}

/* One set of kernels, compiled for WRITE, VALUES and L2. */
#define KERNELS(set, WRITE, VALUES, L2)                                                                                       \
    static const struct shmt_how set##_how = {WRITE, VALUES, L2};                                                             \
    static void set##_need(const struct shmt_span *span, const struct shmtrain_csr *x) { need_rows(span, x, set##_how); }     \
    static void set##_dot(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {                       \
        dot_rows(span, x, dot_out, set##_how);                                                                                \
    }                                                                                                                         \
    static void set##_push_sparse(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,             \
                                  const struct shmt_update *u) {                                                              \
        push_rows(span, x, slope, u, set##_how);                                                                              \
    }                                                                                                                         \
    static void set##_each(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope, \
                           void *arg, const struct shmt_update *u) {                                                          \
        each_group(span, x, group, slope, arg, u, set##_how);                                                                 \
    }                                                                                                                         \
    static void set##_push_dense(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,                    \
                                 const struct shmt_update *u) {                                                               \
        push_floats(span, at, n, grad, u, set##_how);                                                                         \
    }

#define TABLE(set) \
    { #set, set##_need, set##_dot, set##_push_sparse, set##_each, set##_push_dense }

KERNELS(racy_ones, SHMT_WRITE_RACY, false, false)
KERNELS(racy_ones_l2, SHMT_WRITE_RACY, false, true)
KERNELS(racy_values, SHMT_WRITE_RACY, true, false)
KERNELS(racy_values_l2, SHMT_WRITE_RACY, true, true)
KERNELS(aggregate_ones, SHMT_WRITE_AGGREGATE, false, false)
KERNELS(aggregate_values, SHMT_WRITE_AGGREGATE, true, false)

/* [values][l2]; in aggregate L2 is part of the apply phase, so these kernels do not know it. */
static const struct shmt_kernels racy[2][2] = {{TABLE(racy_ones), TABLE(racy_ones_l2)},
                                               {TABLE(racy_values), TABLE(racy_values_l2)}};
static const struct shmt_kernels aggregate[2] = {TABLE(aggregate_ones), TABLE(aggregate_values)};

const struct shmt_kernels *shmt_kernels_find(enum shmt_write write, enum shmt_rule_kind rule, bool values, bool regularised) {
    if (write == SHMT_WRITE_AGGREGATE) return &aggregate[values];
    return write == SHMT_WRITE_RACY && rule == SHMT_RULE_SGD ? &racy[values][regularised] : NULL;
}
