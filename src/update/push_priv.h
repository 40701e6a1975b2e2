/* Pushing one example, or a stretch of a dense gradient: which words of a parameter change in which way, by write mode, as
 * templates (see row_priv.h). The arithmetic is in rule_priv.h.
 *
 * RACE(hogwild): racy reads all words of four parameters, then stores them, without a lock: of two pushes at one time either
 * may be lost, and words of one parameter may be of different pushes. atomic changes each word by compare-and-swap of a
 * function of that very word, state first; the state's new value is the one that this push has put there, so each word loses
 * nothing, and a weight's step belongs to one push. locked changes one unit at a time under its lock. Without locks in the
 * span (one seat) locked is racy. */
#pragma once

#include "base/point.h"
#include "update/counted_priv.h"
#include "update/lock.h"
#include "update/words_priv.h"

/* Up to four parameters, which are distinct, or (id NULL) lie in a row, where updates are not counted: all words are read before the
 * first is written. */
SHMT_INLINE void shmt_push_cells(struct shmt_words at, const uint32_t *id, uint32_t n, shmt_lanes g, shmt_lanes share,
                                 const struct shmt_step *step, struct shmt_how how) {
    if (shmt_how_counts(how)) {
        shmt_push_counted(at, id, n, g, share, step, how);
        return;
    }
    const shmt_lanes w = shmt_lanes_get(at.weight, id, n, how);
    const struct shmt_cells c = shmt_rule_step(shmt_state_get(at, id, n, w, how), g, share, step, how);
    shmt_state_put(at, id, n, c, how);
    shmt_lanes_put(at.weight, id, n, c.w, how);
}

/* ---- atomic ---- */

/* Changes one word to what `changed` makes of its value in lane 0, and leaves the new value in `out`. Relaxed: what the new
 * value is made of is the word's old value and numbers of this push, and no other memory is read on the strength of it. */
#define SHMT_SWAP(at, value, changed, out)                                                                                \
    do {                                                                                                                  \
        _Atomic float *const word_ = (_Atomic float *)(at);                                                               \
        shmt_lanes value = {load_relaxed(word_)};                                                                         \
        float found_ = value[0];                                                                                          \
        for ((out) = (changed); !swap_relaxed(word_, &found_, (out)[0]); (out) = (changed)) value = (shmt_lanes){found_}; \
    } while (0)

/* The ratio is that of the steps' word which this push has found, and the gradients' word which it has put there. */
SHMT_INLINE void shmt_push_adadelta(struct shmt_words at, uint32_t id, shmt_lanes g, shmt_lanes share,
                                    const struct shmt_step *step, struct shmt_how how) {
    shmt_lanes squares, steps, ratio, w;
    SHMT_SWAP(at.state + id, mean, shmt_mean_square(mean, g, step), squares);
    SHMT_SWAP(at.state + at.plane + id, mean,
              (ratio = shmt_adadelta_ratio(mean, squares, step), shmt_mean_square(mean, ratio * g, step)), steps);
    SHMT_SWAP(at.weight + id, before, shmt_adadelta_weight(before, ratio, squares, g, share, step, how), w);
}

SHMT_INLINE void shmt_push_swapped(struct shmt_words at, uint32_t id, shmt_lanes g, shmt_lanes share,
                                   const struct shmt_step *step, struct shmt_how how) {
    shmt_lanes word, w;
    g = shmt_clipped(g, step, how);
    switch (shmt_how_rule(how)) {
        case SHMT_RULE_MOMENTUM:
            SHMT_SWAP(at.state + id, velocity, shmt_momentum(velocity, g, step), word);
            SHMT_SWAP(at.weight + id, before, shmt_stepped(before, step->u.rate * word, share, step, how), w);
            break;
        case SHMT_RULE_NESTEROV:
            SHMT_SWAP(at.state + id, velocity, shmt_momentum(velocity, g, step), word);
            SHMT_SWAP(at.weight + id, before, shmt_stepped(before, shmt_nesterov(word, g, step), share, step, how), w);
            break;
        case SHMT_RULE_ADAGRAD:
            SHMT_SWAP(at.state + id, squares, shmt_squares(squares, g), word);
            SHMT_SWAP(at.weight + id, before, shmt_rooted(before, word, g, share, step, how), w);
            break;
        case SHMT_RULE_RMSPROP:
            SHMT_SWAP(at.state + id, mean, shmt_mean_square(mean, g, step), word);
            SHMT_SWAP(at.weight + id, before, shmt_rooted(before, word, g, share, step, how), w);
            break;
        case SHMT_RULE_ADADELTA:
            shmt_push_adadelta(at, id, g, share, step, how);
            break;
        default:
            SHMT_SWAP(at.weight + id, before, shmt_stepped(before, g, share, step, how), w);
            break;
    }
}

