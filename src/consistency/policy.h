/* Consistency as three independent choices: a point in the space write x wait x replicas.
 *
 * A policy says how concurrent updates combine (write), how far a worker may run ahead of the slowest one and how many
 * gradients an update waits for (wait), and how many copies of the parameters there are, and how they are brought together
 * (replicas). Everything here is pure: numbers in, a verdict out. The waiting itself is done by whoever has something to
 * wait on (futexes, a server's delayed reply, virtual time), all by the same verdicts.
 *
 * Names for points, and how to add one: mode.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum shmt_write {
    SHMT_WRITE_RACY,     /* live: plain loads and stores; a concurrent update may be lost (Hogwild!, Niu et al. 2011) */
    SHMT_WRITE_ATOMIC,   /* live: each word changes by compare-and-swap; nothing is lost, words of one row are of any moment */
    SHMT_WRITE_LOCKED,   /* live: each row (dense tables: each block of 1,024 floats) changes under a lock */
    SHMT_WRITE_AGGREGATE /* gradients are summed, one update for all of a clock */
};

/* What becomes of a gradient that comes after its update's quorum was complete. */
enum shmt_late {
    SHMT_LATE_DROP, /* it is thrown away, and its examples are counted (backup workers, Chen et al. 2016) */
    SHMT_LATE_FOLD  /* it is offered for the open round, and does not count towards its quorum */
};

enum shmt_replicas {
    SHMT_REPLICAS_ONE, /* one copy of the parameters for all */
    SHMT_REPLICAS_NODE, /* one for each NUMA node that has workers (DimmWitted, Zhang & Ré 2014; HogWild++, Zhang et al. 2016) */
    SHMT_REPLICAS_WORKER, /* one for each worker (local SGD, parameter averaging) */
    SHMT_REPLICAS_EQUAL /* one for each seat, all equal: each makes all updates itself (DistributedDataParallel, Li et al. 2020) */
};

/* How replicas are brought together; m is the master copy. */
enum shmt_merge {
    SHMT_MERGE_MEAN,    /* m' = mean over the replicas (McMahan et al. 2017), r' = m' */
    SHMT_MERGE_SUM,     /* m' = m + sum over the replicas of what each has changed since its last merge, r' = m' */
    SHMT_MERGE_ELASTIC, /* r' = r - a (r - m), m' = m + a sum (r - m) (EASGD, Zhang, Choromanska & LeCun 2015) */
    SHMT_MERGE_DAMPED   /* m' = m + what one worker would have made of the change, r' = m' (update/merge.h); alone only */
};

#define SHMT_STALENESS_INF           UINT64_MAX
#define SHMT_MAX_AGGREGATE_STALENESS 64         /* aggregate keeps one gradient buffer more of each worker */
#define SHMT_QUORUM_ALL              0u         /* an update waits for all who have work */
#define SHMT_QUORUM_MOST             UINT32_MAX /* for all but one in eight, rounded up: until the number of workers is known */

struct shmt_policy {
    enum shmt_write write;
    uint64_t staleness; /* clocks (replicas: stretches of H) that a worker may be ahead of the slowest, or SHMT_STALENESS_INF */
    uint32_t quorum;    /* aggregate: workers whose gradients an update waits for, or SHMT_QUORUM_ALL */
    enum shmt_late late;
    enum shmt_replicas replicas;
    uint32_t merge_every; /* H: clocks of a worker between two merges; 0 with one copy */
    enum shmt_merge merge;
};

/* The axes that somebody names in the place of a mode's, but for the staleness. Of choices SHMT_UNSAID, of numbers 0: nobody does. */
#define SHMT_UNSAID UINT64_MAX
struct shmt_axes {
    uint64_t write, late, replicas, merge; /* enum shmt_write, ... */
    uint64_t quorum, merge_every;
};

/* Refuses what is not a legal combination for so many workers, in one sentence, and turns SHMT_QUORUM_MOST, and a quorum of
 * all, into what they stand for. Errors: _USAGE. */
