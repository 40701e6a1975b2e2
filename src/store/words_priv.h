/* The words of parameters, weights and state, between memory and registers, as templates (see row_priv.h). */
#ifndef SHMT_STORE_WORDS_PRIV_H
#define SHMT_STORE_WORDS_PRIV_H

#include "store/rule_priv.h"

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
                               .counted = how.counted ? span->counted + at : NULL,
                               .race = how.counted ? span->race : NULL};
}

/* n: 4, or 1 for the first lane alone; a constant. */
SHMT_INLINE shmt_lanes shmt_lanes_get(const float *from, const uint32_t *id, uint32_t n, struct shmt_how how) {
    return n == 4 ? shmt_four_weights(from, id, how) : (shmt_lanes){shmt_weight(from + id[0], how)};
}

/* Lanes are named one by one, because a loop over them would send them through memory. */
SHMT_INLINE void shmt_lanes_put(float *to, const uint32_t *id, uint32_t n, shmt_lanes x, struct shmt_how how) {
    shmt_sink(to + id[0], x[0], how);
    if (n != 4) return;
    shmt_sink(to + id[1], x[1], how);
    shmt_sink(to + id[2], x[2], how);
    shmt_sink(to + id[3], x[3], how);
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

#endif
