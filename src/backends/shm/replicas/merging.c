/* Merging replicas with the master, in the memory of a run: what is done to each float says update/merge.h, when it is done
 * replicas.c.
 *
 * Together (between two meetings) every seat has a slice of all copies to itself. Alone, a seat takes the master block by
 * block, each under a lock word that names its holder: state and weights of a block are of one moment there, and everything
 * but the replica itself rests meanwhile. The lock is the block's, not the replica's: it also keeps two who share a replica
 * from merging the same block of it, so the base rests, too. Whoever else shares the replica goes on pushing to it: see
 * shmt_merge_shared. */
#include <string.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "ps/touch.h"
#include "sync/host.h"
#include "update/kernels.h"
#include "update/lock.h"
#include "update/path.h"

#define MOST_PARTS 64  /* of a merge of all together, unless each has a block or more */
#define LOOK       128 /* floats that are looked at before their row locks are taken, one by one */

float *shmt_shm_master(const struct shmt_store *store, uint32_t word) {
    return word == 0 ? store->weight : store->state + (word - 1) * store->layout.flat.n;
}

float *shmt_shm_replica(const struct shmt_store *store, uint32_t replica, uint32_t word) {
    return (float *)(void *)(store->replica + replica * store->layout.replica.each) + word * store->layout.cover.n;
}

float *shmt_shm_base(const struct shmt_store *store, uint32_t replica, uint32_t word) {
    return store->layout.base ? shmt_shm_replica(store, replica, 1 + store->layout.planes + word) : NULL;
}

/* Of the float that replicas hold as number `at`. */
static float *master_at(const struct shmt_store *store, uint32_t word, uint64_t at) {
    return shmt_shm_master(store, word) + shmt_cover_place(&store->layout.cover, at);
}

/* The same of a base; NULL: none is kept. */
static float *base_at(const struct shmt_store *store, uint32_t replica, uint32_t word, uint64_t at) {
    float *const base = shmt_shm_base(store, replica, word);
    return base ? base + at : NULL;
}

static void copy(float *to, const float *from, uint64_t n) {
    if (to && memcmp(to, from, n * sizeof *to) != 0) memcpy(to, from, n * sizeof *to); /* no page is written in vain */
}

void shmt_shm_replica_begin(const struct shmt_store *store, uint32_t replica, uint64_t from, uint64_t to) {
    for (uint64_t at = from, n; at < to; at += n) {
        n = shmt_cover_run(&store->layout.cover, at, to);
        for (uint32_t word = 0; word <= store->layout.planes; word++) {
            const float *const master = master_at(store, word, at);
            copy(shmt_shm_replica(store, replica, word) + at, master, n);
            copy(base_at(store, replica, word, at), master, n);
        }
    }
}

/* ftrl: n weights of one copy, after its state was merged; weight and state (planes `plane` floats apart) begin at what
 * replicas hold as number `at`. */
static void follow(const struct shmt_shm_seat *p, float *weight, const float *state, uint64_t plane, uint64_t at, uint64_t n) {
    const struct shmt_store *store = p->store;
    const uint64_t place = shmt_cover_place(&store->layout.cover, at);
    struct shmt_update u;
    shmt_spec_update(&store->spec, p->epoch, 0, &u); /* the rule's rate is constant */
    shmt_flat_follow(&store->spec, &store->layout.flat, weight, state, plane, place, place + n, &u);
}

static void master_follows(const struct shmt_shm_seat *p, uint64_t at, uint64_t n) {
    const struct shmt_store *store = p->store;
    follow(p, master_at(store, 0, at), master_at(store, 1, at), store->layout.flat.n, at, n);
}

static void mine_follows(const struct shmt_shm_seat *p, uint64_t at, uint64_t n) {
    const struct shmt_store *store = p->store;
    const uint32_t mine = p->merging->mine;
    follow(p, shmt_shm_replica(store, mine, 0) + at, shmt_shm_replica(store, mine, 1) + at, store->layout.cover.n, at, n);
}

/* For a merge of `word` from the float `at` on, of `replica` or all; NULL: nothing is kept. */
static const struct shmt_redo *redo_of(struct shmt_shm_merging *m, uint32_t word, uint64_t at, uint32_t replica) {
    if (!m->redo.open) return NULL;
    m->redo.word = word;
    m->redo.at = at;
    m->redo.replica = replica;
    return &m->redo;
}

