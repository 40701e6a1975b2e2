/* What a worker's death does to a run: see deaths.h. */
#include "workers/deaths.h"

#include <stdio.h>

#include "workers/run.h"
#include "workers/workers.h"
#include "base/checked.h"

/* Whether nothing of a worker that is gone is missing to the others: no gradient that an update waits for, no part of a
 * merge. */
static bool can_do_without(const struct shmt_policy *policy) {
    if (shmt_policy_is_live(policy)) return !shmt_policy_merges_replicas(policy);
    return policy->quorum != SHMT_QUORUM_ALL;
}

static int refuse_to_continue(struct shmt_run *run, const struct shmt_policy *policy) {
    return shmt_refuse(
        &run->call->error,
        "--on-death continue with --mode %.60s: %s of the dead worker would be missing; use --on-death respawn, or %s",
        run->mode_taken, shmt_policy_merges_replicas(policy) ? "the copy" : "a gradient",
        shmt_policy_merges_replicas(policy) ? "--replicas one" : "--mode async, ssp:S or backup:K");
}

static enum shmt_on_death wish_of(const struct shmt_config *c) {
    const bool never = c->on_death == SHMT_DEATH_RESPAWNS && c->max_respawns == 0;
    return never ? SHMT_DEATH_ABORTS : (enum shmt_on_death)c->on_death;
}

int shmt_deaths_settle(struct shmt_run *run, const struct shmt_crew *crew, const struct shmt_policy *policy,
                       struct shmt_deaths *out) {
    const struct shmt_config *c = run->config;
    const enum shmt_on_death wish = wish_of(c);
    *out = (struct shmt_deaths){.on_death = SHMT_DEATH_ABORTS};
    if (!crew->kind->survives_deaths || !run->backend->store->reclaim) {
        if (wish != SHMT_DEATH_ABORTS && shmt_config_is_given(c, "on-death"))
            shmt_log(&run->call->log, "workers are %s here, so a crash ends the whole program: --on-death %s has no effect",
                     crew->kind->name, wish == SHMT_DEATH_CONTINUES ? "continue" : "respawn");
        return 0;
    }
    if (wish == SHMT_DEATH_CONTINUES && !can_do_without(policy)) return refuse_to_continue(run, policy);
    out->on_death = wish;
    out->max_respawns = wish == SHMT_DEATH_ABORTS ? 0 : (uint32_t)c->max_respawns;
    out->skips = shmt_policy_is_live(policy) && c->in_flight == SHMT_FLIGHT_SKIP;
    if (wish == SHMT_DEATH_CONTINUES && shmt_policy_is_live(policy) && !out->skips && shmt_config_is_given(c, "in-flight"))
        shmt_log(&run->call->log,
                 "--in-flight redo with --on-death continue affects only worker 0, which is restarted: unfinished items of "
                 "other dead workers are skipped");
    return 0;
}

/* ---- a death ---- */

/* In the supervisor, or in the thread that drives fibers. With threads a worker is several seats, which die together. */
static enum shmt_team_outcome on_death(void *arg, uint32_t rank, uint32_t life) {
    const struct shmt_workers *w = arg;
    const struct shmt_run *run = w->run;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    const int comes_back = run->deaths->on_death == SHMT_DEATH_RESPAWNS || rank == 0;
    (void)life;
    for (uint32_t lane = 0; lane < lanes; lane++) run->backend->store->reclaim(run->job.store, rank * lanes + lane, comes_back);
    run->backend->store->wake(run->job.store);
    return comes_back ? SHMT_TEAM_RESPAWNS : SHMT_TEAM_CONTINUES;
}

