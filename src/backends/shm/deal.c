/* Dealing the pieces of the ledger, wherever batches are not cut into chunks of their own: claims, and what a seat's clock
 * means to those who wait for it while it has work and when it has none. */
#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "ps/strata.h"

void shmt_shm_deal_begin(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    const bool shares = store->layout.links > 0;
    if (shmt_shm_is_link(p)) return;
    p->share_epoch = p->epoch;
    p->passed = 0;
    if (shares) shmt_share_of(&store->shares[p->epoch % 2], spec->hosts.self, &p->share);
    shmt_claims_begin(&p->claims, shmt_spec_pieces(spec), shares ? &p->share : NULL, p->seat.rank,
                      shmt_strata_region(spec, p->seat.rank), spec->n_seats);
}

void shmt_shm_stop_counting(struct shmt_shm_seat *p) {
    /* release: who goes on without me must see all that I have pushed, as if my clock had been reached; pairs with the acquire
     * of the gates' member words */
    SHMT_POINT("stop-counting:before");
    store_release(&p->front->working, 0);
    SHMT_POINT("stop-counting:after");
    shmt_gates_wake(&p->clocks);
}

/* What an earlier life had in hand, to be done once more, if it is to be. */
static bool take_up(struct shmt_shm_seat *p, uint64_t *piece_out) {
    if (p->store->spec.skips || !shmt_shm_take_up(p, piece_out)) return false;
    /* relaxed, both: a number to show, with one writer */
    bump_relaxed(&p->slot->counters.redone, shmt_spec_examples_of_step(&p->store->spec, *piece_out));
    return true;
}

/* 1, 0: there is none, or a status. */
static int claim_piece(struct shmt_shm_seat *p, uint64_t *piece_out) {
    if (shmt_shm_replays(p)) return shmt_shm_tape_claim(p, piece_out);
    if (p->share_epoch != p->epoch) shmt_shm_deal_begin(p); /* what it began with was of the epoch before the turn */
    if (shmt_ledger_claim(p->store->ledger, &p->claims, p->epoch, p->seat.life, piece_out)) return 1;
    return shmt_spec_passes_items(&p->store->spec) ? shmt_shm_claim_passed(p, piece_out) : 0;
}

int shmt_shm_deal(struct shmt_shm_seat *p) {
    struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    uint64_t piece;
    int rc = 0;
    if (shmt_spec_pauses_within(spec) && p->seat.rank == 0) shmt_shm_look_for_pause(p);
    /* relaxed, all: flags that carry nothing but themselves */
    const bool stop = load_relaxed(&store->control->stop) && !shmt_shm_replays(p); /* a replay ends otherwise (taping.c) */
    const bool stopping = stop || !shmt_spec_has_step(spec, p->epoch, 0);
    const bool pausing = load_relaxed(&store->control->pause_step) != SHMT_NO_LIMIT;
    if (load_relaxed(&store->control->abort)) return SHMTRAIN_E_STOPPED;
    /* Before a pause, too: who asks then whether there is more to be dealt takes what is claimed for done. */
    bool found = !stopping && p->seat.life > 0 && take_up(p, &piece);
    while (!found && !stopping && !pausing && (rc = claim_piece(p, &piece)) == 1) {
        found = shmt_spec_has_step(spec, p->epoch, piece);
        if (found) break; /* pieces beyond max_steps are claimed and left undone */
    }
    if (!found) return rc;
    SHMT_POINT("claim:after");
    p->piece = piece;
    p->work = (struct shmtrain_work){.first = piece * spec->item,
                                     .n = shmt_spec_examples_of_step(spec, piece),
                                     .step = p->epoch * shmt_spec_steps(spec) + piece,
                                     .epoch = p->epoch,
                                     .life = p->seat.life};
    return 1;
}

int shmt_shm_wait_for_slowest(struct shmt_shm_seat *p, uint64_t target) {
    if (target <= p->slowest) return 0;
    p->wait_ns = &p->slot->counters.wait_clock_ns;
    if (shmt_gates_wait(&p->clocks, SHMT_GATE_CLOCK, target, NULL)) return SHMTRAIN_E_STOPPED;
    p->slowest = shmt_gates_min(&p->clocks, SHMT_GATE_CLOCK);
    return 0;
}

void shmt_shm_align_clocks(struct shmt_shm_seat *p) {
    /* All have met, so every clock is at its last value of the epoch, or already at the largest of these. */
    uint64_t largest = p->clock;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats + p->store->layout.links; seat++)
        largest = shmt_max_u64(largest, load_relaxed(&p->store->front[seat].gate.clock));
    p->clock = largest;
    p->slowest = 0; /* members change with the epoch: that of the last one says nothing of a guest that has just come */
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, largest);
    /* relaxed: the meeting point that follows publishes it before anybody waits for clocks again */
    SHMT_POINT("count:before");
    store_relaxed(&p->front->working, 1);
    SHMT_POINT("count:after");
    shmt_shm_deal_begin(p);
}
