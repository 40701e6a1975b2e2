/* One example against the weights: the inner loops of the kernels, as templates.
 *
 * Every function here is inlined into each kernel, with `how` a constant there, so that its questions are answered when
 * compiling and none is left in a loop. The arithmetic and its order are those of kernels.h. Rows of four are written as
 * vectors, which compilers for machines without them take apart; the loads and stores of weights stay scalar, because a
 * row's columns are scattered. */
#ifndef SHMT_STORE_ROW_PRIV_H
#define SHMT_STORE_ROW_PRIV_H

#include <string.h>

#include "store/kernels.h"
#include "store/live.h"

#define SHMT_INLINE static inline __attribute__((always_inline))

/* What a kernel is compiled for. */
struct shmt_how {
    enum shmt_write write;
    bool values, l2;
};

typedef float shmt_lanes __attribute__((vector_size(16)));

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

/* Weights of the live modes change under our hands. In aggregate they rest, and a plain access lets race detectors see when
 * they do not. */
SHMT_INLINE float shmt_weight(const float *at, struct shmt_how how) {
    return how.write == SHMT_WRITE_RACY ? shmt_live_load(at) : *at;
}

SHMT_INLINE void shmt_sink(float *at, float value, struct shmt_how how) {
    if (how.write == SHMT_WRITE_RACY)
        shmt_live_store(at, value);
    else
        *at = value;
}

SHMT_INLINE shmt_lanes shmt_four_weights(const float *w, const uint32_t *id, struct shmt_how how) {
    return (shmt_lanes){shmt_weight(w + id[0], how), shmt_weight(w + id[1], how), shmt_weight(w + id[2], how),
                        shmt_weight(w + id[3], how)};
}

SHMT_INLINE shmt_lanes shmt_four_values(const float *value, struct shmt_how how) {
    shmt_lanes four = {1, 1, 1, 1};
    if (how.values) memcpy(&four, value, sizeof four);
    return four;
}

SHMT_INLINE float shmt_product(const float *w, struct shmt_row row, uint32_t k, struct shmt_how how) {
    return shmt_weight(w + row.id[k], how) * (how.values ? row.value[k] : 1.0f);
}

SHMT_INLINE shmt_lanes shmt_four_products(const float *w, struct shmt_row row, struct shmt_how how) {
    return shmt_four_weights(w, row.id, how) * shmt_four_values(row.value, how);
}

/* The products of a row of less than 4 elements; 0 in the other lanes. Lanes begin at 0 and never become -0, so adding these
 * zeros changes no bit. (A loop over the lanes would send them through memory.) */
SHMT_INLINE shmt_lanes shmt_last_products(const float *w, struct shmt_row row, struct shmt_how how) {
    shmt_lanes last = {0, 0, 0, 0};
    if (row.n > 0) last[0] = shmt_product(w, row, 0, how);
    if (row.n > 1) last[1] = shmt_product(w, row, 1, how);
    if (row.n > 2) last[2] = shmt_product(w, row, 2, how);
    return last;
}

