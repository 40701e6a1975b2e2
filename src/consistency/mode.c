/* The list of modes, and names of points: see mode.h. */
#include "consistency/mode.h"

#include <stdio.h>
#include <string.h>

#include "base/plain.h"

/* What theory promises of each stands above its row. */
static const struct shmt_mode MODES[] = {
    /* Everybody updates at once, and nobody waits. On one copy that is Hogwild!: an update does not know of about n - 1 clocks'
     * worth of others', and may overwrite one (Niu et al. 2011: harmless when few meet). Where each worker's cache holds a copy, it
     * gets one, because lines that all change travel: then nothing is overwritten, and what is not known is what came between two
     * merges. */
    {.name = "async",
     .known_as = "Hogwild!, on copies where that is faster",
     .about = "update at once, never wait",
     .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
     .may_copy = true},
    /* Hogwild! as it was published: everybody updates the one copy at once, and nobody waits. The same point as async without
     * copies of its own; it has a name for those who want to see what copies give, or what it costs that frequent features
     * travel. */
    {.name = "hogwild",
     .known_as = "Hogwild! (Niu et al. 2011)",
     .about = "async, always with one copy",
     .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF}},
    /* Bulk synchronous: one update per batch, of all workers' gradients (TensorFlow's SyncReplicasOptimizer, data-parallel
     * all-reduce). No delay, the same bits for every number of workers; everybody waits for the slowest at each batch. */
    {.name = "sync",
     .known_as = "bulk synchronous (BSP)",
     .about = "one update per batch, of all gradients",
     .policy = {.write = SHMT_WRITE_AGGREGATE}},
    /* The same updates, but each worker makes them all on a copy of its own, of a sum that all have added up together: data-parallel
     * training by all-reduce (PyTorch's DistributedDataParallel, Li et al. 2020; Horovod, Sergeev and Del Balso 2018). Copies stay
     * equal; what is shared are gradients alone. The bits are those of sync. */
    {.name = "allreduce",
     .known_as = "DDP (Li et al. 2020)",
     .about = "sync, on equal copies of the parameters",
     .policy = {.write = SHMT_WRITE_AGGREGATE, .replicas = SHMT_REPLICAS_EQUAL}},
    /* Stale Synchronous Parallel: updates at once, but nobody may be more than s clocks ahead of the slowest. Every update of
     * clocks <= mine - s - 1 is seen, so the delay is bounded; waits are as long as the bound makes them (Ho et al. 2013). */
    {.name = "ssp",
     .known_as = "SSP (Ho et al. 2013)",
     .about = "update at once, at most S clocks ahead",
     .policy = {.write = SHMT_WRITE_ATOMIC, .staleness = 4},
     .number = SHMT_NUMBER_STALENESS},
    /* Backup workers: an update goes on when the first k of n gradients are in; late ones are dropped (Chen et al. 2016;
     * TensorFlow's replicas_to_aggregate). Dropped gradients in place of waiting for stragglers; without stragglers, work thrown
     * away. */
    {.name = "backup",
     .known_as = "backup workers, Chen et al. 2016",
     .about = "updates take the first K gradients",
     .policy = {.write = SHMT_WRITE_AGGREGATE, .quorum = SHMT_QUORUM_MOST, .late = SHMT_LATE_DROP},
     .number = SHMT_NUMBER_QUORUM},
    /* Local SGD: every worker updates a copy of its own; all meet every H clocks to average (Zinkevich et al. 2010; McMahan et
     * al. 2017; Stich 2019). No traffic between merges; the copies drift apart until the next one. */
    {.name = "local",
     .known_as = "local SGD",
     .about = "a copy per worker, averaged every H clocks",
     .policy = {.write = SHMT_WRITE_RACY, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 8, .merge = SHMT_MERGE_MEAN},
     .number = SHMT_NUMBER_MERGE_EVERY},
    /* A copy for each NUMA node: Hogwild! within a node, whose caches are near, and merges between nodes every H clocks without
     * waiting (DimmWitted, Zhang and Re 2014; HogWild++, Zhang, Hsieh and Akella 2016). With one node it is hogwild. */
    {.name = "node",
     .known_as = "DimmWitted's PerNode; HogWild++",
     .about = "a copy per NUMA node, merged on the way",
     .policy = {.write = SHMT_WRITE_RACY,
                .staleness = SHMT_STALENESS_INF,
                .replicas = SHMT_REPLICAS_NODE,
                .merge_every = 4,
                .merge = SHMT_MERGE_SUM},
     .number = SHMT_NUMBER_MERGE_EVERY},
};

