/* Bodies of workers: see workers.h. */
#include "workers/workers.h"

#include <stdlib.h>

#include "workers/deaths.h"

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
    struct shmt_job job = w->run->job;
    job.notify = notify;
    job.notify_arg = team;
    job.ring_every = w->ring_every;
    job.hooks = w->run->hooks.ask_stop ? &w->run->hooks : NULL;
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

static void on_team_abort(void *arg) {
    const struct shmt_workers *w = arg;
    w->on_abort(w);
}

static void on_lane_abort(void *arg) {
    const struct lane *lane = arg;
    lane->workers->on_abort(lane->workers);
}

/* Threads of one worker that fail end the whole run when it is our own; in a guest they end this worker, whose number stands in
 * the team's abort word then. */
static int worker_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    const struct shmt_workers *w = arg;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    _Atomic uint32_t own = 0;
    if (lanes == 1) return work_at_seat(w, rank, team, e);
    struct lane lane = {.workers = w, .first = rank * lanes, .outer = team};
    const struct shmt_team_spec spec = {.kind = &SHMT_TEAM_THREADS,
                                        .n = lanes,
                                        .body = lane_body,
                                        .arg = &lane,
                                        .abort = w->seat ? &own : w->abort,
                                        .on_abort = on_lane_abort,
                                        .what = "training"};
    return shmt_team_run(&spec, e);
}

int shmt_workers_run(const struct shmt_workers *workers, const struct shmt_driver *driver) {
    struct shmt_workers w = *workers; /* bodies get it without `const` */
    const struct shmt_spec *run = &w.run->spec;
    const uint32_t lanes = w.crew->n_seats / w.crew->n_workers, run_lanes = shmt_seats_of_worker(run);
    uint32_t *number = w.seat ? calloc(w.crew->n_workers, sizeof *number) : NULL;
    if (w.seat && !number) return shmt_no_memory(&w.run->call->error, "for the numbers of %u workers", w.crew->n_workers);
    for (uint32_t i = 0; number && i < w.crew->n_workers; i++)
        number[i] = w.seat[i * lanes] / run_lanes; /* as the run counts */
    struct shmt_virtual virtual = w.crew->virtual;
    shmt_sim_settle(&virtual.sim, shmt_spec_largest_piece(run));
    struct shmt_team_spec spec = {.kind = w.crew->kind,
                                  .n = w.crew->n_workers,
                                  .body = worker_body,
                                  .arg = &w,
                                  .abort = w.abort,
                                  .on_abort = on_team_abort,
                                  .grace_ms = SHMT_GRACE_MS,
                                  .what = "training",
                                  .number = number,
                                  .virtual = &virtual,
                                  .guarded = {w.run->job.train_guard, w.run->job.valid_guard}};
    if (!w.seat) shmt_deaths_tell_team(w.run, &spec);
    const int rc = shmt_drive(w.run->call, &spec, driver);
    free(number);
    return rc;
}
