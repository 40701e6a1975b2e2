/* Deaths of workers: what follows from one, for the kinds whose teams survive them. Called by whoever notices it, the supervisor of
 * processes or the thread that drives fibers, and by nobody else, so the ledger's words that are written here are the caller's own (the
 * abort word has other writers). May run in the supervisor: allocates and locks nothing. */
#include "runtime/team_priv.h"

#include <string.h>

/* It may be set already, for instance by a thread of the worker that failed. Release: who acts on it may read the
 * ledger. `on_abort` has the fence that sleepers need. */
void shmt_team_set_abort(struct shmt_team *team, uint32_t value) {
    const struct shmt_team_spec *spec = &team->spec;
    if (spec->abort && load_relaxed(spec->abort) == 0) store_release(spec->abort, value);
    if (spec->on_abort) spec->on_abort(spec->arg);
}

void shmt_team_fail(struct shmt_team *team, uint32_t rank) {
    store_release(&team->ledger->first, rank + 1); /* pairs with the acquire in ends.c */
    shmt_team_set_abort(team, rank + 1);
}

static void record(struct shmt_team *team, const struct shmt_team_death *death) {
    struct shmt_team_ledger *ledger = team->ledger;
    const uint64_t at = load_relaxed(&ledger->n_deaths); /* my own word */
    ledger->death[at % SHMT_TEAM_DEATHS] = *death;
    store_release(&ledger->n_deaths, at + 1); /* pairs with the acquire in shmt_team_death_at: the record is whole */
    shmt_team_notify(team);
}

static bool begin_again(struct shmt_team *team, uint32_t rank, int (*begin)(void *arg, uint32_t rank), void *arg) {
    struct shmt_team_end *end = &team->ledger->end[rank];
    memset(&end->error, 0, sizeof end->error);               /* of a body that was writing it */
    store_relaxed(&end->life, load_relaxed(&end->life) + 1); /* my own word; a fork publishes it */
    team->ledger->respawn_errno = begin(arg, rank);
    return team->ledger->respawn_errno == 0;
}

enum shmt_team_outcome shmt_team_outlive(struct shmt_team *team, uint32_t rank, int (*begin)(void *arg, uint32_t rank),
                                         void *arg) {
    const struct shmt_team_spec *spec = &team->spec;
    struct shmt_team_end *end = &team->ledger->end[rank];
    const uint32_t life = load_relaxed(&end->life);           /* my own word */
    if (load_acquire(&end->returned)) return SHMT_TEAM_FAILS; /* an error is no death; pairs with the worker's release */
    if (!spec->on_death || load_relaxed(&team->ledger->first)) return SHMT_TEAM_FAILS; /* my own word */
    if (spec->abort && load_relaxed(spec->abort) != 0) return SHMT_TEAM_FAILS;         /* relaxed: the others are leaving */
    const enum shmt_team_outcome outcome = spec->on_death(spec->arg, rank, life);
    const struct shmt_team_death death = {.rank = rank,
                                          .life = life,
                                          .pid = end->last_pid,
                                          .wait_status = end->wait_status,
                                          .short_of_memory = end->short_of_memory,
                                          .outcome = (uint8_t)outcome};
    if (outcome == SHMT_TEAM_FAILS) return outcome;
    if (outcome == SHMT_TEAM_RESPAWNS && (life >= spec->most_respawns || !begin_again(team, rank, begin, arg)))
        return SHMT_TEAM_FAILS;
    store_relaxed(&end->left_out, outcome == SHMT_TEAM_CONTINUES); /* relaxed: nothing is read on its strength */
    record(team, &death);
    return outcome;
}
