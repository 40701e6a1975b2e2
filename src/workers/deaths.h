/* What becomes of a run when one of its workers dies, as its options say and as it can be: --on-death, --max-respawns and
 * --in-flight. Settled by running/spec.c together with the policy, before there are workers. Guests are no concern of it:
 * naming/lease.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct shmt_run;
struct shmt_crew;
struct shmt_policy;
struct shmt_team;
struct shmt_team_spec;

/* In the order of the option's words. */
enum shmt_on_death {
    SHMT_DEATH_RESPAWNS,  /* the worker is started again */
    SHMT_DEATH_CONTINUES, /* the others go on without it */
    SHMT_DEATH_ABORTS     /* the run ends */
};

struct shmt_deaths {
    enum shmt_on_death on_death;
    uint32_t max_respawns; /* of each worker that is started again: of all, or where the others go on without it, of the
                              first, which keeps the books of the run */
    uint32_t respawns;     /* so many there were so far, that were noted */
    uint64_t n_noted;      /* deaths */
    uint64_t gone;         /* of them: workers that the others go on without */
    bool skips;            /* live modes: the item that a dead worker had in hand is left out, not done again */
};

/* For a run of that crew with that policy, of the run's `mode_taken`. Threads cannot be started again: a line of the log says
 * so where somebody has asked for it. Errors: _USAGE where the others cannot go on without a worker. */
int shmt_deaths_settle(struct shmt_run *run, const struct shmt_crew *crew, const struct shmt_policy *policy,
                       struct shmt_deaths *out);

/* What a run's team is told of it: into *spec, whose `arg` is the run's struct shmt_workers. */
void shmt_deaths_tell_team(const struct shmt_run *run, struct shmt_team_spec *spec);

/* Deaths that the team has recorded since the last look: a line of the log for each. */
void shmt_deaths_note(struct shmt_run *run, const struct shmt_team *team);
