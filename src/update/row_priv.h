/* One example against the weights: reading a row and its dot product, as templates. Pushes are in push_priv.h.
 *
 * Every function here is inlined into each kernel, with `how` a constant there, so that its questions are answered when
 * compiling and none is left in a loop. The arithmetic and its order are those of kernels.h. Rows of four are written as
 * vectors, which compilers for machines without them take apart; the loads and stores of weights stay scalar, because a
 * row's columns are scattered. Where there are registers for eight lanes, row_wide_priv.h has the dot product. */
#pragma once

#include "update/path_names_priv.h"

#include <string.h>

#include "update/kernels.h"
#include "update/live.h"

/* Where nothing is optimised, copies would keep what their `how` rules out, and one file would take a minute to compile. */
#ifdef __OPTIMIZE__
#    define SHMT_INLINE static inline __attribute__((always_inline))
#else
#    define SHMT_INLINE static inline
#endif
#define SHMT_ONCE __attribute__((noinline, unused)) static /* in the file, however many kernels it has */

/* What a kernel is compiled for. */
struct shmt_how {
    enum shmt_write write;
    enum shmt_rule_kind rule;
    bool values;      /* or all ones */
    bool regularised; /* with L1, L2 or weight decay */
    bool moving;      /* aggregate: others may be at the weights meanwhile */
    bool counted;     /* racy: each parameter counts its updates (counted_priv.h) */
    bool clips;       /* gradients may be limited */
};

SHMT_INLINE bool shmt_how_live(struct shmt_how how) { return how.write != SHMT_WRITE_AGGREGATE; }

/* The rule, and whether updates are counted. A file with kernels of one rule defines SHMT_ONE_RULE before it includes this, and
 * only the file with kernels that count defines SHMT_COUNTS: then the compiler drops what they rule out before it inlines these
 * functions into a hundred kernels, not after, which takes a third of the time. */
SHMT_INLINE enum shmt_rule_kind shmt_how_rule(struct shmt_how how) {
#ifdef SHMT_ONE_RULE
    (void)how;
    return SHMT_ONE_RULE;
#else
    return how.rule;
#endif
}

SHMT_INLINE bool shmt_how_counts(struct shmt_how how) {
#ifdef SHMT_COUNTS
    return how.counted;
#else
    (void)how;
    return false;
#endif
}

typedef float shmt_four __attribute__((vector_size(16)));

/* Example k of a csr: its nonzeros. value is NULL where all are 1. */
struct shmt_row {
    const uint32_t *id;
    const float *value;
    uint64_t n;
};

SHMT_INLINE struct shmt_row shmt_row_at(const struct shmtrain_csr *x, uint32_t k, bool values) {
    const uint64_t i = x->order ? x->order[k] : k, from = x->start[i];
    return (struct shmt_row){.id = x->id + from, .value = values ? x->value + from : NULL, .n = x->start[i + 1] - from};
}

SHMT_INLINE struct shmt_row shmt_row_skip(struct shmt_row row, uint32_t n, bool values) {
    return (struct shmt_row){.id = row.id + n, .value = values ? row.value + n : NULL, .n = row.n - n};
}

/* Weights of the live modes change under our hands, and so do those of `aggregate` where updates come in rounds. With
 * batches they rest, and a plain access lets race detectors see when they do not. */
SHMT_INLINE float shmt_weight(const float *at, struct shmt_how how) {
    return shmt_how_live(how) || how.moving ? shmt_live_load(at) : *at;
}

SHMT_INLINE void shmt_weight_put(float *at, float value, struct shmt_how how) {
    if (shmt_how_live(how))
        shmt_live_store(at, value);
    else
        *at = value;
}

SHMT_INLINE shmt_four shmt_four_weights(const float *w, const uint32_t *id, struct shmt_how how) {
    return (shmt_four){shmt_weight(w + id[0], how), shmt_weight(w + id[1], how), shmt_weight(w + id[2], how),
                       shmt_weight(w + id[3], how)};
}

SHMT_INLINE shmt_four shmt_four_values(const float *value, struct shmt_how how) {
    shmt_four four = {1, 1, 1, 1};
    if (how.values) memcpy(&four, value, sizeof four);
    return four;
}

SHMT_INLINE float shmt_product(const float *w, struct shmt_row row, uint32_t k, struct shmt_how how) {
    return shmt_weight(w + row.id[k], how) * (how.values ? row.value[k] : 1.0f);
}

SHMT_INLINE shmt_four shmt_four_products(const float *w, struct shmt_row row, struct shmt_how how) {
    return shmt_four_weights(w, row.id, how) * shmt_four_values(row.value, how);
}

/* The products of a row of less than 4 elements; 0 in the other lanes. Lanes begin at 0 and never become -0, so adding these
 * zeros changes no bit. (A loop over the lanes would send them through memory.) */
SHMT_INLINE shmt_four shmt_last_products(const float *w, struct shmt_row row, struct shmt_how how) {
    shmt_four last = {0, 0, 0, 0};
    if (row.n > 0) last[0] = shmt_product(w, row, 0, how);
    if (row.n > 1) last[1] = shmt_product(w, row, 1, how);
    if (row.n > 2) last[2] = shmt_product(w, row, 2, how);
    return last;
}

/* The lanes, four and four. */
SHMT_INLINE float shmt_lanes_sum(shmt_four low, shmt_four high) {
    const shmt_four sum = low + high;
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

SHMT_INLINE float shmt_row_dot_by_four(const float *w, struct shmt_row row, struct shmt_how how) {
    shmt_four low = {0, 0, 0, 0}, high = {0, 0, 0, 0};
    for (; row.n >= 8; row = shmt_row_skip(row, 8, how.values)) {
        low += shmt_four_products(w, row, how);
        high += shmt_four_products(w, shmt_row_skip(row, 4, how.values), how);
    }
    if (row.n >= 4) {
        low += shmt_four_products(w, row, how);
        high += shmt_last_products(w, shmt_row_skip(row, 4, how.values), how);
    } else {
        low += shmt_last_products(w, row, how);
    }
    return shmt_lanes_sum(low, high);
}

#ifdef __AVX2__
#    include "update/row_wide_priv.h"
#endif

SHMT_INLINE float shmt_row_dot(const float *w, struct shmt_row row, struct shmt_how how) {
#ifdef __AVX2__
    if (row.n >= 8) return shmt_row_dot_by_eight(w, row, how);
#endif
    return shmt_row_dot_by_four(w, row, how);
}
