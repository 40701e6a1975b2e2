/* The application's handle: for store.c, which makes it, and calls.c, which takes the application's calls and hands each subject
 * what is its own. */
#pragma once

#include "api/background.h"
#include "checkpoints/checkpoints.h"
#include "configuration/offered.h"
#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "loading/standard.h"
#include "naming/lease.h"
#include "naming/visit.h"
#include "hosts/hosts.h"
#include "recording/recording.h"
#include "running/plan.h"
#include "scoring/scores.h"
#include "watching/metrics.h"
#include "watching/snapshots.h"
#include "watching/log_every.h"
#include "workers/costs.h"
#include "workers/deaths.h"
#include "workers/run.h"
#include "workers/stalls.h"

/* A store belongs to one thread of the application. While a run goes on in the background (background.c), its thread has all of
 * it but `busy`, `aside` and `background`, which stay the application's, and what the locks of `params` and `snapshots` protect,
 * which both use. */
struct shmtrain_store {
    bool busy;               /* a call that runs workers goes on: others are refused */
    struct shmt_error aside; /* of the calls that are made meanwhile: by listeners, or beside the background */
    struct shmt_background *background;
    struct shmt_plan_kept *plan; /* the last one; NULL: none */

    struct shmt_call call;
    struct shmt_config config;
    struct shmt_offered offered;
    struct shmt_parameters params;
    struct shmt_loading loading;
    struct shmt_scoring scoring;
    struct shmt_run run;

    /* What the run's subjects own: `run` points to it. */
    struct shmt_checkpoints checkpoints;
    struct shmt_costs costs;
    struct shmt_deaths deaths;
    struct shmt_fit fit;
    struct shmt_hosts hosts;
    struct shmt_lease lease;
    struct shmt_metrics metrics;
    struct shmt_penalty penalty;
    struct shmt_recording recording;
    struct shmt_snapshots snapshots;
    struct shmt_stalls stalls;
    struct shmt_standard standard;
    struct shmt_steps steps;
    struct shmt_visit visit;
};

/* A handle for a plan, or a short run beside: of the same configuration, unless it gets one of its own; without what the other one has
 * learned. NULL: no memory. */
struct shmtrain_store *shmt_handle_copy(const struct shmtrain_store *store);
void shmt_handle_free_copy(struct shmtrain_store *own); /* NULL is fine */

/* Every public call but those that are allowed while workers run. 0: the error is clear, go on. _USAGE: a run is going on. */
int shmt_call_idle(struct shmtrain_store *store);

/* shmt_call_idle for a call that runs workers, which ends with `leave`: other calls are refused meanwhile, and a stop counts from now
 * on. */
int shmt_call_enter(struct shmtrain_store *store);
int shmt_call_leave(struct shmtrain_store *store, int rc); /* rc */

/* Where a call that is allowed while workers run leaves its sentence; clear. */
struct shmt_error *shmt_call_error(struct shmtrain_store *store);