/* How each word of table t is merged. */
static const struct shmt_merging *how_of(const struct shmt_shm_seat *p, uint32_t t) {
    const struct shmt_shm_merging *m = p->merging;
    return p->store->spec.tuning[t].role == SHMTRAIN_STATISTIC ? m->how_statistic : m->how_trained;
}

/* The same of the floats at .. *end_out - 1, of which the last is below `to`. */
static const struct shmt_merging *how_at(const struct shmt_shm_seat *p, uint64_t at, uint64_t to, uint64_t *end_out) {
    const struct shmt_spec *spec = &p->store->spec;
    const struct shmt_flat *flat = &p->store->layout.flat;
    *end_out = to;
    if (!p->merging->has_statistics) return p->merging->how_trained;
    /* Replicas hold all of the flat array then: they hold a part of a single table only (ps/spec.c). */
    const uint32_t t = shmt_flat_table(spec, flat, at);
    if (t + 1 < spec->n_tables) *end_out = shmt_min_u64(to, flat->start[t + 1]);
    return how_of(p, t);
}

/* Where memory takes virtual time: that of a merge of the floats at .. at + n - 1 with one replica, which reads and writes them all in both
 * copies. Passes before the merge, as if it had waited for its lines. */
static void pay_for_merge(const struct shmt_shm_seat *p, uint32_t replica, uint64_t at, uint64_t n) {
    const struct shmt_store *store = p->store;
    const uint32_t planes = store->layout.planes;
    if (!shmt_host_touches()) return;
    for (uint64_t from = at, some; from < at + n; from += some) {
        some = shmt_cover_run(&store->layout.cover, from, at + n);
        shmt_touch_planes(master_at(store, 0, from), planes > 0 ? master_at(store, 1, from) : NULL, store->layout.flat.n,
                          planes, some, true);
    }
    float *const state = planes > 0 ? shmt_shm_replica(store, replica, 1) + at : NULL;
    shmt_touch_planes(shmt_shm_replica(store, replica, 0) + at, state, store->layout.cover.n, planes, n, true);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* ---- together ---- */

/* One word of all copies; true when it has changed somewhere. */
static bool merge_word(struct shmt_shm_seat *p, struct shmt_merging how, uint32_t word, uint64_t at, uint64_t n, bool last) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_merging *m = p->merging;
    float *const master = master_at(store, word, at);
    bool changed = false;
    for (uint32_t i = 0; i < m->n_present; i++) m->copy[i] = shmt_shm_replica(store, m->present[i], word) + at;
    if (last && how.kind == SHMT_MERGING_OWN) shmt_merge_collect(master, m->copy, m->n_present, n);
    if (shmt_policy_merges_together(&store->spec.policy))
        return shmt_merge_all(how, master, m->copy, m->n_present, n, redo_of(m, word, at, SHMT_REDO_ALL));
    /* Who merges alone has a base of its own: one after the other, and then all get what has come out. */
    for (uint32_t i = 0; i < m->n_present; i++) {
        float *const base = base_at(store, m->present[i], word, at);
        changed |= shmt_merge_one(how, master, m->copy[i], base, n, redo_of(m, word, at, m->present[i]));
    }
    return changed;
}

static void merge_all_words(struct shmt_shm_seat *p, const struct shmt_merging *how, uint64_t at, uint64_t n, bool last) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_merging *m = p->merging;
    bool changed = m->unsure;
    for (uint32_t word = store->layout.planes; word > 0; word--) changed |= merge_word(p, how[word], word, at, n, last);
    changed |= merge_word(p, how[0], 0, at, n, last);
    if (how[0].kind == SHMT_MERGING_FOLLOWS) {
        changed |= last; /* racy pushes may have left weights that do not fit */
        if (changed) master_follows(p, at, n);
    }
    if (!changed || store->spec.policy.merge == SHMT_MERGE_ELASTIC) return;
    if (shmt_policy_merges_together(&store->spec.policy) && how[0].kind != SHMT_MERGING_FOLLOWS) return; /* all are equal */
    for (uint32_t i = 0; i < m->n_present; i++) shmt_shm_replica_begin(store, m->present[i], at, at + n);
}

/* Many hosts: the link has brought what all their copies come to to the master, and marked the blocks that it has changed
 * (far_merges.c). A life that does it again finds the same. */
