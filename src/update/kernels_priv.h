/* The kernels as templates: whole examples, groups and dense stretches, on what row_priv.h and push_priv.h do with one row.
 * Each rule has a file that compiles them for its write modes, once for each CPU path (path.h); kernels.c finds them.
 *
 * An epoch over sparse data is bound by memory, twice. The data, 8 bytes per nonzero, come from far away in shuffled order,
 * which the CPU's own prefetcher does not guess: so each kernel asks for the lines of the example AHEAD places from the one
 * in hand. It asks for them into the second-level cache. The first level has few slots for outstanding misses, and those
 * waiting for memory would hold up the misses of weights (measured on Zen 4: 175 ns per RCV1-shaped example with requests
 * into the first level, 147 into the second). The weights are where they are: 47,000 of them fit in the second level, where
 * out-of-order execution hides most of the latency, and asking for them costs more than it brings (20 %). Those of a larger
 * table are asked for one example before (1,000,000 features: 30 % won), and the rule's state with them.
 *
 * Of each example as many lines are asked for as the first ones take on average. A number that changes from row to row is
 * guessed wrong by the CPU, twice per example (4 % won), and what is asked for behind a short row is mostly the next one.
 *
 * Requests sit in functions that must be inlined: gcc takes one that only prefetches for a function without effect, and
 * drops the call. */
#pragma once

#include "update/push_priv.h"

enum {
    SHMT_CACHE_LINE = 64,
    SHMT_AHEAD = 8,             /* 4 to 16 are alike; less comes too late */
    SHMT_NEAR_FLOATS = 1 << 18, /* a table, with its state, of at most 1 MiB is taken to be in the second-level cache */
    SHMT_SECOND_LEVEL = 2,      /* the third argument of __builtin_prefetch */
    SHMT_JUDGED_BY = 8,         /* examples */
    SHMT_MOST_LINES = 16,
};

/* Lines of ids, and of values, that one example takes, for shmt_fetch_row; one more, because a row seldom begins where a line
 * does. */
SHMT_INLINE uint32_t shmt_row_lines(const struct shmtrain_csr *x) {
    uint64_t n = 0;
    const uint32_t judged = x->n < SHMT_JUDGED_BY ? x->n : SHMT_JUDGED_BY;
    for (uint32_t k = 0; k < judged; k++) n += shmt_row_at(x, k, false).n;
    const uint64_t lines = judged ? n * sizeof *x->id / judged / SHMT_CACHE_LINE + 2 : 1;
    return (uint32_t)(lines < SHMT_MOST_LINES ? lines : SHMT_MOST_LINES);
}

/* At least `lines` lines from `from` on, and all up to `to`. Asking for what is not there does no harm. */
SHMT_INLINE void shmt_fetch_lines(const void *from, const void *to, uint32_t lines) {
    const char *at = from;
    for (uint32_t i = 0; i < lines; i++) __builtin_prefetch(at + (uint64_t)i * SHMT_CACHE_LINE, 0, SHMT_SECOND_LEVEL);
    at += (uint64_t)lines * SHMT_CACHE_LINE;
    for (; __builtin_expect(at < (const char *)to, 0); at += SHMT_CACHE_LINE) __builtin_prefetch(at, 0, SHMT_SECOND_LEVEL);
}

/* Asks for the nonzeros of example k, and for the place where those of an example still further on stand. */
SHMT_INLINE void shmt_fetch_row(const struct shmtrain_csr *x, uint64_t k, uint32_t lines, bool values) {
    if (k + SHMT_AHEAD < x->n) __builtin_prefetch(x->start + (x->order ? x->order[k + SHMT_AHEAD] : k + SHMT_AHEAD));
    if (k >= x->n) return;
    const struct shmt_row row = shmt_row_at(x, (uint32_t)k, values);
    shmt_fetch_lines(row.id, row.id + row.n, lines);
    if (values) shmt_fetch_lines(row.value, row.value + row.n, lines);
}

/* The weights of example k, and `planes` words of their state. */
SHMT_INLINE void shmt_fetch_weights(const struct shmt_span *span, const struct shmtrain_csr *x, uint64_t k, uint32_t planes) {
    if (k >= x->n) return;
    const struct shmt_row row = shmt_row_at(x, (uint32_t)k, false);
    for (uint64_t j = 0; j < row.n; j++) {
        __builtin_prefetch(span->weight + row.id[j]);
        for (uint32_t p = 0; p < planes; p++) __builtin_prefetch(span->state + p * span->plane + row.id[j], 1);
    }
}

/* Before example k is read: what the examples after it will need. */
SHMT_INLINE void shmt_look_ahead(const struct shmt_span *span, const struct shmtrain_csr *x, uint64_t k, uint32_t planes,
                                 uint32_t lines, struct shmt_how how) {
    shmt_fetch_row(x, k + SHMT_AHEAD, lines, how.values);
    if (span->rows * (1 + planes) > SHMT_NEAR_FLOATS) shmt_fetch_weights(span, x, k + 1, planes);
}

