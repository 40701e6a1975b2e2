/* The link's seat where all workers of all hosts meet to merge their copies (ps/far.h): it comes last to the meeting before a merge. While
 * all workers stand there, copies and master rest: it reads what this host's copies come to, brings to the master what those of all
 * hosts come to, and marks the blocks that this has changed. Behind the meeting each worker brings a slice of the copies to the master
 * (take_merged in merging.c), and the marks go when all have done so. So a worker that dies in the middle of that has left nothing that
 * its next life could not do again.
 *
 * The link is one more worker to this host's: its word `working` says whether those of other hosts have work left. While they do, this
 * host's come to each merge, too. */
#include <string.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "base/checked.h"
#include "base/point.h"

static uint64_t floats_of(const struct shmt_store *store, uint64_t block) {
    return shmt_min_u64(SHMT_FAR_BLOCK, store->layout.flat.n - block * SHMT_FAR_BLOCK);
}

static int gather(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_store *store = p->store;
    int works = 0;
    if (shmt_shm_wait_for_workers(p) < 0) return SHMTRAIN_E_STOPPED;
    for (uint32_t i = 0; i < store->spec.n_seats; i++) /* relaxed: published by its phase, which I have waited for */
        works |= shmt_shm_takes_part(p, i) && load_relaxed(&store->front[i].working) != 0;
    return works;
}

/* How a word of the floats at .. *end_out - 1 is merged, of which the last is below `to`. Copies are many or one, but all are there. */
static struct shmt_merging how_at(const struct shmt_store *store, uint32_t word, uint64_t at, uint64_t to, uint64_t *end_out) {
    const struct shmt_spec *spec = &store->spec;
    const struct shmt_flat *flat = &store->layout.flat;
    const uint32_t t = shmt_flat_table(spec, flat, at);
    *end_out = t + 1 < spec->n_tables ? shmt_min_u64(to, flat->start[t + 1]) : to;
    if (word == 0 && spec->tuning[t].role == SHMTRAIN_STATISTIC)
        return shmt_merging_statistic(spec->policy.merge, store->layout.n_replicas);
    return shmt_merging_of(spec->policy.merge, (enum shmt_rule_kind)spec->rule.kind, word, store->layout.n_replicas);
}

static bool part(struct shmt_seat *seat, uint32_t word, uint64_t block, struct shmt_merge_part *out) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    const uint64_t from = block * SHMT_FAR_BLOCK, to = from + floats_of(store, block);
    const float *const master = shmt_shm_master(store, word);
    float *copy[SHMT_MOST_COPIES];
    struct shmt_merge_part here = {0};
    bool any = false;
    for (uint64_t at = from, end; at < to; at = end) {
        const struct shmt_merging how = how_at(store, word, at, to, &end);
        for (uint32_t i = 0; i < store->layout.n_replicas; i++) copy[i] = shmt_shm_replica(store, i, word) + at;
        any |= shmt_merge_part_take(how, master + at, copy, store->layout.n_replicas, end - at, at - from, &here);
    }
    if (any) *out = here;
    return any;
}

static void merge(struct shmt_seat *seat, uint32_t word, uint64_t block, const struct shmt_merge_part *parts, uint32_t n) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    const uint64_t from = block * SHMT_FAR_BLOCK, to = from + floats_of(store, block);
    float *const master = shmt_shm_master(store, word);
    float merged[SHMT_FAR_BLOCK];
    for (uint64_t at = from, end; at < to; at = end) {
        const struct shmt_merging how = how_at(store, word, at, to, &end);
        shmt_merge_parts(how, master + at, parts, n, end - at, at - from, merged + (at - from));
    }
    memcpy(master + from, merged, (to - from) * sizeof *merged);
    store->merged[block] = 1;
}

static int publish(struct shmt_seat *seat, bool others_work, bool stop) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    struct shmt_store *store = p->store;
    _Atomic uint64_t *const wait = &p->slot->counters.wait_clock_ns;
    /* relaxed, both: published by the meeting; the chief reads the second one behind the end of the epoch */
    store_relaxed(&p->front->working, others_work);
    if (stop) store_relaxed(&store->control->end_step, (p->epoch + UINT64_C(1)) * shmt_spec_steps(&store->spec));
    SHMT_POINT("far-merge:published");
    int rc = shmt_shm_meet(p, wait);
    if (rc == 0) rc = shmt_shm_meet(p, wait);
    if (rc == 0) memset(store->merged, 0, store->layout.merged.n);
    return rc;
}

const struct shmt_far_merge_ops SHMT_SHM_FAR_MERGES = {.gather = gather, .part = part, .merge = merge, .publish = publish};
