/* The link's seat in rounds with a quorum (ps/far.h). Here the link alone closes rounds: workers come to a round and offer as they do on
 * one host, and find it closed. What a round is made of has one host's link decided for all (link/quorums.c).
 *
 * The sum of all hosts' gradients stands in a part of the segment that the link alone writes, and that an update is applied from. Why it
 * rests while somebody reads it: it is written when all slices have had the update before, and the update that it is for is not closed
 * then, so that nobody is at it. Where no worker is free to apply an update (all are in the middle of a gradient, or have no work left),
 * the link does. It keeps no old bytes as it does: when the link dies, its host's run is over.
 *
 * A member's gradient rests from when it has come until its round is closed; so the link may read it when that is decided, and need not
 * read it again. A worker that dies meanwhile has left it complete, and its next life finds what has become of it. */
#include <string.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "update/kernels.h"

_Static_assert(SHMT_FAR_BLOCK == SHMT_SHM_BLOCK, "an exchanged block is one of an update");
_Static_assert(SHMT_SHM_FREE_FLOATS % SHMT_TOUCH_FLOATS == 0, "parts have whole bytes of the touched map");

static uint8_t *far_map(const struct shmt_store *store) { return store->layout.touched ? store->far_map : NULL; }

const float *shmt_shm_far_total(const struct shmt_store *store, uint64_t at, uint64_t n) {
    return shmt_shm_is_touched(far_map(store), at, n) ? store->far + at : NULL;
}

static uint64_t floats_of(const struct shmt_store *store, uint64_t block) {
    return shmt_min_u64(SHMT_FAR_BLOCK, store->layout.flat.n - block * SHMT_FAR_BLOCK);
}

static void look(struct shmt_seat *seat, struct shmt_far_look *out) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    *out = (struct shmt_far_look){.round = shmt_shm_rounds_closed(store)};
    for (uint32_t i = 0; i < store->spec.n_seats; i++) {
        const struct shmt_shm_offer *offer = &store->offer[i];
        const uint64_t bit = UINT64_C(1) << i % 64;
        /* as in look_around (quorum.c): acquire, both; relaxed: published by the clock */
        out->working += load_acquire(&store->front[i].working) != 0;
        const bool arrived = load_acquire(&store->front[i].gate.clock) == out->round + 1;
        out->items += load_relaxed(&offer->items);
        if (!arrived) continue;
        out->in[i / 64] |= bit;
        if (load_relaxed(&offer->late) != 0) out->late[i / 64] |= bit;
        out->examples += load_relaxed(&offer->examples[0]);
    }
}

/* Clears some of the sum that has been applied: whether all of it is. */
static bool forget(const struct shmt_shm_seat *p) {
    uint8_t *map = far_map(p->store);
    const uint64_t at = p->rounds->forgotten, n = shmt_min_u64(SHMT_SHM_FREE_FLOATS, p->store->layout.flat.n - at);
    shmt_clear(p->store->far + at, map ? map + at / SHMT_TOUCH_FLOATS : NULL, n);
    p->rounds->forgotten = at + n < p->store->layout.flat.n ? at + n : 0;
    return p->rounds->forgotten == 0;
}

/* Both by parts: between them the link hears the other hosts. */
static int settle(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const int rc = shmt_shm_apply_free(p, shmt_shm_rounds_closed(p->store));
    return rc == 1 ? forget(p) : rc;
}

static void choose(struct shmt_seat *seat, const uint64_t *in) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const uint64_t round = shmt_shm_rounds_closed(p->store);
    struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    recipe->update = UINT64_MAX; /* it is not closed yet, and is looked up when it is */
    recipe->slot = 0;
    recipe->n = 0;
    for (uint32_t i = 0; i < p->store->spec.n_seats; i++) {
        if (!(in[i / 64] >> i % 64 & 1)) continue;
        recipe->share[recipe->n] = shmt_shm_share_of(p->store, i, 0, round);
        recipe->seat[recipe->n++] = i;
    }
}

static bool sum(struct shmt_seat *seat, uint64_t block, float *out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const uint64_t n = floats_of(p->store, block);
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    const float *found = shmt_shm_sum_of_members(p, block * SHMT_FAR_BLOCK, n, scratch);
    if (found) memcpy(out, found, n * sizeof *out);
    return found != NULL;
}

static void put(struct shmt_seat *seat, uint64_t block, const float *total) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(store, block);
    uint8_t *map = far_map(store);
    memcpy(store->far + at, total, n * sizeof *total);
    if (map) memset(map + at / SHMT_TOUCH_FLOATS, 1, shmt_ceil_div(n, SHMT_TOUCH_FLOATS));
}

static void close_round(struct shmt_seat *seat, const struct shmt_far_round *of) {
    SHMT_POINT("far-round:put");
    shmt_shm_close_as_decided(shmt_shm_seat_of(seat), of);
}

static int end(struct shmt_seat *seat, bool stop) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    /* relaxed: published by the meeting; the chief reads it behind the end of the epoch */
    if (stop) store_relaxed(&p->store->control->end_step, (p->epoch + UINT64_C(1)) * shmt_spec_steps(&p->store->spec));
    return shmt_shm_finish_rounds(p);
}

const struct shmt_far_quorum_ops SHMT_SHM_FAR_QUORUMS = {
    .look = look, .settle = settle, .choose = choose, .sum = sum, .put = put, .close = close_round, .end = end};