SHMT_INLINE float shmt_row_dot(const float *w, struct shmt_row row, struct shmt_how how) {
    shmt_lanes low = {0, 0, 0, 0}, high = {0, 0, 0, 0};
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
    const shmt_lanes sum = low + high;
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* What a push adds to or takes from a row. */
struct shmt_step {
    float slope; /* aggregate: the slope; live modes: rate * slope */
    float decay; /* live modes with L2: rate * l2 */
};

SHMT_INLINE struct shmt_step shmt_step_of(float slope, const struct shmt_update *u, struct shmt_how how) {
    const bool live = how.write == SHMT_WRITE_RACY;
    return (struct shmt_step){.slope = live ? u->rate * slope : slope, .decay = live && how.l2 ? u->rate * u->l2 : 0};
}

SHMT_INLINE shmt_lanes shmt_updated(shmt_lanes w, shmt_lanes a, shmt_lanes d, struct shmt_how how) {
    if (how.write == SHMT_WRITE_AGGREGATE) return w + a;
    return how.l2 ? w - (a + d * w) / (1 + d) : w - a;
}

SHMT_INLINE void shmt_mark(uint8_t *touched, uint64_t at) { touched[at / SHMT_TOUCH_FLOATS] = 1; }

/* Four elements, which are distinct: all are read before the first is written. `share` and `marks` say whether the span has
 * l2_share and touched. Lanes are named one by one, because a loop over them would send them through memory. */
SHMT_INLINE void shmt_push_four(const struct shmt_span *span, struct shmt_row row, struct shmt_step step, bool share,
                                bool marks, struct shmt_how how) {
    const uint32_t *id = row.id;
    float *sink = span->sink;
    shmt_lanes d = {step.decay, step.decay, step.decay, step.decay};
    if (share) d *= (shmt_lanes){span->l2_share[id[0]], span->l2_share[id[1]], span->l2_share[id[2]], span->l2_share[id[3]]};
    const shmt_lanes a = shmt_four_values(row.value, how) * step.slope;
    const shmt_lanes w = shmt_updated(shmt_four_weights(sink, id, how), a, d, how);
    shmt_sink(sink + id[0], w[0], how);
    shmt_sink(sink + id[1], w[1], how);
    shmt_sink(sink + id[2], w[2], how);
    shmt_sink(sink + id[3], w[3], how);
    if (!marks) return;
    shmt_mark(span->touched, id[0]);
    shmt_mark(span->touched, id[1]);
    shmt_mark(span->touched, id[2]);
    shmt_mark(span->touched, id[3]);
}

/* Element k alone. */
SHMT_INLINE void shmt_push_one(const struct shmt_span *span, struct shmt_row row, uint32_t k, struct shmt_step step, bool share,
                               bool marks, struct shmt_how how) {
    const uint32_t id = row.id[k];
    const shmt_lanes a = {(how.values ? row.value[k] : 1.0f) * step.slope},
                     d = {step.decay * (share ? span->l2_share[id] : 1.0f)};
    const shmt_lanes w = {shmt_weight(span->sink + id, how)};
    shmt_sink(span->sink + id, shmt_updated(w, a, d, how)[0], how);
    if (marks) shmt_mark(span->touched, id);
}

SHMT_INLINE void shmt_push_all(const struct shmt_span *span, struct shmt_row row, struct shmt_step step, bool share, bool marks,
                               struct shmt_how how) {
    for (; row.n >= 4; row = shmt_row_skip(row, 4, how.values)) shmt_push_four(span, row, step, share, marks, how);
    for (uint32_t k = 0; k < row.n; k++) shmt_push_one(span, row, k, step, share, marks, how);
}

SHMT_INLINE void shmt_row_push(const struct shmt_span *span, struct shmt_row row, struct shmt_step step, struct shmt_how how) {
    const bool share = how.write == SHMT_WRITE_RACY && how.l2 && span->l2_share;
    const bool marks = how.write == SHMT_WRITE_AGGREGATE && span->touched;
    if (share)
        shmt_push_all(span, row, step, true, false, how);
    else if (marks)
        shmt_push_all(span, row, step, false, true, how);
    else
        shmt_push_all(span, row, step, false, false, how);
}

/* The bias: the last row, an element of every example with value 1, without L2. */
SHMT_INLINE void shmt_bias_push(const struct shmt_span *span, struct shmt_step step, struct shmt_how how) {
    float *bias = span->sink + span->rows - 1;
    if (how.write == SHMT_WRITE_RACY)
        shmt_live_store(bias, shmt_live_load(bias) - step.slope);
    else
        *bias += step.slope;
    if (how.write == SHMT_WRITE_AGGREGATE && span->touched) shmt_mark(span->touched, span->rows - 1);
}

#endif
