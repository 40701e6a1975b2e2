/* Deaths: what the supervisor does for a seat between the death of its process and the next life, or before the others go on
 * without it. The process is gone, so all that it has stored is there, and its words are ours to write; the others go on
 * meanwhile, and wait for what it holds.
 *
 * What a seat may hold: row locks, merge locks, slices of an update, each named by its lock word. What it may have in hand:
 * a block of an apply phase, or a unit under its lock, whose old bytes it has kept; or a step of a merge, of which it has kept
 * what comes out. What it was about to do next, its own next life finds out (lives.c). */
#include <string.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "ps/meter.h"
#include "ps/replicas.h"
#include "update/lock.h"

static float *old_of(const struct shmt_store *store, uint32_t rank) {
    return (float *)(void *)(store->old + rank * store->layout.old.each);
}

struct shmt_undo shmt_shm_undo(const struct shmt_store *store, uint32_t rank) {
    if (store->layout.old.each == 0 || rank >= store->spec.n_seats) return (struct shmt_undo){0}; /* the link changes nothing */
    return (struct shmt_undo){.word = &store->slot[rank].undo, .old = old_of(store, rank)};
}

struct shmt_redo shmt_shm_redo(const struct shmt_store *store, uint32_t rank) {
    if (store->layout.old.each < sizeof(struct shmt_redo_log) || rank >= store->spec.n_seats) return (struct shmt_redo){0};
    return (struct shmt_redo){.open = &store->slot[rank].redo, .log = (struct shmt_redo_log *)(void *)old_of(store, rank)};
}

/* Whether a log names words that there are; otherwise the store is damaged. */
static bool may_be_written(const struct shmt_store *store, const struct shmt_redo_log *log) {
    const struct shmt_cover *cover = &store->layout.cover;
    if (log->n < 1 || log->n > SHMT_REDO_FLOATS || log->at >= cover->n || log->n > cover->n - log->at) return false;
    if (shmt_cover_run(cover, log->at, log->at + log->n) != log->n || log->word > store->layout.planes) return false;
    return log->replica == SHMT_REDO_ALL || (log->replica < store->layout.n_replicas && store->layout.base);
}

/* The step of a merge that it was at is completed. Together: all are equal, and the next life, which goes through its slice
 * again, finds nothing to do until there. Alone: the master has what the replica had brought, so the base says so; the replica
 * itself, which others may be pushing to, gets the master's words at its next merge. */
static void write_forward(struct shmt_store *store, uint32_t rank) {
    const struct shmt_redo redo = shmt_shm_redo(store, rank);
    if (!redo.open || load_relaxed(redo.open) == 0) return; /* relaxed: its writer is gone */
    const struct shmt_redo_log log = *redo.log;
    if (!may_be_written(store, &log)) return;
    memcpy(shmt_shm_master(store, log.word) + shmt_cover_place(&store->layout.cover, log.at), log.out, log.n * sizeof(float));
    for (uint32_t k = 0; k < store->layout.n_replicas && log.replica == SHMT_REDO_ALL; k++)
        memcpy(shmt_shm_replica(store, k, log.word) + log.at, log.out, log.n * sizeof(float));
    if (log.replica != SHMT_REDO_ALL)
        memcpy(shmt_shm_base(store, log.replica, log.word) + log.at,
               log.beside ? log.from : shmt_shm_replica(store, log.replica, log.word) + log.at, log.n * sizeof(float));
    store_relaxed(redo.open, 0); /* relaxed: published by the lock, and by the fork of the next life */
}

/* Word 0 (weights) or 1 + plane of the float at place 0, as the seat changes it. */
static float *floats_of(const struct shmt_store *store, uint32_t rank, uint32_t word) {
    if (shmt_policy_merges_replicas(&store->spec.policy))
        return shmt_shm_replica(store, shmt_replicas_of(&store->spec, rank), word);
    return word == 0 ? shmt_shm_weight_of(store, rank) : shmt_shm_state_of(store, rank) + (word - 1) * store->layout.flat.n;
}