/* ---- under locks ---- */

/* n floats of one unit, whose lock I hold, are changed by what stands between these two. A single word is whole without. */
SHMT_INLINE void shmt_unit_open(const struct shmt_span *span, uint64_t at, uint64_t n, struct shmt_how how) {
    const uint32_t planes = shmt_how_planes(how);
    if (n == 1 && planes == 0) return;
    shmt_undo_open(&span->undo, span->undo.first + at, n, span->sink + at, planes > 0 ? span->state + at : NULL, span->plane,
                   planes);
}
SHMT_INLINE void shmt_unit_close(const struct shmt_span *span, uint64_t n, struct shmt_how how) {
    if (n == 1 && shmt_how_planes(how) == 0) return;
    shmt_undo_close(&span->undo, 0);
}

/* ---- one parameter, in every live mode ---- */

/* id: of the table's unit `unit` (locked). */
SHMT_INLINE void shmt_push_one(const struct shmt_span *span, struct shmt_words at, uint32_t id, uint64_t unit, float g,
                               float share, const struct shmt_step *step, struct shmt_how how) {
    const shmt_lanes gs = {g}, shares = {share};
    if (how.write == SHMT_WRITE_ATOMIC) {
        shmt_push_swapped(at, id, gs, shares, step, how);
        return;
    }
    if (how.write == SHMT_WRITE_RACY) {
        shmt_push_cells(at, &id, 1, gs, shares, step, how);
        return;
    }
    _Atomic uint32_t *held = shmt_unit_acquire(&span->locks, unit);
    SHMT_POINT("row:held");
    shmt_unit_open(span, unit, 1, how);
    SHMT_POINT("row:open");
    shmt_push_cells(at, &id, 1, gs, shares, step, how);
    SHMT_POINT("row:written");
    shmt_unit_close(span, 1, how);
    shmt_unit_release(held);
    SHMT_POINT("row:released");
}

/* ---- rows of live modes ---- */

/* `share`: whether the span has l2_share and it counts; a constant. Ids are distinct. */
SHMT_INLINE void shmt_push_all(const struct shmt_span *span, struct shmt_row row, const struct shmt_step *step, bool share,
                               struct shmt_how how) {
    const struct shmt_words at = shmt_words_at(span, 0, how);
    if (shmt_how_counts(how) && span->race) {
        shmt_hold_row(span, row, step, share, how);
        return;
    }
    if (how.write == SHMT_WRITE_RACY)
        for (; row.n >= 4; row = shmt_row_skip(row, 4, how.values))
            shmt_push_cells(at, row.id, 4, shmt_four_values(row.value, how) * step->slope,
                            share ? shmt_four_shares(span->l2_share, row.id) : shmt_all(1), step, how);
    for (uint64_t k = 0; k < row.n; k++)
        shmt_push_one(span, at, row.id[k], row.id[k], (how.values ? row.value[k] : 1.0f) * step->slope,
                      share ? span->l2_share[row.id[k]] : 1.0f, step, how);
}

SHMT_INLINE void shmt_live_push(const struct shmt_span *span, struct shmt_row row, const struct shmt_step *step,
                                struct shmt_how how) {
    if (how.regularised && shmt_how_rule(how) != SHMT_RULE_FTRL && span->l2_share)
        shmt_push_all(span, row, step, true, how);
    else
        shmt_push_all(span, row, step, false, how);
}

/* The bias: the last row, an element of every example with value 1, without L1 and L2. */
SHMT_INLINE void shmt_live_push_bias(const struct shmt_span *span, const struct shmt_step *step, struct shmt_how how) {
    const uint64_t bias = span->rows - 1;
    const struct shmt_step unruled = shmt_step_unruled(*step);
    how.regularised = false;
    shmt_push_one(span, shmt_words_at(span, bias, how), 0, bias, step->slope, 1, &unruled, how);
}

/* ---- aggregate: gradient sums ---- */

SHMT_INLINE void shmt_mark(uint8_t *touched, uint64_t at) { touched[at / SHMT_TOUCH_FLOATS] = 1; }

/* `marks`: whether the span has a touched map; a constant. */
SHMT_INLINE void shmt_add_all(const struct shmt_span *span, struct shmt_row row, float slope, bool marks, struct shmt_how how) {
    float *sink = span->sink;
    for (; row.n >= 4; row = shmt_row_skip(row, 4, how.values)) {
        const uint32_t *id = row.id;
        shmt_lanes_put(sink, id, 4, shmt_four_weights(sink, id, how) + shmt_four_values(row.value, how) * slope, how);
        if (!marks) continue;
        shmt_mark(span->touched, id[0]);
        shmt_mark(span->touched, id[1]);
        shmt_mark(span->touched, id[2]);
        shmt_mark(span->touched, id[3]);
    }
    for (uint64_t k = 0; k < row.n; k++) {
        sink[row.id[k]] += (how.values ? row.value[k] : 1.0f) * slope;
        if (marks) shmt_mark(span->touched, row.id[k]);
    }
}

