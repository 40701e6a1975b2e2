/* Driving a team of workers to its end on the calling thread. Called by whoever runs workers: loading, runs, joining. */
#pragma once

#include "configuration/call.h"
#include "runtime/team.h"

#define SHMT_GRACE_MS 2000 /* after a failure, until the workers that do not notice are killed */

/* What is asked of who drives a team, on the calling thread. {0}: nothing; a stop kills the workers. */
struct shmt_driver {
    void *arg;
    int fd; /* readable when there is something for `tick`; it is read here. Counts where there is a tick; below 0: there is none */

    /* The news of the team, before each tick and behind the last one. May be NULL. */
    void (*look)(void *arg, const struct shmt_team *team);

    /* Called whenever there may be news, ten times a second at least; may be NULL. A negative status: the run has failed for a
     * reason that the workers do not know. It has told them by their abort word, and those that do not leave are killed. */
    int (*tick)(void *arg, const struct shmt_team *team);

    /* Milliseconds until `tick` has something to do, at most `most`. NULL: `most`. */
    int (*due_ms)(void *arg, int most);

    void (*stop)(void *arg); /* passes a stop on to the workers; NULL: a stop kills them */
};

/* Runs a team to its end. Errors: the tick's status, without its sentence; _STOPPED when a stop has killed the team; the
 * team's. */
int shmt_drive(struct shmt_call *call, const struct shmt_team_spec *spec, const struct shmt_driver *driver);
