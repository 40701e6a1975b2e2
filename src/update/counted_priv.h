/* Racy pushes of parameters that count their updates (option count-lost).
 *
 * A parameter and the number of its updates stand in one word of 64 bits: the count in its upper half, the bits of the f32 in its
 * lower one. A push loads the word, and stores the new value and one update more as one word. So whatever overwrites the value
 * overwrites its count, too, and updates that were made, less the sum of all counts, are those that were lost: nothing is
 * estimated.
 *
 * These kernels read and write words alone, so that a push has the race of a push that does not count: one load and one store
 * of one line. The plain floats beside them, which everybody else reads, are brought up to the words at the end of each call. A
 * word whose count is 0 has no value yet: it is the float's. */
#pragma once

#include "sync/host.h"
#include "update/counted.h"
#include "update/race.h"
#include "update/words_priv.h"

/* RACE(hogwild): as all parameters of racy pushes. relaxed: the word carries nothing but itself.
 *
 * Only while it has no value it says something of the float. Another worker may push for the first time between the two loads,
 * and bring the float up to that: a value whose update would not be counted. But then the word has one by now: the acquire pairs with
 * the release of the float in shmt_show_float, which has loaded the word before. */
SHMT_INLINE float shmt_counted_get(const _Atomic uint64_t *word, const float *begun, uint32_t *count_out) {
    uint64_t both = load_relaxed(word);
    if (shmt_counted_updates(both) == 0) {
        const float value = load_acquire((const _Atomic float *)begun);
        both = load_relaxed(word);
        *count_out = 0;
        if (shmt_counted_updates(both) == 0) return value;
    }
    *count_out = shmt_counted_updates(both);
    return shmt_counted_value(both);
}

SHMT_INLINE void shmt_counted_put(_Atomic uint64_t *word, float value, uint32_t count) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    store_relaxed(word, (uint64_t)(count + 1) << 32 | bits);
}

/* n: 4, or 1 for the first lane alone; a constant. As in words_priv.h, lanes are named one by one. */
SHMT_INLINE shmt_lanes shmt_counted_lanes_get(struct shmt_words at, const uint32_t *id, uint32_t n, uint32_t count_out[4]) {
    shmt_lanes x = {shmt_counted_get(at.counted + id[0], at.weight + id[0], &count_out[0])};
    if (n != 4) return x;
    x[1] = shmt_counted_get(at.counted + id[1], at.weight + id[1], &count_out[1]);
    x[2] = shmt_counted_get(at.counted + id[2], at.weight + id[2], &count_out[2]);
    x[3] = shmt_counted_get(at.counted + id[3], at.weight + id[3], &count_out[3]);
    return x;
}

SHMT_INLINE void shmt_counted_lanes_put(struct shmt_words at, const uint32_t *id, uint32_t n, shmt_lanes x,
                                        const uint32_t count[4]) {
    shmt_counted_put(at.counted + id[0], x[0], count[0]);
    if (n != 4) return;
    shmt_counted_put(at.counted + id[1], x[1], count[1]);
    shmt_counted_put(at.counted + id[2], x[2], count[2]);
    shmt_counted_put(at.counted + id[3], x[3], count[3]);
}

SHMT_INLINE float shmt_counted_product(const struct shmt_span *span, struct shmt_row row, uint64_t k, struct shmt_how how) {
    uint32_t count;
    const float w = shmt_counted_get(span->counted + row.id[k], span->weight + row.id[k], &count);
    return w * (how.values ? row.value[k] : 1.0f);
}

SHMT_INLINE shmt_four shmt_counted_products(const struct shmt_span *span, struct shmt_row row, uint64_t k,
                                            struct shmt_how how) {
    return (shmt_four){shmt_counted_product(span, row, k, how), shmt_counted_product(span, row, k + 1, how),
                       shmt_counted_product(span, row, k + 2, how), shmt_counted_product(span, row, k + 3, how)};
}

