/* The words of parameters, weights and state, between memory and registers, as templates (see row_priv.h). */
#pragma once

#include "update/rule_priv.h"

_Static_assert(SHMT_WIDTH == 4, "rows are pushed by four");

/* Where the words of some floats stand: of a whole table, or of a stretch of it. */
struct shmt_words {
    float *weight, *state;
    uint64_t plane;
    _Atomic uint64_t *counted; /* kernels that count */
    struct shmt_race *race;    /* those; NULL: they do not wait */
};

SHMT_INLINE struct shmt_words shmt_words_at(const struct shmt_span *span, uint64_t at, struct shmt_how how) {
    const bool keeps = shmt_how_live(how) && shmt_how_planes(how) > 0;
    return (struct shmt_words){.weight = span->sink + at,
                               .state = keeps ? span->state + at : NULL,
                               .plane = span->plane,
                               .counted = shmt_how_counts(how) ? span->counted + at : NULL,
                               .race = shmt_how_counts(how) ? span->race : NULL};
}

/* Those of a dense stretch, which lie in a row. Each element of a vector is loaded and stored whole, as it is by itself, and once, as
 * live.h asks; ThreadSanitizer is told of each. */
typedef shmt_lanes shmt_lanes_anywhere __attribute__((aligned(4), may_alias));

SHMT_INLINE shmt_lanes shmt_row_of_lanes(const float *from, struct shmt_how how) {
    if (SHMT_UNDER_TSAN) return shmt_four_weights(from, (const uint32_t[]){0, 1, 2, 3}, how);
    return *(const volatile shmt_lanes_anywhere *)(const volatile void *)from;
}

SHMT_INLINE void shmt_row_of_lanes_put(float *to, shmt_lanes x, struct shmt_how how) {
    if (!SHMT_UNDER_TSAN) {
        *(volatile shmt_lanes_anywhere *)(volatile void *)to = x;
        return;
    }
    for (uint32_t lane = 0; lane < SHMT_WIDTH; lane++) shmt_weight_put(to + lane, x[lane], how);
}

/* n: 4, or 1 for the first lane alone; a constant. id NULL: those in a row. */
SHMT_INLINE shmt_lanes shmt_lanes_get(const float *from, const uint32_t *id, uint32_t n, struct shmt_how how) {
    if (!id) return n == 4 ? shmt_row_of_lanes(from, how) : (shmt_lanes){shmt_weight(from, how)};
    return n == 4 ? shmt_four_weights(from, id, how) : (shmt_lanes){shmt_weight(from + id[0], how)};
}

/* Lanes are named one by one, because a loop over them would send them through memory. */
SHMT_INLINE void shmt_lanes_put(float *to, const uint32_t *id, uint32_t n, shmt_lanes x, struct shmt_how how) {
    if (!id && n == 4) {
        shmt_row_of_lanes_put(to, x, how);
        return;
    }
    if (!id) {
        shmt_weight_put(to, x[0], how);
        return;
    }
    shmt_weight_put(to + id[0], x[0], how);
    if (n != 4) return;
    shmt_weight_put(to + id[1], x[1], how);
    shmt_weight_put(to + id[2], x[2], how);
    shmt_weight_put(to + id[3], x[3], how);
}

/* The state words of parameters whose weights have been read. */
SHMT_INLINE struct shmt_cells shmt_state_get(struct shmt_words at, const uint32_t *id, uint32_t n, shmt_lanes w,
                                             struct shmt_how how) {
    const uint32_t planes = shmt_how_planes(how);
    struct shmt_cells c = {.w = w};
    if (planes > 0) c.word0 = shmt_lanes_get(at.state, id, n, how);
    if (planes > 1) c.word1 = shmt_lanes_get(at.state + at.plane, id, n, how);
    if (planes > 2) c.word2 = shmt_lanes_get(at.state + 2 * at.plane, id, n, how);
    if (planes > 3) c.word3 = shmt_lanes_get(at.state + 3 * at.plane, id, n, how);
    return c;
}

SHMT_INLINE void shmt_state_put(struct shmt_words at, const uint32_t *id, uint32_t n, struct shmt_cells c,
                                struct shmt_how how) {
    const uint32_t planes = shmt_how_planes(how);
    if (planes > 0) shmt_lanes_put(at.state, id, n, c.word0, how);
    if (planes > 1) shmt_lanes_put(at.state + at.plane, id, n, c.word1, how);
    if (planes > 2) shmt_lanes_put(at.state + 2 * at.plane, id, n, c.word2, how);
    if (planes > 3) shmt_lanes_put(at.state + 3 * at.plane, id, n, c.word3, how);
}

SHMT_INLINE shmt_lanes shmt_four_shares(const float *share, const uint32_t *id) {
    return (shmt_lanes){share[id[0]], share[id[1]], share[id[2]], share[id[3]]};
}
