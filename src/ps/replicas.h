/* Replicas: how many copies of the parameters a run has, which worker each belongs to, and what it holds. Pure; called by backends,
 * and every worker computes the same. The master copy, which is read, evaluated and saved, is not one of them.
 *
 * replicas worker: one for each worker, guests included; the threads of a worker share theirs. replicas node: one for each NUMA
 * node that has seats, in the order of nodes.
 * replicas equal: one for each seat but the first, whose copy is the master. */
#pragma once

#include "ps/flat.h"

/* 0 with one copy for all. */
uint32_t shmt_replicas_count(const struct shmt_spec *spec);

/* The replica of a seat, below the count; 0 with one copy for all. Equal ones: SHMT_REPLICA_NONE for seat 0. */
#define SHMT_REPLICA_NONE UINT32_MAX
uint32_t shmt_replicas_of(const struct shmt_spec *spec, uint32_t seat);

/* The same of all seats: out (n_seats). */
void shmt_replicas_of_all(const struct shmt_spec *spec, uint32_t *out);

/* How many copies of the run's own workers a merge takes the mean of; 1 where it takes none. */
uint32_t shmt_replicas_averaged(const struct shmt_spec *spec);

/* The steps of how many such copies a merge adds up; 1 where it does not. */
uint32_t shmt_replicas_summed(const struct shmt_spec *spec);

/* The node (index into placement.node) whose memory a replica is best in. */
uint32_t shmt_replicas_node(const struct shmt_spec *spec, uint32_t replica);

/* Whether each replica needs a copy of what it was after its last merge: where replicas merge alone, and bring changes. */
static inline bool shmt_replicas_keep_base(const struct shmt_policy *policy) {
    return shmt_policy_merges_replicas(policy) && !shmt_policy_merges_together(policy) && policy->merge != SHMT_MERGE_ELASTIC;
}

/* Clocks of a seat between two merges of all of its replica. A damped one is merged by lines, hot ones after each stretch; the
 * rest may wait for 16 times as many, but for no more than all do in an epoch. */
uint32_t shmt_replicas_merge_all_every(const struct shmt_spec *spec);

/* Where replicas merge alone: whether seat `index` of the n that share a replica merges it when it has completed `clocks` of an
 * epoch. They take turns, so that the replica is merged about once while each of them completes a stretch. */
static inline bool shmt_replicas_turn(const struct shmt_policy *policy, uint64_t clocks, uint32_t index, uint32_t n) {
    return clocks > 0 && shmt_policy_merge_due(policy, clocks) && clocks / shmt_replicas_stretch(policy) % n == index;
}

/* What replicas hold of the flat array, numbered without gaps: its first `hot` floats, and `n - hot` from `tail` on. */
struct shmt_cover {
    uint64_t hot, tail, n;
};
void shmt_replicas_cover(const struct shmt_spec *spec, const struct shmt_flat *flat, struct shmt_cover *out);

/* The place in the flat array of a replica's float `at`, and how many from there on, below `to`, lie side by side. */
static inline uint64_t shmt_cover_place(const struct shmt_cover *cover, uint64_t at) {
    return at < cover->hot ? at : at - cover->hot + cover->tail;
}
static inline uint64_t shmt_cover_run(const struct shmt_cover *cover, uint64_t at, uint64_t to) {
    return (at < cover->hot ? shmt_min_u64(to, cover->hot) : to) - at;
}

/* The number in a replica of the float at `place`; UINT64_MAX: it holds none. */
static inline uint64_t shmt_cover_of(const struct shmt_cover *cover, uint64_t place) {
    if (place < cover->hot) return place;
    return place >= cover->tail && place - cover->tail < cover->n - cover->hot ? place - cover->tail + cover->hot : UINT64_MAX;
}