#define N_MODES (sizeof MODES / sizeof *MODES)

const struct shmt_mode *shmt_mode_at(size_t i) { return i < N_MODES ? &MODES[i] : NULL; }

static const struct shmt_mode *find(const char *text, size_t length) {
    for (size_t i = 0; i < N_MODES; i++)
        if (strlen(MODES[i].name) == length && memcmp(MODES[i].name, text, length) == 0) return &MODES[i];
    return NULL;
}

const struct shmt_mode *shmt_mode_find(const char *text) { return find(text, strcspn(text, ":")); }

static int refuse_name(const char *given_as, const char *text, struct shmt_error *e) {
    char names[160] = "";
    for (size_t i = 0; i < N_MODES; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : i + 1 < N_MODES ? ", " : " and ", MODES[i].name);
    }
    return shmt_refuse(e, "%s \"%.60s\" is not one of %s", given_as, text, names);
}

/* ---- the number behind the colon ---- */

uint64_t shmt_mode_number_of(const struct shmt_policy *policy, enum shmt_mode_number which) {
    return which == SHMT_NUMBER_STALENESS     ? policy->staleness
           : which == SHMT_NUMBER_QUORUM      ? policy->quorum
           : which == SHMT_NUMBER_MERGE_EVERY ? policy->merge_every
                                              : 0;
}

static int set_staleness(const char *given_as, struct shmt_policy *policy, const char *text, struct shmt_error *e) {
    if (strcmp(text, "inf") == 0) {
        policy->staleness = SHMT_STALENESS_INF;
        return 0;
    }
    if (shmt_plain_count(text, &policy->staleness) && policy->staleness < SHMT_STALENESS_INF) return 0;
    return shmt_refuse(e, "%s ssp:%.40s: the number is a staleness bound, in clocks, as in ssp:4", given_as, text);
}

static int set_count(const char *given_as, uint32_t *out, const char *name, const char *text, const char *what,
                     struct shmt_error *e) {
    uint64_t n;
    if (!shmt_plain_count(text, &n) || n == 0 || n > INT32_MAX)
        return shmt_refuse(e, "%s %s:%.40s: %s must be at least 1, as in %s:6", given_as, name, text, what, name);
    *out = (uint32_t)n;
    return 0;
}

static int set_number(const char *given_as, const struct shmt_mode *mode, struct shmt_policy *policy, const char *text,
                      struct shmt_error *e) {
    switch (mode->number) {
        case SHMT_NUMBER_STALENESS:
            return set_staleness(given_as, policy, text, e);
        case SHMT_NUMBER_QUORUM:
            return set_count(given_as, &policy->quorum, mode->name, text, "the number of gradients an update waits for", e);
        case SHMT_NUMBER_MERGE_EVERY:
            return set_count(given_as, &policy->merge_every, mode->name, text, "the number of clocks between two merges", e);
        default:
            return shmt_refuse(e, "%s %s takes no number: \"%.60s\"", given_as, mode->name, text);
    }
}

int shmt_mode_parse(const char *given_as, const char *text, struct shmt_policy *out, struct shmt_error *e) {
    const size_t length = strcspn(text, ":");
    const struct shmt_mode *mode = shmt_mode_find(text);
    if (!mode) return refuse_name(given_as, text, e);
    struct shmt_policy policy = mode->policy;
    const int rc = text[length] == ':' ? set_number(given_as, mode, &policy, text + length + 1, e) : 0;
    if (rc == 0) *out = policy;
    return rc;
}

/* ---- axes that are named ---- */