/* State words that a push needs. */
SHMT_INLINE uint32_t shmt_push_planes(struct shmt_how how) { return shmt_how_live(how) ? shmt_how_planes(how) : 0; }

SHMT_INLINE float shmt_dot_one(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, uint32_t planes,
                               uint32_t lines, struct shmt_how how) {
    shmt_look_ahead(span, x, k, planes, lines, how);
    if (shmt_how_counts(how)) return shmt_counted_dot(span, shmt_row_at(x, k, how.values), x->bias, how);
    const float dot = shmt_row_dot(span->weight, shmt_row_at(x, k, how.values), how);
    return x->bias ? dot + shmt_weight(span->weight + span->rows - 1, how) : dot;
}

SHMT_INLINE void shmt_dot_rows(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out,
                               struct shmt_how how) {
    const uint32_t lines = shmt_row_lines(x);
    for (uint32_t k = 0; k < x->n; k++) dot_out[k] = shmt_dot_one(span, x, k, 0, lines, how);
}

/* A slope of 0, as the hinge has it beyond the margin, changes nothing where the rule has no motion of its own. */
SHMT_INLINE bool shmt_is_idle(struct shmt_how how) {
    if (how.write == SHMT_WRITE_AGGREGATE) return true;
    /* the other rules have averages, which forget */
    const bool sums = shmt_how_rule(how) == SHMT_RULE_SGD || shmt_how_rule(how) == SHMT_RULE_ADAGRAD;
    const bool moves = how.regularised || !sums;
    return !moves && !shmt_how_counts(how); /* updates that are counted are counted all */
}

/* Where nothing changes nothing is written, so that no line is taken away from other cores. */
SHMT_INLINE void shmt_push_example(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, float slope,
                                   const struct shmt_update *u, struct shmt_how how) {
    const struct shmt_row row = shmt_row_at(x, k, how.values);
    if (slope == 0 && shmt_is_idle(how)) return;
    if (how.write == SHMT_WRITE_AGGREGATE) {
        shmt_row_add(span, row, slope, how);
        if (x->bias) shmt_bias_add(span, slope);
        return;
    }
    const struct shmt_step step = shmt_step_of(slope, u, how);
    shmt_live_push(span, row, &step, how);
    if (x->bias) shmt_live_push_bias(span, &step, how);
}

/* In groups: all dot products, then `slope` once, then all pushes; or (slope NULL) pushes alone, with slopes[k] of example
 * k. One function for both, because it is compiled for each of some hundred sets. */
SHMT_INLINE void shmt_push_groups(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group,
                                  shmtrain_slope *slope, void *arg, const float *slopes, const struct shmt_update *u,
                                  struct shmt_how how) {
    float dot[SHMT_MAX_GROUP], own[SHMT_MAX_GROUP];
    const uint32_t lines = shmt_row_lines(x), planes = shmt_push_planes(how);
    for (uint32_t first = 0, n; first < x->n; first += n) {
        n = x->n - first < group ? x->n - first : group;
        if (slope) {
            for (uint32_t k = 0; k < n; k++) dot[k] = shmt_dot_one(span, x, first + k, planes, lines, how);
            slope(arg, first, n, dot, own);
        }
        for (uint32_t k = 0; k < n; k++) {
            if (!slope) shmt_look_ahead(span, x, first + k, planes, lines, how);
            shmt_push_example(span, x, first + k, slope ? own[k] : slopes[first + k], u, how);
        }
    }
    if (shmt_how_counts(how)) shmt_show_rows(span, x);
}

/* What all live sets share (kernels.c). */
void shmt_need_values(const struct shmt_span *span, const struct shmtrain_csr *x);
void shmt_need_ones(const struct shmt_span *span, const struct shmtrain_csr *x);
void shmt_live_dot_values(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out);
void shmt_live_dot_ones(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out);

/* The sparse kernels of one set, compiled for what its `how` says. */
#define SHMT_SPARSE_KERNELS(set, ...)                                                                                       \
    static const struct shmt_how set##_how = {__VA_ARGS__};                                                                 \
    __attribute__((noinline)) static void set##_push(const struct shmt_span *span, const struct shmtrain_csr *x,            \
                                                     uint32_t group, shmtrain_slope *slope, void *arg, const float *slopes, \
                                                     const struct shmt_update *u) {                                         \
        shmt_push_groups(span, x, group, slope, arg, slopes, u, set##_how);                                                 \
    }                                                                                                                       \
    __attribute__((nonnull(3))) static void set##_push_sparse(const struct shmt_span *span, const struct shmtrain_csr *x,   \
                                                              const float *slope, const struct shmt_update *u) {            \
        set##_push(span, x, SHMT_MAX_GROUP, NULL, NULL, slope, u);                                                          \
    }                                                                                                                       \
    __attribute__((nonnull(4))) static void set##_each(const struct shmt_span *span, const struct shmtrain_csr *x,          \
                                                       uint32_t group, shmtrain_slope *slope, void *arg,                    \
                                                       const struct shmt_update *u) {                                       \
        set##_push(span, x, group, slope, arg, NULL, u);                                                                    \
    }