int shmt_policy_settle(struct shmt_policy *policy, uint32_t n_workers, struct shmt_error *e);

/* The same check, of a policy that is settled. */
int shmt_policy_check(const struct shmt_policy *policy, uint32_t n_workers, struct shmt_error *e);

bool shmt_policy_equal(const struct shmt_policy *a, const struct shmt_policy *b);

const char *shmt_write_name(enum shmt_write write);
const char *shmt_late_name(enum shmt_late late);
const char *shmt_replicas_name(enum shmt_replicas replicas);
const char *shmt_merge_name(enum shmt_merge merge);

/* Errors: _USAGE with the words that there are. */
int shmt_write_parse(const char *name, enum shmt_write *out, struct shmt_error *e);

/* Pushes change the parameters (or one's replica) at once. */
static inline bool shmt_policy_is_live(const struct shmt_policy *policy) { return policy->write != SHMT_WRITE_AGGREGATE; }

/* Bulk synchronous: every update is of a whole batch, cut into chunks, with the same bits for every number of workers. The rest
 * of `aggregate` comes in rounds: items are dealt as in the live modes, and an update is of those gradients that it has. */
static inline bool shmt_policy_is_batched(const struct shmt_policy *policy) {
    return policy->write == SHMT_WRITE_AGGREGATE && policy->staleness == 0 && policy->quorum == SHMT_QUORUM_ALL;
}
static inline bool shmt_policy_has_rounds(const struct shmt_policy *policy) {
    return !shmt_policy_is_live(policy) && !shmt_policy_is_batched(policy);
}

/* Whether there are replicas that differ, and so are merged. */
static inline bool shmt_policy_merges_replicas(const struct shmt_policy *policy) {
    return policy->replicas == SHMT_REPLICAS_NODE || policy->replicas == SHMT_REPLICAS_WORKER;
}
static inline bool shmt_policy_has_equal_copies(const struct shmt_policy *policy) {
    return policy->replicas == SHMT_REPLICAS_EQUAL;
}

/* ---- wait ---- */

/* What min over the living members' clocks must have reached before a worker that has completed `mine` clocks may begin the
 * next one: mine - s, and 0 (nothing to wait for) where that is below 0. It then sees every update of clocks <= mine - s - 1
 * (SSP, Ho et al. 2013). */
uint64_t shmt_policy_wait_for(const struct shmt_policy *policy, uint64_t mine);

/* How many gradients an update needs: `asked` (0: all), but never more than there are members that are alive and have work. */
static inline uint32_t shmt_policy_needed(uint32_t asked, uint32_t n_members) {
    return asked == SHMT_QUORUM_ALL || asked > n_members ? n_members : asked;
}

/* ---- replicas ---- */

/* A stretch: so many clocks of a seat, from one merge to the next; 0 with one copy. */
static inline uint64_t shmt_replicas_stretch(const struct shmt_policy *policy) { return policy->merge_every; }

static inline void shmt_policy_take_one_copy(struct shmt_policy *policy) {
    policy->replicas = SHMT_REPLICAS_ONE;
    policy->merge_every = 0;
}

/* Whether a merge follows when `mine` clocks are complete. */
static inline bool shmt_policy_merge_due(const struct shmt_policy *policy, uint64_t mine) {
    return shmt_policy_merges_replicas(policy) && mine % policy->merge_every == 0;
}

/* Whether the master takes a share of each change that depends on the parameter. */
static inline bool shmt_policy_is_damped(const struct shmt_policy *policy) {
    return shmt_policy_merges_replicas(policy) && policy->merge == SHMT_MERGE_DAMPED;
}

/* Whether all meet to merge (s = 0), or each merges with the master when it is due. */
static inline bool shmt_policy_merges_together(const struct shmt_policy *policy) { return policy->staleness == 0; }

/* Whether there are replicas that all workers meet to merge (local SGD). */
static inline bool shmt_policy_meets_to_merge(const struct shmt_policy *policy) {
    return shmt_policy_merges_replicas(policy) && shmt_policy_merges_together(policy);
}
