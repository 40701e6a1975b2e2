/* The link's seat in the live modes (ps/far.h): it reads the parameters while workers push to them, adds what other hosts have changed,
 * and comes last to the meeting at which an epoch ends: then it sets them.
 *
 * What it adds is a push like others: to the one copy, or to the master that replicas are merged with, under the lock of the block that is
 * merged (replicas/merging.c) and the row locks of those who push (write locked); where these update racily, so does it, and else by
 * compare-and-swap. Of a racy push and an addition at one time one is lost, which is what `racy` says. Where that is the addition, it is a
 * change of this host in the next round, and so others lose their share of it, too.
 *
 * The link's clock is that of the other hosts' slowest worker: who may not be too far ahead of the slowest waits for it as for one more
 * worker of this host. */
#include <string.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "update/live.h"
#include "update/lock.h"

_Static_assert(SHMT_MERGE_FLOATS % SHMT_FAR_BLOCK == 0, "an exchanged block lies within one that is merged");

static bool has_replicas(const struct shmt_store *store) { return store->layout.n_replicas > 0; }

/* ---- parameters ---- */

static uint64_t floats_of(const struct shmt_store *store, uint64_t block) {
    return shmt_min_u64(SHMT_FAR_BLOCK, store->layout.flat.n - block * SHMT_FAR_BLOCK);
}

static void read_block(struct shmt_seat *seat, uint64_t block, float *out) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    shmt_live_read(out, store->weight + block * SHMT_FAR_BLOCK, floats_of(store, block));
}

/* As a racy push: of two at one time one is lost. */
static void add_racy(float *to, const float *change, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (change[i] != 0) shmt_live_store(to + i, shmt_live_load(to + i) + change[i]);
}

static void add_floats(float *to, const float *change, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        float found = shmt_live_load(to + i);
        /* relaxed: the new value is made of the word's own and of numbers of this round */
        while (change[i] != 0 && !swap_relaxed((_Atomic float *)(to + i), &found, found + change[i])) continue;
    }
}

struct change {
    uint64_t from; /* the float of change[0] */
    const float *change;
};

static void add_unit(struct shmt_shm_seat *p, uint32_t t, uint64_t at, uint64_t n, void *arg) {
    const struct change *c = arg;
    (void)t;
    add_floats(p->store->weight + at, c->change + (at - c->from), n);
}

/* The lock of the block that a merge would hold; NULL: replicas hold none of these floats, or the run is given up. */
static _Atomic uint32_t *lock_merges(const struct shmt_shm_seat *p, uint64_t at) {
    const uint64_t held_at = shmt_cover_of(&p->store->layout.cover, at);
    return held_at == UINT64_MAX ? NULL : shmt_shm_lock_block(p, held_at / SHMT_MERGE_FLOATS, false);
}

static void add_block(struct shmt_seat *seat, uint64_t block, const float *change) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    struct shmt_store *store = p->store;
    const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(store, block);
    /* row locks guard the one copy; replicas have some of their own, and the master none */
    if (!has_replicas(store) && store->spec.policy.write == SHMT_WRITE_LOCKED) {
        shmt_shm_by_units(p, 0, at, at + n, add_unit, &(struct change){.from = at, .change = change});
        return;
    }
    _Atomic uint32_t *held = has_replicas(store) ? lock_merges(p, at) : NULL;
    SHMT_POINT("far-add:held");
    (store->spec.policy.write == SHMT_WRITE_RACY ? add_racy : add_floats)(store->weight + at, change, n);
    shmt_unit_release(held);
}

static void set_block(struct shmt_seat *seat, uint64_t block, const float *value) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    memcpy(store->weight + block * SHMT_FAR_BLOCK, value, floats_of(store, block) * sizeof *value);
}

/* ---- an epoch ---- */

/* Replicas are made before the first item is dealt. */
static int begin(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const int rc = shmt_shm_begin_work(p);
    if (rc != 1 || !has_replicas(p->store) || p->epoch != p->store->spec.first_epoch) return rc;
    const int met = shmt_shm_meet(p, &p->slot->counters.wait_epoch_ns);
    return met < 0 ? met : 1;
}

/* All have come to their next meeting: that which ends the epoch or, with replicas, the one before their last merge. What they have
 * pushed, or merged, is there. */
static int rests(struct shmt_seat *seat) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_store *store = p->store;
    if (load_relaxed(&store->control->abort)) return SHMTRAIN_E_STOPPED; /* relaxed: a flag */
    for (uint32_t i = 0; i < store->spec.n_seats; i++) /* acquire: pairs with the store of a gate's phase (sync/gate.c) */
        if (shmt_shm_takes_part(p, i) && load_acquire(&store->front[i].gate.phase) < p->phase + 1) return 0;
    return 1;
}

/* Those who work are counted as they are: one that has just stopped does not hold others up, nor does it let them go too far. */
static uint64_t clock(struct shmt_seat *seat) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < p->store->spec.n_seats; i++) {
        const struct shmt_shm_front *front = &p->store->front[i];
        /* acquire, both: what was pushed before is read behind it; pairs with the release in shmt_shm_stop_counting, and with the store in
         * shmt_gate_reach */
        if (load_acquire(&front->working) == 0) continue;
        least = shmt_min_u64(least, load_acquire(&front->gate.clock));
    }
    return least == UINT64_MAX ? least : least - shmt_min_u64(least, p->first);
}