/* What shmt_row_dot gives, of words; and the bias. */
SHMT_INLINE float shmt_counted_dot(const struct shmt_span *span, struct shmt_row row, bool bias, struct shmt_how how) {
    shmt_four low = {0, 0, 0, 0}, high = {0, 0, 0, 0}, last = {0, 0, 0, 0};
    uint32_t count;
    uint64_t k = 0;
    for (; k + 8 <= row.n; k += 8) {
        low += shmt_counted_products(span, row, k, how);
        high += shmt_counted_products(span, row, k + 4, how);
    }
    const bool fills_low = k + 4 <= row.n;
    if (fills_low) low += shmt_counted_products(span, row, k, how);
    if (fills_low) k += 4;
    for (uint32_t j = 0; k + j < row.n; j++) last[j] = shmt_counted_product(span, row, k + j, how);
    if (fills_low)
        high += last;
    else
        low += last;
    const float dot = shmt_lanes_sum(low, high);
    if (!bias) return dot;
    return dot + shmt_counted_get(span->counted + span->rows - 1, span->weight + span->rows - 1, &count);
}

/* Brings floats that were just pushed up to their words. Of two workers that do so at one time the later one may have the older
 * word: then the float is behind until it is pushed again, at the latest until the run ends (shmt_counted_settle). */
SHMT_INLINE void shmt_show_float(const struct shmt_span *span, uint64_t at) {
    const uint64_t both = load_relaxed(&span->counted[at]);
    if (shmt_counted_updates(both) == 0) return;
    /* release: the word that I have loaded is seen by who loads the float; pairs with the acquire in shmt_counted_get */
    store_release((_Atomic float *)(span->sink + at), shmt_counted_value(both));
}

SHMT_INLINE void shmt_show_floats(const struct shmt_span *span, uint64_t at, uint64_t n) {
    for (uint64_t i = at; i < at + n; i++) shmt_show_float(span, i);
}

SHMT_INLINE void shmt_show_rows(const struct shmt_span *span, const struct shmtrain_csr *x) {
    for (uint32_t k = 0; k < x->n; k++) {
        const struct shmt_row row = shmt_row_at(x, k, false);
        for (uint64_t j = 0; j < row.n; j++) shmt_show_float(span, row.id[j]);
    }
    if (x->bias && x->n > 0) shmt_show_float(span, span->rows - 1);
}

/* Before a wait (race.h): n parameters will be written. Lines are those of the plain floats, for which a run pays that does not count. */
SHMT_ONCE void shmt_touch_words(struct shmt_words at, const uint32_t *id, uint32_t n, uint32_t planes) {
    if (!shmt_host_touches()) return;
    for (uint32_t k = 0; k < n; k++) {
        shmt_touch(at.weight + id[k], sizeof *at.weight, true);
        for (uint32_t plane = 0; plane < planes; plane++)
            shmt_touch(at.state + plane * at.plane + id[k], sizeof *at.state, true);
    }
}

/* As shmt_push_cells, and counts. */
SHMT_INLINE void shmt_push_counted(struct shmt_words at, const uint32_t *id, uint32_t n, shmt_lanes g, shmt_lanes share,
                                   const struct shmt_step *step, struct shmt_how how) {
    uint32_t count[4];
    const shmt_lanes w = shmt_counted_lanes_get(at, id, n, count);
    const struct shmt_cells c = shmt_rule_step(shmt_state_get(at, id, n, w, how), g, share, step, how);
    if (at.race) {
        shmt_touch_words(at, id, n, shmt_how_planes(how));
        shmt_race_wait(at.race);
    }
    shmt_state_put(at, id, n, c, how);
    shmt_counted_lanes_put(at, id, n, c.w, count);
}

/* ---- racy, and the race is widened (race.h) ----
 *
 * Who waits needs no kernel of its own: what rows and stretches do is compiled once, and asks its `how` as it goes. */

/* Up to four parameters between loading and storing. */
struct shmt_held {
    struct shmt_words at;
    const uint32_t *id;
    struct shmt_cells cells;
    uint32_t n, count[4];
};