/* At the end of the list; false: there is no room. */
SHMT_INLINE bool shmt_row_list(const struct shmt_terms *terms, struct shmt_row row, float slope, struct shmt_how how) {
    uint32_t at;
    if (!shmt_terms_take(terms, row.n, &at)) return false;
    uint32_t *restrict id = terms->id + at;
    float *restrict value = terms->value + at;
    for (uint64_t k = 0; k < row.n; k++) {
        id[k] = terms->first + row.id[k];
        value[k] = (how.values ? row.value[k] : 1.0f) * slope;
    }
    return true;
}

SHMT_INLINE void shmt_row_add(const struct shmt_span *span, struct shmt_row row, float slope, struct shmt_how how) {
    if (shmt_row_list(&span->terms, row, slope, how)) return;
    shmt_terms_note_sum(&span->terms);
    if (span->touched)
        shmt_add_all(span, row, slope, true, how);
    else
        shmt_add_all(span, row, slope, false, how);
}

SHMT_INLINE void shmt_bias_add(const struct shmt_span *span, float slope) {
    const uint32_t bias = (uint32_t)(span->rows - 1);
    if (shmt_row_list(&span->terms, (struct shmt_row){.id = &bias, .n = 1}, slope, (struct shmt_how){.values = false})) return;
    shmt_terms_note_sum(&span->terms);
    span->sink[span->rows - 1] += slope;
    if (span->touched) shmt_mark(span->touched, span->rows - 1);
}

/* ---- dense stretches of live modes ---- */

/* Floats at .. at + n - 1 of one lock unit, or of any where there are no locks. */
SHMT_INLINE void shmt_push_stretch(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,
                                   const struct shmt_step *step, struct shmt_how how) {
    static const uint32_t COUNTED[4] = {0, 1, 2, 3};
    const uint32_t *const id = shmt_how_counts(how) ? COUNTED : NULL;
    const float factor = shmt_how_rule(how) == SHMT_RULE_SGD ? step->u.rate : 1;
    if (shmt_how_counts(how) && span->race) {
        shmt_hold_stretch(span, at, n, grad, step, how);
        return;
    }
    uint64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        shmt_lanes g;
        memcpy(&g, grad + i, sizeof g);
        shmt_push_cells(shmt_words_at(span, at + i, how), id, 4, factor * (g * step->u.scale), shmt_all(1), step, how);
    }
    for (; i < n; i++)
        shmt_push_cells(shmt_words_at(span, at + i, how), id, 1, (shmt_lanes){factor * (grad[i] * step->u.scale)}, shmt_all(1),
                        step, how);
}

SHMT_INLINE void shmt_push_locked(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,
                                  const struct shmt_step *step, struct shmt_how how) {
    const uint64_t each = shmt_unit_floats(span);
    while (n > 0) {
        const uint64_t rest = each - at % each, part = n < rest ? n : rest;
        _Atomic uint32_t *held = shmt_unit_acquire(&span->locks, at / each);
        SHMT_POINT("unit:held");
        shmt_unit_open(span, at, part, how);
        SHMT_POINT("unit:open");
        shmt_push_stretch(span, at, part, grad, step, how);
        SHMT_POINT("unit:written");
        shmt_unit_close(span, part, how);
        SHMT_POINT("unit:closed");
        shmt_unit_release(held);
        SHMT_POINT("unit:released");
        at += part;
        grad += part;
        n -= part;
    }
}

SHMT_INLINE void shmt_push_floats(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad,
                                  const struct shmt_update *u, struct shmt_how how) {
    const struct shmt_step step = shmt_step_of(0, u, how);
    const float factor = shmt_how_rule(how) == SHMT_RULE_SGD ? u->rate : 1;
    if (how.write == SHMT_WRITE_RACY) shmt_push_stretch(span, at, n, grad, &step, how);
    if (shmt_how_counts(how)) shmt_show_floats(span, at, n);
    if (how.write == SHMT_WRITE_LOCKED) shmt_push_locked(span, at, n, grad, &step, how);
    if (how.write == SHMT_WRITE_ATOMIC)
        for (uint64_t i = 0; i < n; i++)
            shmt_push_one(span, shmt_words_at(span, at + i, how), 0, 0, factor * (grad[i] * u->scale), 1, &step, how);
}
