/* Items that are passed on between hosts (ps/far.h, link/passing.c): both sides of it within a host's segment.
 *
 * The link gives its host's items away as a worker would take them, by the ledger, from the end of the host's share. What others give it
 * lists in `passed`, where workers look when all of the share is taken; so whose an item is the ledger alone decides, and one who dies
 * with it in hand does it again. Who finds nothing is out of items: it says so, and waits until there is more or nothing more will come.
 *
 * The link's gate has a word that nothing else needs there (`read`): it counts how often something was passed on or closed. Who is
 * out says at which count it was so; at any later one that means nothing. */
#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "sync/host.h"

static uint64_t tag(uint32_t epoch) { return ((uint64_t)epoch + 1) << 32; }

static uint32_t link_of(const struct shmt_store *store) { return store->spec.n_seats; }

/* ---- workers ---- */

/* How many there are. acquire: their numbers are there, too; pairs with the release in `pass` */
static uint64_t count_passed(const struct shmt_store *store, uint32_t epoch) {
    const uint64_t n = load_acquire(&store->passing->n);
    return n >> 32 == tag(epoch) >> 32 ? shmt_min_u64(n & UINT32_MAX, store->layout.passed.n) : 0;
}

/* Those that other workers have taken are passed over. */
static bool claim_one(struct shmt_shm_seat *p, uint64_t n, uint64_t *piece_out) {
    const struct shmt_store *store = p->store;
    while (p->passed < n) {
        *piece_out = store->passed[p->passed++];
        if (*piece_out < store->layout.ledger.n &&
            shmt_ledger_take(&store->ledger[*piece_out], p->epoch, p->seat.life, p->seat.rank))
            return true;
    }
    return false;
}

/* A stop ends the epoch as soon as the link knows of it, for those, too, who wait here. */
static bool nothing_more_comes(const struct shmt_shm_seat *p) {
    /* acquire: pairs with the release in `close`; the flag carries nothing but itself */
    return load_acquire(&p->store->passing->closed) > p->epoch || load_relaxed(&p->store->control->stop) != 0;
}

int shmt_shm_claim_passed(struct shmt_shm_seat *p, uint64_t *piece_out) {
    struct shmt_store *store = p->store;
    for (;;) {
        /* acquire: what is listed behind it is of a later count; pairs with the store in shmt_gate_reach */
        const uint64_t count = load_acquire(&store->front[link_of(store)].gate.read);
        if (claim_one(p, count_passed(store, p->epoch), piece_out)) return 1;
        if (nothing_more_comes(p)) return 0;
        if (load_relaxed(&store->control->abort)) return SHMTRAIN_E_STOPPED; /* relaxed: a flag */
        if (p->engine->idle) p->engine->idle(p);
        SHMT_POINT("passing:out");
        store_relaxed(&p->front->out_ns, shmt_now_ns()); /* published by `out` */
        store_release(&p->front->out, count + 1);        /* what I have pushed is there; pairs with the acquire in is_out */
        p->wait_ns = shmt_shm_wait_epoch(p);
        if (shmt_gates_wait_for(&p->meeting, SHMT_GATE_READ, count + 1, link_of(store))) return SHMTRAIN_E_STOPPED;
    }
}

/* ---- the link ---- */

static uint64_t count_of(const struct shmt_shm_seat *link) {
    return load_relaxed(&link->front->gate.read); /* relaxed: my own word */
}

/* Who has come to the meeting that ends the epoch has no items either. */
static bool is_out(struct shmt_seat *seat, uint64_t *since_ns_out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    *since_ns_out = 0;
    for (uint32_t i = 0; i < p->store->spec.n_seats; i++) {
        const struct shmt_shm_front *front = &p->store->front[i];
        if (!shmt_shm_takes_part(p, i)) continue;
        /* acquire, both: pairs with the release in shmt_shm_claim_passed, and with the store of a gate's phase */
        const bool waits = load_acquire(&front->out) == count_of(p) + 1;
        if (!waits && load_acquire(&front->gate.phase) < p->phase + 1) return false;
        *since_ns_out = shmt_max_u64(*since_ns_out, waits ? load_relaxed(&front->out_ns) : shmt_now_ns());
    }
    return true;
}

static bool take(struct shmt_shm_seat *link, uint64_t piece) {
    return shmt_spec_has_step(&link->store->spec, link->epoch, piece) && /* else nobody does it */
           shmt_ledger_take(&link->store->ledger[piece], link->epoch, 0, link->seat.rank);
}

static void begin_giving(struct shmt_shm_seat *link) {
    if (link->share_epoch == link->epoch && link->share.n_slots > 0) return;
    link->share_epoch = link->epoch;
    shmt_share_of(&link->store->shares[link->epoch % 2], link->store->spec.hosts.self, &link->share);
    link->claims.back = shmt_share_items(&link->share, shmt_spec_pieces(&link->store->spec));
    link->passed = 0;
}

/* What was passed to this host, if it was too much, and else of its share; from the end, where workers come last. */
static bool give(struct shmt_seat *seat, uint64_t *piece_out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    begin_giving(p);
    while (p->passed > 0) {
        *piece_out = p->store->passed[--p->passed];
        if (take(p, *piece_out)) return true;
    }
    while (p->claims.back > 0) {
        *piece_out = shmt_share_item(&p->share, --p->claims.back);
        if (take(p, *piece_out)) return true;
    }
    return false;
}

/* What I have given comes back, or is done by nobody: it is free again. */
static void free_again(struct shmt_shm_seat *link, uint64_t piece) {
    struct shmt_shm_piece *of = &link->store->ledger[piece];
    /* relaxed: who finds it free needs nothing else of mine. Workers look at their list when they have seen passing.n; of a share that is
     * looked through anew by a next life, whoever takes it has it. */
    if (shmt_ledger_is_of(of, link->epoch, link->seat.rank)) store_relaxed(&of->owner, 0);
}

void shmt_shm_free_given(struct shmt_shm_seat *link) {
    const bool gave = shmt_spec_passes_items(&link->store->spec) && link->share_epoch == link->epoch && link->share.n_slots > 0;
    for (uint64_t i = 0; gave && i < link->store->layout.ledger.n; i++)
        if (shmt_ledger_examples(&link->store->ledger[i], link->epoch) == 0) free_again(link, i);
}

static void count(struct shmt_shm_seat *link) { shmt_gate_reach(&link->meeting, SHMT_GATE_READ, count_of(link) + 1); }

static void pass(struct shmt_seat *seat, const uint64_t *piece, uint64_t n) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    struct shmt_store *store = p->store;
    const uint64_t before = count_passed(store, p->epoch), all = shmt_min_u64(before + n, store->layout.passed.n);
    begin_giving(p);
    for (uint64_t i = before; i < all; i++) {
        free_again(p, piece[i - before]);
        store->passed[i] = (uint32_t)piece[i - before];
    }
    p->passed = all;
    SHMT_POINT("passing:listed");
    store_release(&store->passing->n, tag(p->epoch) | all); /* pairs with the acquire in count_passed */
    count(p);
}

static void close_epoch(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    store_release(&p->store->passing->closed, p->epoch + UINT64_C(1)); /* pairs with the acquire in nothing_more_comes */
    count(p);
}

const struct shmt_far_passing_ops SHMT_SHM_FAR_PASSING = {.is_out = is_out, .give = give, .pass = pass, .close = close_epoch};