static void take_merged(struct shmt_shm_seat *p, const struct shmt_merging *how, uint64_t at, uint64_t n, bool last) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_merging *m = p->merging;
    const bool follows = how[0].kind == SHMT_MERGING_FOLLOWS, changed = store->merged[at / SHMT_FAR_BLOCK] || (follows && last);
    if (!changed) return;
    if (follows) master_follows(p, at, n);
    for (uint32_t i = 0; i < m->n_present; i++) shmt_shm_replica_begin(store, m->present[i], at, at + n);
}

/* My part of the floats. Each part is merged in all replicas, and each replica of a part is a page of its own to be entered into
 * the page table of who merges it: with a part for every seat these would be as many as the square of the seats. */
static void slice_of(const struct shmt_shm_seat *p, uint64_t *from, uint64_t *to) {
    const uint64_t n = p->store->layout.cover.n, most = shmt_max_u64(MOST_PARTS, n / SHMT_MERGE_FLOATS);
    const uint32_t parts = (uint32_t)shmt_min_u64(p->seat.n_present, most);
    *from = *to = n;
    if (p->seat.index < parts) shmt_slice(n, p->seat.index, parts, from, to);
}

/* Where the step of a merge that begins with the float `at` ends, at the latest. */
static uint64_t step_end(const struct shmt_shm_seat *p, uint64_t at, uint64_t to) {
    if (shmt_spec_merges_over_hosts(&p->store->spec)) return shmt_min_u64(to, (at / SHMT_FAR_BLOCK + 1) * SHMT_FAR_BLOCK);
    return at + shmt_min_u64(SHMT_MERGE_FLOATS, shmt_cover_run(&p->store->layout.cover, at, to));
}

void shmt_shm_merge_together(struct shmt_shm_seat *p, bool last) {
    const bool over_hosts = shmt_spec_merges_over_hosts(&p->store->spec);
    uint64_t from, to;
    slice_of(p, &from, &to);
    for (uint64_t at = from, end; at < to; at = end) {
        const struct shmt_merging *how = how_at(p, at, step_end(p, at, to), &end);
        for (uint32_t i = 0; i < p->merging->n_present; i++) pay_for_merge(p, p->merging->present[i], at, end - at);
        SHMT_POINT("merge:before");
        if (over_hosts)
            take_merged(p, how, at, end - at, last);
        else
            merge_all_words(p, how, at, end - at, last);
        SHMT_POINT("merge:after");
    }
}

/* ---- alone ---- */

static bool merge_damped(struct shmt_shm_seat *p, uint64_t at, uint64_t n, bool shared) {
    const struct shmt_spec *spec = &p->store->spec;
    struct shmt_shm_merging *m = p->merging;
    const bool atomic = spec->policy.write == SHMT_WRITE_ATOMIC;
    const enum shmt_merge_beside beside = !shared ? SHMT_MERGE_NOBODY : atomic ? SHMT_MERGE_ATOMIC : SHMT_MERGE_RACY;
    struct shmt_merge_words *const words = at < p->store->layout.cover.hot ? &m->words : &m->tail_words;
    words->redo = redo_of(m, 0, 0, m->mine);
    return shmt_path_of(spec->cpu)->merge_damped((enum shmt_rule_kind)spec->rule.kind, &m->damping, beside, words, at, n);
}

static bool merge_words(struct shmt_shm_seat *p, const struct shmt_merging *how, uint64_t at, uint64_t n, bool shared) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_merging *m = p->merging;
    const bool atomic = store->spec.policy.write == SHMT_WRITE_ATOMIC;
    bool changed = false;
    for (uint32_t i = 0; i <= store->layout.planes; i++) {
        const uint32_t word = store->layout.planes - i; /* weights last: they may follow */
        float *const master = master_at(store, word, at), *const mine = shmt_shm_replica(store, m->mine, word) + at;
        float *const base = base_at(store, m->mine, word, at);
        const struct shmt_redo *const redo = redo_of(m, word, at, m->mine);
        changed |= shared ? shmt_merge_shared(how[word], atomic, master, mine, base, n, redo)
                          : shmt_merge_one(how[word], master, mine, base, n, redo);
    }
    return changed;
}