/* What it was changing becomes what it was. */
static void put_back(struct shmt_store *store, uint32_t rank) {
    const struct shmt_shm_layout *l = &store->layout;
    const uint64_t word = load_relaxed(&store->slot[rank].undo); /* relaxed: its writer is gone */
    const uint64_t at = shmt_undo_at(word), n = shmt_undo_n(word);
    if (l->old.each == 0 || !shmt_undo_says(word) || n == 0) return;
    if (at > l->flat.n || n > l->flat.n - at || n * (UINT64_C(1) + l->planes) * sizeof(float) > l->old.each)
        return; /* a damaged store: there is nothing to be believed */
    for (uint32_t k = 0; k <= l->planes; k++)
        memcpy(floats_of(store, rank, k) + at, old_of(store, rank) + k * n, n * sizeof(float));
    /* Of an apply phase: it goes on here. relaxed: read by its next life, or by nobody */
    store_relaxed(&store->slot[rank].undo, shmt_policy_is_live(&store->spec.policy) ? 0 : shmt_undo_word(at, 0));
}

void shmt_shm_take_back(struct shmt_store *store, uint32_t rank) {
    write_forward(store, rank);
    put_back(store, rank);
}

/* Slices that it was at: whoever takes one next goes on where it stood. */
static void leave_slices(struct shmt_store *store, uint32_t rank) {
    const struct shmt_shm_layout *l = &store->layout;
    const uint64_t word = load_relaxed(&store->slot[rank].undo); /* relaxed: as above */
    const uint64_t done = shmt_undo_says(word) ? shmt_undo_at(word) : 0;
    for (uint32_t i = 0; i < l->n_slices; i++) {
        struct shmt_shm_slice *slice = &store->slice[i];
        const uint64_t held = load_relaxed(&slice->word); /* nobody else writes what the dead one holds */
        uint64_t from, to;
        if ((held & ((1u << SHMT_RANK_BITS) - 1)) != rank + 1) continue;
        shmt_slice(l->flat.n, i, l->n_slices, &from, &to);
        if (done > load_relaxed(&slice->from) && done <= to) store_relaxed(&slice->from, done); /* published by the word */
        /* release: what it has written, and what was taken back; pairs with the acquire of who takes it next */
        store_release(&slice->word, held >> SHMT_RANK_BITS << SHMT_RANK_BITS);
    }
}

static void leave_locks(struct shmt_store *store, uint32_t rank) {
    const struct shmt_policy *policy = &store->spec.policy;
    const uint32_t apart = SHMT_LINE / sizeof(uint32_t);
    if (policy->write == SHMT_WRITE_LOCKED)
        shmt_locks_free(&(const struct shmt_locks){.word = store->locks, .mask = store->layout.lock_mask}, rank);
    if (shmt_policy_merges_replicas(policy) && !shmt_policy_merges_together(policy))
        shmt_locks_free(
            &(const struct shmt_locks){.word = store->merge_locks, .mask = (store->layout.merge_mask + 1) * apart - 1}, rank);
}

void shmt_shm_reclaim(struct shmt_store *store, uint32_t rank, int comes_back) {
    struct shmt_shm_front *front = &store->front[rank];
    shmt_shm_take_back(store, rank);
    leave_slices(store, rank);
    leave_locks(store, rank);
    if (store->spec.coll.half_bytes) shmt_coll_leave(store->coll_words, store->spec.n_seats, rank, comes_back);
    if (comes_back) return;
    shmt_meter_rest(&store->slot[rank].counters, shmt_now_ns()); /* else its time went on until the report */
    /* release: what it has pushed is as complete as it will ever be; pairs with the acquire of the gates' member words */
    store_release(&front->working, 0);
    store_release(&front->alive, 0);
}
