/* The workers of a run as a team's bodies: each worker is a process or a thread, each of its training threads has a seat.
 * Called by whoever makes a run (run.c) or joins one (join.c). */
#pragma once

#include "workers/drive.h"
#include "workers/run.h"

struct shmt_workers {
    struct shmt_run *run; /* its job is what they do */
    const struct shmt_crew *crew;
    _Atomic uint32_t *abort; /* the team's: see runtime/team.h */
    uint64_t ring_every;     /* of their jobs (train/job.h) */
    const uint32_t *seat;    /* (crew->n_seats) which seats they have; NULL: the first ones */

    /* After *abort was set, in the supervisor or in a failing thread: to wake who sleeps. */
    void (*on_abort)(const struct shmt_workers *workers);

    /* In the worker: the thread at this seat has failed and left. May be NULL. */
    void (*left)(const struct shmt_workers *workers, uint32_t seat);
};

/* Runs them to their end. Errors: of shmt_drive. */
int shmt_workers_run(const struct shmt_workers *workers, const struct shmt_driver *driver);