/* The live sets for one write mode and SHMT_ONE_RULE, or another rule: with values and all ones. */
#define SHMT_LIVE_KERNELS(set, WRITE, REGULARISED)    SHMT_LIVE_KERNELS_OF(set, WRITE, SHMT_ONE_RULE, REGULARISED, false)
#define SHMT_COUNTING_KERNELS(set, RULE, REGULARISED) SHMT_LIVE_KERNELS_OF(set, SHMT_WRITE_RACY, RULE, REGULARISED, true)
#define SHMT_LIVE_KERNELS_OF(set, WRITE, RULE, REGULARISED, COUNTED)                                                      \
    SHMT_SPARSE_KERNELS(set##_ones, .write = (WRITE), .rule = (RULE), .regularised = (REGULARISED), .counted = (COUNTED), \
                        .clips = (REGULARISED))                                                                           \
    SHMT_SPARSE_KERNELS(set##_values, .write = (WRITE), .rule = (RULE), .values = true, .regularised = (REGULARISED),     \
                        .counted = (COUNTED), .clips = (REGULARISED))                                                     \
    static void set##_push_dense(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,                \
                                 const struct shmt_update *u) {                                                           \
        shmt_push_floats(span, at, n, grad, u, set##_values_how);                                                         \
    }

/* All of a rule that bears every live write mode. */
#define SHMT_RULE_KERNELS(name)                                             \
    SHMT_LIVE_KERNELS(racy_##name, SHMT_WRITE_RACY, false)                  \
    SHMT_LIVE_KERNELS(racy_##name##_regularised, SHMT_WRITE_RACY, true)     \
    SHMT_LIVE_KERNELS(atomic_##name, SHMT_WRITE_ATOMIC, false)              \
    SHMT_LIVE_KERNELS(atomic_##name##_regularised, SHMT_WRITE_ATOMIC, true) \
    SHMT_LIVE_KERNELS(locked_##name, SHMT_WRITE_LOCKED, false)              \
    SHMT_LIVE_KERNELS(locked_##name##_regularised, SHMT_WRITE_LOCKED, true)

/* [values] */
#define SHMT_LIVE_TABLE(set)                                                                                           \
    {                                                                                                                  \
        {#set "_ones", shmt_need_ones, shmt_live_dot_ones, set##_ones_push_sparse, set##_ones_each, set##_push_dense}, \
            {#set "_values",           shmt_need_values,  shmt_live_dot_values,                                        \
             set##_values_push_sparse, set##_values_each, set##_push_dense},                                           \
    }

/* [regularised][values]; a name of NULL: the rule cannot bear the write mode. */
struct shmt_live_set {
    struct shmt_kernels of[2][2];
};

/* The table of such a rule. */
#define SHMT_RULE_TABLE(name)                                                                                   \
    {                                                                                                           \
        [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_##name), SHMT_LIVE_TABLE(racy_##name##_regularised)}},       \
        [SHMT_WRITE_ATOMIC] = {{SHMT_LIVE_TABLE(atomic_##name), SHMT_LIVE_TABLE(atomic_##name##_regularised)}}, \
        [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_##name), SHMT_LIVE_TABLE(locked_##name##_regularised)}}, \
    }

/* [enum shmt_write], the live ones */
#define SHMT_LIVE_WRITES 3
extern const struct shmt_live_set SHMT_SGD_KERNELS[SHMT_LIVE_WRITES], SHMT_MOMENTUM_KERNELS[SHMT_LIVE_WRITES],
    SHMT_ADAGRAD_KERNELS[SHMT_LIVE_WRITES], SHMT_ADAM_KERNELS[SHMT_LIVE_WRITES], SHMT_FTRL_KERNELS[SHMT_LIVE_WRITES],
    SHMT_NESTEROV_KERNELS[SHMT_LIVE_WRITES], SHMT_RMSPROP_KERNELS[SHMT_LIVE_WRITES], SHMT_ADADELTA_KERNELS[SHMT_LIVE_WRITES],
    SHMT_ADAMW_KERNELS[SHMT_LIVE_WRITES];

extern const struct shmt_kernels SHMT_AGGREGATE_KERNELS[2], SHMT_ROUNDS_KERNELS[2]; /* [values] */
