/* Bodies of workers: see workers.h. */
#include "api/workers.h"

#include <stdlib.h>

/* One thread of one worker, in whose process `inner` runs the threads. */
struct lane {
    const struct shmt_workers *workers;
    uint32_t first;
    struct shmt_team *outer;
};

static void notify(void *arg) { shmt_team_notify(arg); }

/* Thread number `i` of all workers' threads. */
static int work_at_seat(const struct shmt_workers *w, uint32_t i, struct shmt_team *team, struct shmt_error *e) {
    const uint32_t seat = w->seat ? w->seat[i] : i;
    struct shmt_job job = w->store->job;
    job.notify = notify;
    job.notify_arg = team;
    job.ring_every = shmt_steps_ring_every(&w->store->spec, w->store->config.log_every);
    job.hooks = w->store->hooks.ask_stop ? &w->store->hooks : NULL;
    shmt_machine_bind(&w->crew->machine, seat);
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    const int rc = shmt_job_work(&job, seat, w->seat ? 0 : shmt_team_life(team, i / lanes), e);
    if (rc < 0 && rc != SHMTRAIN_E_STOPPED && w->left) w->left(w, seat);
    return rc;
}

static int lane_body(void *arg, uint32_t i, struct shmt_team *inner, struct shmt_error *e) {
    const struct lane *lane = arg;
    (void)inner;
    return work_at_seat(lane->workers, lane->first + i, lane->outer, e);
}

static void rouse_from_worker(void *arg) {
    const struct shmt_workers *w = arg;
    w->rouse(w);
}

static void rouse_from_lane(void *arg) {
    const struct lane *lane = arg;
    lane->workers->rouse(lane->workers);
}

/* Threads of one worker that fail end the whole run when it is our own; in a guest they end this worker, whose number stands in
 * the team's abort word then. */
static int worker_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    const struct shmt_workers *w = arg;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    _Atomic uint32_t own = 0;
    if (lanes == 1) return work_at_seat(w, rank, team, e);
    struct lane lane = {.workers = w, .first = rank * lanes, .outer = team};
    const struct shmt_team_spec spec = {.kind = SHMT_TEAM_THREADS,
                                        .n = lanes,
                                        .body = lane_body,
                                        .arg = &lane,
                                        .abort = w->seat ? &own : w->abort,
                                        .roused = rouse_from_lane,
                                        .what = "training"};
    return shmt_team_run(&spec, e);
}

int shmt_workers_run(const struct shmt_workers *workers, const struct shmt_driver *driver) {
    struct shmt_workers w = *workers; /* bodies get it without `const` */
    const struct shmt_spec *run = &w.store->spec;
    const uint32_t lanes = w.crew->n_seats / w.crew->n_workers, run_lanes = shmt_seats_of_worker(run);
    uint32_t *number = w.seat ? calloc(w.crew->n_workers, sizeof *number) : NULL;
    if (w.seat && !number)
        return shmt_fail(&w.store->error, SHMTRAIN_E_MEMORY, "not enough memory for the numbers of %u workers",
                         w.crew->n_workers);
    for (uint32_t i = 0; number && i < w.crew->n_workers; i++)
        number[i] = w.seat[i * lanes] / run_lanes; /* as the run counts */
    struct shmt_team_spec spec = {.kind = w.crew->kind,
                                  .n = w.crew->n_workers,
                                  .body = worker_body,
                                  .arg = &w,
                                  .abort = w.abort,
                                  .roused = rouse_from_worker,
                                  .grace_ms = SHMT_GRACE_MS,
                                  .what = "training",
                                  .number = number,
                                  .guarded = {w.store->job.train_guard, w.store->job.valid_guard}};
    if (!w.seat && spec.kind == SHMT_TEAM_PROCESSES) shmt_deaths_tell_team(w.store, &spec);
    const int rc = shmt_drive(w.store, &spec, driver);
    free(number);
    return rc;
}
