/* The engine of live modes with one copy of the parameters: pushes are updates of the shared rows at once, a clock is counted per
 * piece. */
#include "backends/shm/shm_priv.h"

static int enter(struct shmt_shm_seat *p) {
    shmt_shm_deal_begin(p);
    return 0;
}

static int claim(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_deal(p);
    if (rc == 0) shmt_shm_stop_counting(p);
    return rc;
}

/* Waits until the slowest one that has work is as close as the policy asks for. A bound that is kept anyway costs a look at one
 * number: clocks only grow, so what the slowest had reached at the last look still holds. */
static int wait_for_slowest(struct shmt_shm_seat *p) {
    const uint64_t target = shmt_policy_wait_for(&p->store->spec.policy, p->clock);
    if (target <= p->slowest) return 0;
    p->wait_ns = &p->slot->counters.wait_clock_ns;
    if (shmt_gates_wait(&p->clocks, SHMT_GATE_CLOCK, target, NULL)) return SHMTRAIN_E_STOPPED;
    p->slowest = shmt_gates_min(&p->clocks, SHMT_GATE_CLOCK);
    return 0;
}

static int publish(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    shmt_ledger_done(&p->store->ledger[p->piece], p->epoch, p->work.n);
    p->clock++;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
    *out = (struct shmtrain_fate){.clock = p->clock, .applied = (uint32_t)p->work.n};
    return wait_for_slowest(p);
}

static void memory(const struct shmt_shm_seat *p, struct shmt_shm_memory *out) {
    struct shmt_store *store = p->store;
    *out = (struct shmt_shm_memory){
        .weight = store->weight, .sink = store->weight, .state = store->layout.planes ? store->state : NULL};
}

/* The members change with the epoch: the slowest of the last one says nothing of a guest that has just come. */
static void align(struct shmt_shm_seat *p) {
    shmt_shm_align_clocks(p);
    p->slowest = 0;
}

const struct shmt_shm_engine SHMT_SHM_LIVE = {.enter = enter,
                                              .claim = claim,
                                              .memory = memory,
                                              .publish = publish,
                                              .align = align,
                                              .pull = shmt_shm_pull_live,
                                              .missed = shmt_shm_missed_live};