/* Replicas that no mode has brought are merged as in the mode that has such ones. */
static void take_replicas(enum shmt_replicas replicas, struct shmt_policy *p) {
    const struct shmt_policy *usual = &shmt_mode_find(replicas == SHMT_REPLICAS_NODE ? "node" : "local")->policy;
    const bool had = shmt_policy_merges_replicas(p);
    p->replicas = replicas;
    if (had || !shmt_policy_merges_replicas(p)) return;
    p->merge = usual->merge;
    p->merge_every = usual->merge_every;
}

/* Damped merges are small and often; whoever names them means copies. */
static void settle_damped(const struct shmt_axes *axes, struct shmt_policy *p) {
    if (p->merge != SHMT_MERGE_DAMPED) return;
    if (axes->replicas == SHMT_UNSAID && p->replicas == SHMT_REPLICAS_ONE) p->replicas = SHMT_REPLICAS_WORKER;
    p->merge_every = 1;
}

void shmt_axes_take(const struct shmt_axes *axes, struct shmt_policy *p) {
    if (axes->write != SHMT_UNSAID) p->write = (enum shmt_write)axes->write;
    if (axes->quorum) p->quorum = (uint32_t)axes->quorum;
    if (axes->late != SHMT_UNSAID) p->late = (enum shmt_late)axes->late;
    if (axes->replicas != SHMT_UNSAID) take_replicas((enum shmt_replicas)axes->replicas, p);
    if (axes->merge != SHMT_UNSAID) p->merge = (enum shmt_merge)axes->merge;
    settle_damped(axes, p);
    if (axes->merge_every) p->merge_every = (uint32_t)axes->merge_every;
}

/* ---- names of points ---- */

/* Whether a policy is a mode's point, whatever the number is that the mode takes. */
static bool is_of(const struct shmt_policy *policy, const struct shmt_mode *mode) {
    struct shmt_policy p = mode->policy;
    if (mode->may_copy && policy->replicas == SHMT_REPLICAS_WORKER && policy->merge == SHMT_MERGE_DAMPED) {
        p.replicas = policy->replicas;
        p.merge = policy->merge;
        p.merge_every = policy->merge_every;
    }
    const bool numbered = mode->number != SHMT_NUMBER_NONE;
    if (mode->number == SHMT_NUMBER_STALENESS && policy->staleness > 0 && policy->staleness < SHMT_STALENESS_INF)
        p.staleness = policy->staleness;
    if (mode->number == SHMT_NUMBER_QUORUM && policy->quorum != SHMT_QUORUM_ALL) p.quorum = policy->quorum;
    if (mode->number == SHMT_NUMBER_MERGE_EVERY) p.merge_every = policy->merge_every;
    p.late = numbered && mode->number == SHMT_NUMBER_QUORUM ? policy->late : p.late;
    return shmt_policy_equal(&p, policy);
}

static void add(char *out, size_t bytes, const char *text) {
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s", text);
}

static void name_axes(const struct shmt_policy *policy, char *out, size_t bytes) {
    char wait[40] = ", staleness inf";
    if (policy->staleness != SHMT_STALENESS_INF)
        snprintf(wait, sizeof wait, ", staleness %llu", (unsigned long long)policy->staleness);
    add(out, bytes, shmt_write_name(policy->write));
    add(out, bytes, wait);
    if (policy->replicas == SHMT_REPLICAS_ONE) return;
    add(out, bytes, ", replicas ");
    add(out, bytes, shmt_replicas_name(policy->replicas));
}

void shmt_mode_name(const struct shmt_policy *policy, const char *asked_for, char *out, size_t bytes) {
    const struct shmt_mode *mode = asked_for ? shmt_mode_find(asked_for) : NULL;
    /* With one copy in the end, a mode of which copies are no choice (`node` on one node) has not become the one that chooses. */
    const bool chooses = !mode || mode->may_copy || shmt_policy_merges_replicas(policy);
    if (mode && !is_of(policy, mode)) mode = NULL;
    for (size_t i = 0; i < N_MODES && !mode; i++)
        if (is_of(policy, &MODES[i]) && (chooses || !MODES[i].may_copy)) mode = &MODES[i];
    out[0] = '\0';
    if (mode)
        add(out, bytes, mode->name);
    else
        name_axes(policy, out, bytes);
}