static void reach(struct shmt_seat *seat, uint64_t clock_of_others) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    if (clock_of_others == UINT64_MAX) {
        if (load_relaxed(&p->front->working) != 0) shmt_shm_stop_counting(p); /* relaxed: my own word */
        return;
    }
    const uint64_t reached = shmt_max_u64(p->clock, p->first + clock_of_others);
    if (reached == p->clock) return;
    p->clock = reached;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
}

/* relaxed: a number */
static uint64_t examples(struct shmt_seat *seat) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    uint64_t n = 0;
    for (uint32_t i = 0; i < store->spec.n_seats; i++) n += load_relaxed(&store->slot[i].counters.examples);
    return n;
}

/* Of floats that replicas hold, or all; the others are rare, and count whole. */
static void find_curvatures(const struct shmt_store *store, uint64_t at, uint64_t n, float *out) {
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t held = shmt_cover_of(&store->layout.cover, at + i);
        out[i] = held == UINT64_MAX ? 0 : store->curvature[held];
    }
}

static void shares(struct shmt_seat *seat, uint64_t block, uint64_t n_examples, float *out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(store, block);
    float curvature[SHMT_FAR_BLOCK];
    struct shmt_damping damping = {.examples = (double)n_examples, .n_replicas = spec->hosts.n, .curvature = curvature};
    shmt_spec_update(spec, p->epoch, 0, &damping.u);
    for (uint64_t from = 0; from < n; from += SHMT_MERGE_STEP) {
        const uint64_t some = shmt_min_u64(SHMT_MERGE_STEP, n - from);
        const float *state[SHMT_MAX_PLANES];
        float copy[SHMT_MAX_PLANES][SHMT_MERGE_STEP]; /* workers write it meanwhile */
        for (uint32_t plane = 0; plane < store->layout.planes; plane++) {
            shmt_live_read(copy[plane], store->state + plane * store->layout.flat.n + at + from, some);
            state[plane] = copy[plane];
        }
        find_curvatures(store, at + from, some, curvature);
        shmt_merge_shares((enum shmt_rule_kind)spec->rule.kind, &damping, state, some, out + from);
    }
}

static const struct shmt_shares *dealt(struct shmt_seat *seat) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    return &p->store->shares[p->epoch % 2];
}

/* Workers look behind the meeting that ends the epoch, which publishes it; who is revived in this one looks at this epoch's. */
static void deal(struct shmt_seat *seat, const struct shmt_shares *next) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    p->store->shares[(p->epoch + 1) % 2] = *next;
}

static void piece(struct shmt_seat *seat, uint64_t number, struct shmt_far_piece *out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_shm_piece *of = &p->store->ledger[number];
    const uint64_t examples = shmt_ledger_examples(of, p->epoch);
    *out = (struct shmt_far_piece){.examples = examples, .loss = examples > 0 ? of->loss : 0};
}

static void put_piece(struct shmt_seat *seat, uint64_t number, const struct shmt_far_piece *of) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    if (of->examples == 0) return;
    p->store->ledger[number].loss = of->loss;
    shmt_ledger_done(&p->store->ledger[number], p->epoch, of->examples);
}

static void stop(struct shmt_seat *seat) {
    set_bits_relaxed(&shmt_shm_seat_of(seat)->store->control->stop, SHMT_STOP_ASKED); /* as whoever asks */
}

/* Replicas become what the master is; then come the meetings around their last merge, which finds nothing to do. */
static int end(struct shmt_seat *seat, bool stops) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    struct shmt_store *store = p->store;
    _Atomic uint64_t *const wait = &p->slot->counters.wait_epoch_ns;
    /* relaxed: published by the meeting that ends the epoch, behind which the chief reads it */
    if (stops) store_relaxed(&store->control->end_step, (p->epoch + UINT64_C(1)) * shmt_spec_steps(&store->spec));
    shmt_shm_free_given(p);
    if (!has_replicas(store)) return 0;
    for (uint32_t replica = 0; replica < store->layout.n_replicas; replica++)
        shmt_shm_replica_begin(store, replica, 0, store->layout.cover.n);
    SHMT_POINT("far-end:copied");
    const int rc = shmt_shm_meet(p, wait);
    return rc < 0 ? rc : shmt_shm_meet(p, wait);
}

/* ---- as an engine: the seat deals nothing, and ends epochs as all do ---- */

static int enter(struct shmt_shm_seat *p) {
    p->first = p->clock;
    return 0;
}

/* All have met. Clocks of the next epoch are counted from here. */
static void align(struct shmt_shm_seat *p) {
    uint64_t largest = p->clock;
    for (uint32_t i = 0; i < p->store->spec.n_seats; i++)
        largest =
            shmt_max_u64(largest, load_relaxed(&p->store->front[i].gate.clock)); /* relaxed: the meeting has published it */
    p->clock = p->first = largest;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, largest);
    store_relaxed(&p->front->working, 1); /* as in shmt_shm_align_clocks */
}

const struct shmt_shm_engine SHMT_SHM_LINK = {.enter = enter, .align = align};

const struct shmt_far_live_ops SHMT_SHM_FAR_LIVE = {.begin = begin,
                                                    .rests = rests,
                                                    .read = read_block,
                                                    .add = add_block,
                                                    .set = set_block,
                                                    .examples = examples,
                                                    .shares = shares,
                                                    .clock = clock,
                                                    .reach = reach,
                                                    .dealt = dealt,
                                                    .deal = deal,
                                                    .piece = piece,
                                                    .put_piece = put_piece,
                                                    .stop = stop,
                                                    .end = end};
