/* Points of the consistency space: what is legal, and the words for it. See policy.h. */
#include "consistency/policy.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- words ---- */

static const char *const WRITES[] = {[SHMT_WRITE_RACY] = "racy",
                                     [SHMT_WRITE_ATOMIC] = "atomic",
                                     [SHMT_WRITE_LOCKED] = "locked",
                                     [SHMT_WRITE_AGGREGATE] = "aggregate"};
static const char *const LATES[] = {[SHMT_LATE_DROP] = "drop", [SHMT_LATE_FOLD] = "fold"};
static const char *const REPLICAS[] = {[SHMT_REPLICAS_ONE] = "one",
                                       [SHMT_REPLICAS_NODE] = "node",
                                       [SHMT_REPLICAS_WORKER] = "worker",
                                       [SHMT_REPLICAS_EQUAL] = "equal"};
static const char *const MERGES[] = {
    [SHMT_MERGE_MEAN] = "mean", [SHMT_MERGE_SUM] = "sum", [SHMT_MERGE_ELASTIC] = "elastic", [SHMT_MERGE_DAMPED] = "damped"};

const char *shmt_write_name(enum shmt_write write) { return WRITES[write]; }
const char *shmt_late_name(enum shmt_late late) { return LATES[late]; }
const char *shmt_replicas_name(enum shmt_replicas replicas) { return REPLICAS[replicas]; }
const char *shmt_merge_name(enum shmt_merge merge) { return MERGES[merge]; }

/* The number of a word, or a refusal that names them all. */
static int find(const char *const *words, size_t n, const char *axis, const char *word, struct shmt_error *e) {
    char all[80] = "";
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0) return (int)i;
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
    }
    return shmt_refuse(e, "unknown %s \"%.60s\": use %s", axis, word, all);
}

int shmt_write_parse(const char *name, enum shmt_write *out, struct shmt_error *e) {
    const int i = find(WRITES, COUNT(WRITES), "write mode", name, e);
    if (i >= 0) *out = (enum shmt_write)i;
    return i < 0 ? i : 0;
}

/* ---- what is legal ---- */

static int check_aggregate(const struct shmt_policy *p, struct shmt_error *e) {
    if (p->staleness == SHMT_STALENESS_INF)
        return shmt_refuse(e, "write aggregate needs a finite staleness: an update waits for all gradients; use --staleness 0");
    if (p->staleness > SHMT_MAX_AGGREGATE_STALENESS)
        return shmt_refuse(e,
                           "write aggregate with staleness %llu needs one gradient buffer more than that for each worker: the "
                           "most is staleness %d",
                           (unsigned long long)p->staleness, SHMT_MAX_AGGREGATE_STALENESS);
    if (shmt_policy_merges_replicas(p))
        return shmt_refuse(e, "replicas %s need a write mode that updates at once: use --write racy, atomic or locked",
                           shmt_replicas_name(p->replicas));
    return 0;
}

static int check_quorum(const struct shmt_policy *p, uint32_t n_workers, struct shmt_error *e) {
    if (p->quorum == SHMT_QUORUM_ALL) return 0;
    if (p->quorum > n_workers)
        return shmt_refuse(e, "an update cannot wait for %u of %u workers: use a --quorum of at most %u, or -w %u or more",
                           p->quorum, n_workers, n_workers, p->quorum);
    if (p->write != SHMT_WRITE_AGGREGATE)
        return shmt_refuse(e, "a quorum counts the gradients that an update waits for: it needs --write aggregate");
    if (p->staleness != 0)
        return shmt_refuse(e,
                           "a quorum of %u of %u workers needs --staleness 0: with a larger staleness each update waits for "
                           "the gradients of all workers",
                           p->quorum, n_workers);
    return 0;
}

static int check_replicas(const struct shmt_policy *p, struct shmt_error *e) {
    if (shmt_policy_has_equal_copies(p) && !shmt_policy_is_batched(p))
        return shmt_refuse(
            e,
            "replicas equal all make the same updates, of all workers' gradients: use --mode allreduce, or --write "
            "aggregate --staleness 0 without a quorum");
    if (shmt_policy_merges_replicas(p) && shmt_replicas_stretch(p) == 0)
        return shmt_refuse(e, "replicas %s must be merged regularly: use --merge-every 4, or another number of clocks",
                           shmt_replicas_name(p->replicas));
    if (shmt_policy_is_damped(p) && p->staleness == 0)
        return shmt_refuse(e,
                           "merge damped is for replicas that each merge on their own: use --staleness inf (or --mode async), "
                           "or --merge mean");
    return 0;
}

int shmt_policy_check(const struct shmt_policy *policy, uint32_t n_workers, struct shmt_error *e) {
    int rc = policy->write == SHMT_WRITE_AGGREGATE ? check_aggregate(policy, e) : 0;
    if (rc == 0) rc = check_quorum(policy, n_workers, e);
    return rc == 0 ? check_replicas(policy, e) : rc;
}

int shmt_policy_settle(struct shmt_policy *policy, uint32_t n_workers, struct shmt_error *e) {
    if (policy->quorum == SHMT_QUORUM_MOST) policy->quorum = n_workers - (n_workers > 1 ? (n_workers + 7) / 8 : 0);
    if (shmt_policy_has_equal_copies(policy))
        policy->merge_every = 0;
    else if (!shmt_policy_merges_replicas(policy))
        shmt_policy_take_one_copy(policy);
    const int rc = shmt_policy_check(policy, n_workers, e);
    if (policy->quorum == n_workers) policy->quorum = SHMT_QUORUM_ALL;
    return rc;
}

/* ---- points ---- */

bool shmt_policy_equal(const struct shmt_policy *a, const struct shmt_policy *b) {
    const bool copies = shmt_policy_merges_replicas(a), late = a->quorum != SHMT_QUORUM_ALL;
    return a->write == b->write && a->staleness == b->staleness && a->quorum == b->quorum && a->replicas == b->replicas &&
           (!late || a->late == b->late) &&
           (!copies || (shmt_replicas_stretch(a) == shmt_replicas_stretch(b) && a->merge == b->merge));
}

uint64_t shmt_policy_wait_for(const struct shmt_policy *policy, uint64_t mine) {
    return mine > policy->staleness ? mine - policy->staleness : 0;
}