/* The piece of work that a thread of it had in hand; else that there was none. */
static void tell_place(void *arg, uint32_t rank, char *out, size_t room) {
    const struct shmt_workers *w = arg;
    const struct shmt_run *run = w->run;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    const struct shmt_board *board = shmt_job_board(&run->job);
    const uint32_t epoch = (uint32_t)load_relaxed(&board->epochs_done); /* relaxed: the team has ended */
    uint64_t step;
    for (uint32_t lane = 0; lane < lanes && run->backend->store->in_hand; lane++) {
        if (!run->backend->store->in_hand(run->job.store, rank * lanes + lane, epoch, &step)) continue;
        snprintf(out, room, "in %s %llu of epoch %u", shmt_policy_is_batched(&run->spec.policy) ? "batch" : "item",
                 (unsigned long long)step, epoch + 1);
        return;
    }
    if (epoch < run->spec.epochs)
        snprintf(out, room, "between two items of epoch %u", epoch + 1);
    else
        snprintf(out, room, "after the last epoch");
}

void shmt_deaths_tell_team(const struct shmt_run *run, struct shmt_team_spec *spec) {
    if (!run->backend->store->reclaim) return;
    spec->last_words = tell_place;
    if (run->deaths->on_death == SHMT_DEATH_ABORTS) return;
    spec->on_death = on_death;
    spec->most_respawns = run->deaths->max_respawns;
}

/* Workers that train: own ones, and those that have joined. */
static uint32_t count_living(const struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    const uint32_t seats = shmt_seats_of_worker(spec);
    uint32_t n = spec->n_workers - (uint32_t)shmt_min_u64(run->deaths->gone, spec->n_workers);
    for (uint32_t rank = spec->n_seats - spec->n_guests; rank < spec->n_seats; rank += seats)
        n += run->backend->guests->occupied(run->job.store, rank) != 0;
    return n;
}

/* An update waits for no more gradients than there are workers, so with fewer than the quorum each is made of less. */
static void tell_quorum(struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    const uint32_t k = spec->policy.quorum, living = count_living(run);
    const uint64_t each = (uint64_t)spec->item * shmt_seats_of_worker(spec);
    if (k == SHMT_QUORUM_ALL || living >= k || living == 0) return;
    shmt_log(
        &run->call->log,
        "%u of %u workers %s left, fewer than the quorum of %u: an update is made of %u gradient%s (%llu examples) instead of "
        "%u (%llu), so updates are noisier and an epoch has more of them; to continue with all, end the run and start it "
        "again, "
        "or use --on-death respawn",
        living, spec->n_workers, living == 1 ? "is" : "are", k, living, living == 1 ? "" : "s",
        (unsigned long long)(living * each), k, (unsigned long long)(k * each));
}

static void note(struct shmt_run *run, const struct shmt_team_death *death) {
    char who[48], how[96];
    const char *why = death->short_of_memory ? ", perhaps because memory ran out" : "";
    shmt_team_tell_who(death, who, sizeof who);
    shmt_team_tell_death(death, how, sizeof how);
    run->deaths->gone += death->outcome == SHMT_TEAM_CONTINUES;
    if (death->outcome == SHMT_TEAM_CONTINUES)
        shmt_log(&run->call->log, "%s %s%s: the others continue without it", who, how, why);
    else
        shmt_log(&run->call->log, "%s %s%s: it is restarted (%u of %u)", who, how, why, death->life + 1,
                 run->deaths->max_respawns);
}

/* All that were, also those whose records are gone. */
static uint32_t count_respawns(const struct shmt_run *run, const struct shmt_team *team) {
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < run->spec.n_workers; rank++) n += shmt_team_life(team, rank);
    return n;
}

void shmt_deaths_note(struct shmt_run *run, const struct shmt_team *team) {
    struct shmt_team_death death;
    uint64_t n = 0, missed = 0;
    const uint64_t before = run->deaths->n_noted, gone = run->deaths->gone;
    for (;; run->deaths->n_noted++) {
        const bool there = shmt_team_death_at(team, run->deaths->n_noted, &death, &n);
        if (!there && run->deaths->n_noted >= n) break;
        missed += !there;
        if (there) note(run, &death);
    }
    if (missed > 0) shmt_log(&run->call->log, "%llu more workers died in the meantime", (unsigned long long)missed);
    if (run->deaths->on_death == SHMT_DEATH_CONTINUES) run->deaths->gone += missed; /* worker 0 alone comes back */
    if (run->deaths->n_noted > before) run->deaths->respawns = count_respawns(run, team);
    if (run->deaths->gone > gone) tell_quorum(run);
}
