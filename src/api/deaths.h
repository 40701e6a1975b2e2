/* What becomes of a run when one of its workers dies, as its options say and as it can be: --on-death, --max-respawns and
 * --in-flight. Settled by spec.c together with the policy, before there are workers. Guests are no concern of it: lease.h. */
#ifndef SHMT_API_DEATHS_H
#define SHMT_API_DEATHS_H

#include <stdbool.h>
#include <stdint.h>

struct shmtrain_store;
struct shmt_crew;
struct shmt_policy;

enum shmt_on_death {
    SHMT_DEATH_ABORTS,   /* the run ends */
    SHMT_DEATH_RESPAWNS, /* the worker is started again */
    SHMT_DEATH_CONTINUES /* the others go on without it */
};

struct shmt_deaths {
    enum shmt_on_death on_death;
    uint32_t max_respawns; /* of each worker; 0 unless it is started again */
    bool skips;            /* live modes: the item that a dead worker had in hand is left out, not done again */
};

/* For a run of that crew with that policy, of the store's `mode_taken`. Threads cannot be started again: a line of the log says
 * so where somebody has asked for it. Errors: _USAGE where the others cannot go on without a worker. */
int shmt_deaths_settle(struct shmtrain_store *store, const struct shmt_crew *crew, const struct shmt_policy *policy,
                       struct shmt_deaths *out);

#endif
