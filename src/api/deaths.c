/* What a worker's death does to a run: see deaths.h. */
#include "api/deaths.h"

#include <stdio.h>
#include <string.h>

#include "api/store_priv.h"
#include "api/workers.h"
#include "base/checked.h"

/* Whether nothing of a worker that is gone is missing to the others: no gradient that an update waits for, no part of a
 * merge. */
static bool can_do_without(const struct shmt_policy *policy) {
    if (shmt_policy_is_live(policy)) return !shmt_policy_has_replicas(policy);
    return policy->quorum != SHMT_QUORUM_ALL;
}

static int refuse_to_continue(struct shmtrain_store *store, const struct shmt_policy *policy) {
    return shmt_fail(
        &store->error, SHMTRAIN_E_USAGE,
        "--on-death continue with --mode %.60s: %s of the dead worker would be missing; use --on-death respawn, or %s",
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
            shmt_log(&store->log, "workers are threads here, so a crash ends the whole program: --on-death %s has no effect",
                     c->on_death);
        return 0;
    }
    if (wish == SHMT_DEATH_CONTINUES && !can_do_without(policy)) return refuse_to_continue(store, policy);
    out->on_death = wish;
    out->max_respawns = wish == SHMT_DEATH_ABORTS ? 0 : (uint32_t)c->max_respawns;
    out->skips = shmt_policy_is_live(policy) && strcmp(c->in_flight, "skip") == 0;
    if (wish == SHMT_DEATH_CONTINUES && shmt_policy_is_live(policy) && !out->skips && shmt_config_is_given(c, "in-flight"))
        shmt_log(&store->log,
                 "--in-flight redo with --on-death continue affects only worker 0, which is restarted: unfinished items of "
                 "other dead workers are skipped");
    return 0;
}

/* ---- a death ---- */

/* In the supervisor. With threads a worker is several seats, which die together. */
static enum shmt_team_burial bury(void *arg, uint32_t rank, uint32_t life) {
    const struct shmt_workers *w = arg;
    const struct shmtrain_store *store = w->store;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    const int comes_back = store->deaths.on_death == SHMT_DEATH_RESPAWNS || rank == 0;
    (void)life;
    for (uint32_t lane = 0; lane < lanes; lane++) store->ops->bury(store->job.store, rank * lanes + lane, comes_back);
    store->ops->rouse(store->job.store);
    return comes_back ? SHMT_TEAM_COMES_BACK : SHMT_TEAM_GOES_ON;
}

/* The piece of work that a thread of it had in hand; else that there was none. */
static void tell_place(void *arg, uint32_t rank, char *out, size_t room) {
    const struct shmt_workers *w = arg;
    const struct shmtrain_store *store = w->store;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    const struct shmt_board *board = store->ops->board(store->job.store);
    const uint32_t epoch = (uint32_t)load_relaxed(&board->epochs_done); /* relaxed: the team has ended */
    uint64_t step;
    for (uint32_t lane = 0; lane < lanes && store->ops->in_hand; lane++) {
        if (!store->ops->in_hand(store->job.store, rank * lanes + lane, epoch, &step)) continue;
        snprintf(out, room, "in %s %llu of epoch %u", shmt_policy_is_batched(&store->spec.policy) ? "batch" : "item",
                 (unsigned long long)step, epoch + 1);
        return;
    }
    if (epoch < store->spec.epochs)
        snprintf(out, room, "between two items of epoch %u", epoch + 1);
    else
        snprintf(out, room, "after the last epoch");
}

void shmt_deaths_tell_team(const struct shmtrain_store *store, struct shmt_team_spec *spec) {
    if (!store->ops->bury) return;
    spec->last_words = tell_place;
    if (store->deaths.on_death == SHMT_DEATH_ABORTS) return;
    spec->bury = bury;
    spec->most_respawns = store->deaths.max_respawns;
}

/* Workers that train: own ones, and those that have joined. */
static uint32_t count_living(const struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    const uint32_t seats = shmt_seats_of_worker(spec);
    uint32_t n = spec->n_workers - (uint32_t)shmt_min_u64(store->deaths.gone, spec->n_workers);
    for (uint32_t rank = spec->n_seats - spec->n_guests; rank < spec->n_seats; rank += seats)
        n += store->ops->occupied && store->ops->occupied(store->job.store, rank) != 0;
    return n;
}

/* An update waits for no more gradients than there are workers, so with fewer than the quorum each is made of less. */
static void tell_quorum(struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    const uint32_t k = spec->policy.quorum, living = count_living(store);
    const uint64_t each = (uint64_t)spec->item * shmt_seats_of_worker(spec);
    if (k == SHMT_QUORUM_ALL || living >= k || living == 0) return;
    shmt_log(
        &store->log,
        "%u of %u workers %s left, fewer than the quorum of %u: an update is made of %u gradient%s (%llu examples) instead of "
        "%u (%llu), so updates are noisier and an epoch has more of them; to continue with all, end the run and start it "
        "again, "
        "or use --on-death respawn",
        living, spec->n_workers, living == 1 ? "is" : "are", k, living, living == 1 ? "" : "s",
        (unsigned long long)(living * each), k, (unsigned long long)(k * each));
}

static void note(struct shmtrain_store *store, const struct shmt_team_death *death) {
    char how[96];
    const char *why = death->short_of_memory ? ", perhaps because memory ran out" : "";
    shmt_team_tell_death(death, how, sizeof how);
    store->deaths.gone += death->burial == SHMT_TEAM_GOES_ON;
    if (death->burial == SHMT_TEAM_GOES_ON)
        shmt_log(&store->log, "worker %u (process %d) %s%s: the others continue without it", death->rank, death->pid, how, why);
    else
        shmt_log(&store->log, "worker %u (process %d) %s%s: it is restarted (%u of %u)", death->rank, death->pid, how, why,
                 death->life + 1, store->deaths.max_respawns);
}

/* All that were, also those whose records are gone. */
static uint32_t count_respawns(const struct shmtrain_store *store, const struct shmt_team *team) {
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < store->spec.n_workers; rank++) n += shmt_team_life(team, rank);
    return n;
}

void shmt_deaths_note(struct shmtrain_store *store, const struct shmt_team *team) {
    struct shmt_team_death death;
    uint64_t n = 0, missed = 0;
    const uint64_t before = store->deaths.n_noted, gone = store->deaths.gone;
    for (;; store->deaths.n_noted++) {
        const bool there = shmt_team_death_at(team, store->deaths.n_noted, &death, &n);
        if (!there && store->deaths.n_noted >= n) break;
        missed += !there;
        if (there) note(store, &death);
    }
    if (missed > 0) shmt_log(&store->log, "%llu more workers died in the meantime", (unsigned long long)missed);
    if (store->deaths.on_death == SHMT_DEATH_CONTINUES) store->deaths.gone += missed; /* worker 0 alone comes back */
    if (store->deaths.n_noted > before) store->deaths.respawns = count_respawns(store, team);
    if (store->deaths.gone > gone) tell_quorum(store);
}
