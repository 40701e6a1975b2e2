/* Consistency as three independent choices, and the names for points in that space.
 *
 * A policy says how concurrent updates combine (write), how far a worker may run ahead of the slowest one (staleness bound),
 * and how many copies of the parameters there are. Everything here is pure: numbers in, a verdict out. The waiting itself is
 * done by whoever has something to wait on (futexes, a server's delayed reply, virtual time), all by the same verdicts.
 *
 * Adding a mode is one row in PRESETS (policy.c). */
#ifndef SHMT_CONSISTENCY_POLICY_H
#define SHMT_CONSISTENCY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum shmt_write {
    SHMT_WRITE_RACY,     /* live: plain loads and stores; a concurrent update may be lost (Hogwild!, Niu et al. 2011) */
    SHMT_WRITE_ATOMIC,   /* live: each word changes by compare-and-swap; nothing is lost, words of one row are of any moment */
    SHMT_WRITE_LOCKED,   /* live: each row (dense tables: each block of 1,024 floats) changes under a lock */
    SHMT_WRITE_AGGREGATE /* gradients are summed per batch, one update for all: bulk synchronous (BSP) at staleness 0 */
};

#define SHMT_STALENESS_INF UINT64_MAX

struct shmt_policy {
    enum shmt_write write;
    uint64_t staleness; /* clocks that a worker may be ahead of the slowest; SHMT_STALENESS_INF: any number */
};

/* The point that a mode's name stands for. Errors: _USAGE with the names that there are. */
int shmt_policy_preset(const char *mode, struct shmt_policy *out, struct shmt_error *e);

/* The name of a point: a preset's, or "racy, staleness 0" and the like. */
const char *shmt_policy_name(const struct shmt_policy *policy);

/* Refuses what is not a legal combination, in one sentence. */
int shmt_policy_check(const struct shmt_policy *policy, struct shmt_error *e);

const char *shmt_write_name(enum shmt_write write);
int shmt_write_parse(const char *name, enum shmt_write *out, struct shmt_error *e);

static inline bool shmt_policy_is_live(const struct shmt_policy *policy) { return policy->write != SHMT_WRITE_AGGREGATE; }

/* What min over the living members' clocks must have reached before a worker that has completed `mine` clocks may begin the
 * next one: mine - s, and 0 (nothing to wait for) where that is below 0. It then sees every update of clocks <= mine - s -
 * 1. */
uint64_t shmt_policy_wait_for(const struct shmt_policy *policy, uint64_t mine);

/* May it go on, given that minimum? */
static inline bool shmt_policy_may_go(const struct shmt_policy *policy, uint64_t mine, uint64_t minimum) {
    return minimum >= shmt_policy_wait_for(policy, mine);
}

#endif