/* All words of the floats at .. at + n - 1. `shared`: others push to them meanwhile. */
static void merge_floats(struct shmt_shm_seat *p, const struct shmt_merging *how, uint64_t at, uint64_t n, bool shared) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_merging *m = p->merging;
    const bool is_damped = shmt_policy_is_damped(&store->spec.policy);
    const bool changed = is_damped ? merge_damped(p, at, n, shared) : merge_words(p, how, at, n, shared);
    if ((!changed && !m->unsure) || how[0].kind != SHMT_MERGING_FOLLOWS) return;
    master_follows(p, at, n);
    mine_follows(p, at, n);
}

static void merge_mine(struct shmt_shm_seat *p, uint64_t from, uint64_t to, bool shared) {
    for (uint64_t at = from, end; at < to; at = end) {
        const struct shmt_merging *how = how_at(p, at, to, &end);
        merge_floats(p, how, at, end - at, shared);
    }
}

static bool looks_due(const struct shmt_shm_seat *p, const struct shmt_merging *how, uint64_t at, uint64_t n) {
    const struct shmt_store *store = p->store;
    for (uint32_t word = 0; word <= store->layout.planes; word++) {
        if (shmt_merge_looks_due(how[word], master_at(store, word, at), shmt_shm_replica(store, p->merging->mine, word) + at,
                                 base_at(store, p->merging->mine, word, at), n))
            return true;
    }
    return false;
}

/* Under the row lock of those who push: a merge of a unit is a push like others. Whoever holds one waits for nothing, so that it is
 * taken behind the block's lock is no danger. */
static void merge_unit(struct shmt_shm_seat *p, uint32_t t, uint64_t at, uint64_t n, void *arg) {
    (void)arg;
    merge_floats(p, how_of(p, t), at, n, true); /* others look, nobody pushes */
    SHMT_POINT("merge-unit:merged");
}

static void merge_locked(struct shmt_shm_seat *p, uint64_t from, uint64_t to) {
    for (uint64_t at = from, end; at < to; at = end) {
        const struct shmt_merging *how = how_at(p, at, shmt_min_u64(at + LOOK, to), &end);
        if (!p->merging->unsure && !looks_due(p, how, at, end - at)) continue;
        shmt_shm_by_units(p, p->merging->mine, at, end, merge_unit, NULL);
    }
}

_Atomic uint32_t *shmt_shm_lock_block(const struct shmt_shm_seat *p, uint64_t block, bool may_skip) {
    const struct shmt_store *store = p->store;
    const struct shmt_locks locks = {.word = store->merge_locks,
                                     .mask = store->layout.merge_mask * (SHMT_LINE / sizeof(uint32_t)),
                                     .owner = (p->seat.life & 0xffff) << 16 | (p->seat.rank + 1),
                                     .abort = &store->control->abort};
    const uint64_t unit = block % (store->layout.merge_mask + 1) * (SHMT_LINE / sizeof(uint32_t));
    /* relaxed: a guess, which the lock itself then makes good */
    if (may_skip && load_relaxed(&locks.word[unit]) != 0) return NULL;
    return shmt_unit_acquire(&locks, unit);
}

bool shmt_shm_merge_range(struct shmt_shm_seat *p, uint64_t from, uint64_t to, bool may_skip) {
    const bool shared = p->merging->n_sharers > 1;
    _Atomic uint32_t *held = shmt_shm_lock_block(p, from / SHMT_MERGE_FLOATS, may_skip);
    if (!held) return false;
    pay_for_merge(p, p->merging->mine, from, to - from);
    SHMT_POINT("merge-alone:taken");
    if (shared && p->store->spec.policy.write == SHMT_WRITE_LOCKED)
        merge_locked(p, from, to);
    else
        merge_mine(p, from, to, shared);
    SHMT_POINT("merge-alone:held");
    shmt_unit_release(held);
    SHMT_POINT("merge-alone:after");
    return true;
}

static void merge_block(struct shmt_shm_seat *p, uint64_t block) {
    const uint64_t from = block * SHMT_MERGE_FLOATS;
    (void)shmt_shm_merge_range(p, from, shmt_min_u64(from + SHMT_MERGE_FLOATS, p->store->layout.cover.n), false);
}

/* Replicas begin at different blocks, so that those who merge at one time seldom meet. */
void shmt_shm_merge_alone(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint64_t n = shmt_ceil_div(store->layout.cover.n, SHMT_MERGE_FLOATS);
    const uint64_t first = n * p->merging->mine / store->layout.n_replicas;
    for (uint64_t i = 0; i < n; i++) merge_block(p, (first + i) % n);
}
