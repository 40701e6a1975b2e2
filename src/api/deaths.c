/* What a worker's death does to a run: see deaths.h. */
#include "api/deaths.h"

#include <string.h>

#include "api/store_priv.h"

/* Whether nothing of a worker that is gone is missing to the others: no gradient that an update waits for, no part of a merge. */
static bool can_do_without(const struct shmt_policy *policy) {
    if (shmt_policy_is_live(policy)) return !shmt_policy_has_replicas(policy);
    return policy->quorum != SHMT_QUORUM_ALL;
}

static int refuse_to_continue(struct shmtrain_store *store, const struct shmt_policy *policy) {
    return shmt_fail(
        &store->error, SHMTRAIN_E_USAGE,
        "--on-death continue with --mode %.60s: %s of the dead worker would be missing; take --on-death respawn, or "
        "%s",
        store->mode_taken, shmt_policy_has_replicas(policy) ? "the copy" : "a gradient",
        shmt_policy_has_replicas(policy) ? "--replicas one" : "--mode async, ssp:S or backup:K");
}

static enum shmt_on_death wish_of(const struct shmt_config *c) {
    if (strcmp(c->on_death, "continue") == 0) return SHMT_DEATH_CONTINUES;
    return strcmp(c->on_death, "respawn") == 0 && c->max_respawns > 0 ? SHMT_DEATH_RESPAWNS : SHMT_DEATH_ABORTS;
}

int shmt_deaths_settle(struct shmtrain_store *store, const struct shmt_crew *crew, const struct shmt_policy *policy,
                       struct shmt_deaths *out) {
    const struct shmt_config *c = &store->config;
    const enum shmt_on_death wish = wish_of(c);
    *out = (struct shmt_deaths){.on_death = SHMT_DEATH_ABORTS};
    if (crew->kind == SHMT_TEAM_THREADS) {
        if (wish != SHMT_DEATH_ABORTS && shmt_config_is_given(c, "on-death"))
            shmt_log(&store->log, "workers are threads here, whose crash is the whole program's: --on-death %s has no effect",
                     c->on_death);
        return 0;
    }
    if (wish == SHMT_DEATH_CONTINUES && !can_do_without(policy)) return refuse_to_continue(store, policy);
    out->on_death = wish;
    out->max_respawns = wish == SHMT_DEATH_RESPAWNS ? (uint32_t)c->max_respawns : 0;
    out->skips = shmt_policy_is_live(policy) && strcmp(c->in_flight, "skip") == 0;
    return 0;
}
