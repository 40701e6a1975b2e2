/* The engine of live modes with one copy of the parameters: pushes are updates of the shared rows at once, a clock is
 * counted per piece. */
#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"

/* An earlier life has counted no clock for the piece that it did last, perhaps. */
static int resume(struct shmt_shm_seat *p) {
    p->clock += p->done - p->now.done;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
    return 1;
}

static int enter(struct shmt_shm_seat *p) {
    if (p->revived) p->done = shmt_shm_count_done(p);
    shmt_shm_deal_begin(p);
    return 0;
}

static int claim(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_deal(p);
    if (rc == 0) shmt_shm_stop_counting(p);
    return rc;
}

static int publish(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    SHMT_POINT("live:before");
    shmt_ledger_done(&p->store->ledger[p->piece], p->epoch, p->work.n);
    p->done++;
    p->clock++;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
    *out = (struct shmtrain_fate){.clock = p->clock, .applied = (uint32_t)p->work.n};
    return shmt_shm_wait_for_slowest(p, shmt_policy_wait_for(&p->store->spec.policy, p->clock));
}

static void memory(const struct shmt_shm_seat *p, struct shmt_shm_memory *out) {
    struct shmt_store *store = p->store;
    *out = (struct shmt_shm_memory){
        .weight = store->weight, .sink = store->weight, .state = store->layout.planes ? store->state : NULL};
}

/* relaxed: numbers for a measurement, nothing is read on their strength */
static uint64_t updates(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    uint64_t sum = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        if (seat != p->seat.rank) sum += load_relaxed(&store->slot[seat].counters.updates);
    return sum;
}

/* Since the oldest line that was read was copied, or since the piece was claimed. */
static uint64_t missed(const struct shmt_shm_seat *p) {
    const uint64_t now = updates(p);
    const uint64_t then = p->store->spec.cache_pulls ? shmt_min_u64(p->others, p->seat.pulled.updates) : p->others;
    return now > then ? now - then : 0;
}

const struct shmt_shm_engine SHMT_SHM_LIVE = {.stage = {[SHMT_STAGE_WORK] = {.resume = resume}},
                                              .enter = enter,
                                              .claim = claim,
                                              .memory = memory,
                                              .publish = publish,
                                              .align = shmt_shm_align_clocks,
                                              .updates = updates,
                                              .missed = missed};