/* Up to SHMT_RACE_FLOATS of them, in fours or one by one. */
struct shmt_holder {
    struct shmt_held held[SHMT_RACE_FLOATS];
    uint32_t n_held, n_floats;
};

SHMT_INLINE void shmt_hold(struct shmt_holder *holder, struct shmt_words at, const uint32_t *id, uint32_t n, shmt_lanes g,
                           shmt_lanes share, const struct shmt_step *step, struct shmt_how how) {
    struct shmt_held *h = &holder->held[holder->n_held++];
    holder->n_floats += n;
    h->at = at;
    h->id = id;
    h->n = n;
    const shmt_lanes w = shmt_counted_lanes_get(at, id, n, h->count);
    h->cells = shmt_rule_step(shmt_state_get(at, id, n, w, how), g, share, step, how);
}

/* Waits, and stores all that is held. */
SHMT_INLINE void shmt_held_write(struct shmt_holder *holder, struct shmt_race *race, struct shmt_how how) {
    const struct shmt_held *const end = holder->held + holder->n_held;
    if (holder->n_held == 0) return;
    for (const struct shmt_held *h = holder->held; h < end; h++) shmt_touch_words(h->at, h->id, h->n, shmt_how_planes(how));
    shmt_race_wait(race);
    for (const struct shmt_held *h = holder->held; h < end; h++) {
        const uint32_t n = h->n == 4 ? 4 : 1;
        shmt_state_put(h->at, h->id, n, h->cells, how);
        shmt_counted_lanes_put(h->at, h->id, n, h->cells.w, h->count);
    }
    holder->n_held = holder->n_floats = 0;
}

/* A row, as shmt_push_all pushes it: by fours, and its last ones one by one. */
SHMT_ONCE void shmt_hold_row(const struct shmt_span *span, struct shmt_row row, const struct shmt_step *step, bool share,
                             struct shmt_how how) {
    const struct shmt_words at = shmt_words_at(span, 0, how);
    struct shmt_holder holder;
    holder.n_held = holder.n_floats = 0;
    while (row.n > 0) {
        const uint32_t n = row.n >= 4 ? 4 : 1;
        const shmt_lanes ones = shmt_all(1);
        if (n == 4)
            shmt_hold(&holder, at, row.id, 4, shmt_four_values(row.value, how) * step->slope,
                      share ? shmt_four_shares(span->l2_share, row.id) : ones, step, how);
        else
            shmt_hold(&holder, at, row.id, 1, (shmt_lanes){(how.values ? row.value[0] : 1.0f) * step->slope},
                      share ? (shmt_lanes){span->l2_share[row.id[0]]} : ones, step, how);
        row = shmt_row_skip(row, n, how.values);
        if (holder.n_floats > SHMT_RACE_FLOATS - 4) shmt_held_write(&holder, span->race, how);
    }
    shmt_held_write(&holder, span->race, how);
}

/* Floats at .. at + n - 1, as shmt_push_stretch pushes them. */
SHMT_ONCE void shmt_hold_stretch(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,
                                 const struct shmt_step *step, struct shmt_how how) {
    static const uint32_t id[4] = {0, 1, 2, 3};
    const float factor = shmt_how_rule(how) == SHMT_RULE_SGD ? step->u.rate : 1;
    struct shmt_holder holder;
    holder.n_held = holder.n_floats = 0;
    for (uint64_t i = 0, some; i < n; i += some) {
        const struct shmt_words words = shmt_words_at(span, at + i, how);
        shmt_lanes g = {grad[i]};
        some = n - i >= 4 ? 4 : 1;
        if (some == 4) memcpy(&g, grad + i, sizeof g);
        g = factor * (g * step->u.scale);
        if (some == 4)
            shmt_hold(&holder, words, id, 4, g, shmt_all(1), step, how);
        else
            shmt_hold(&holder, words, id, 1, g, shmt_all(1), step, how);
        if (holder.n_floats > SHMT_RACE_FLOATS - 4) shmt_held_write(&holder, span->race, how);
    }
    shmt_held_write(&holder, span->race, how);
}
