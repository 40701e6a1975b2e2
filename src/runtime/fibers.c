/* A team of fibers: workers in virtual time, on the thread that drives the team. Called by team.c, by the row at the end; relies on the
 * room fibers for all that they do. The contract is that of threads, but that nothing goes on outside of `step` (the descriptor is
 * always readable, and each step gives them a slice of time), and that workers may die, as processes do: by shmt_team_kill_worker, or
 * by the simulated mishaps. */
#include "runtime/team_priv.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fibers/scheduler.h"

#define SLICE_NS     20000000 /* of the machine's time, for those who look at the run meanwhile */
#define SLICE_EVENTS 64

struct shmt_team_fibers {
    struct shmt_fibers *all;
};

static void run(void *arg, uint32_t rank) {
    struct shmt_team *team = arg;
    struct shmt_team_end *end = &team->ledger->end[rank];
    end->status = team->spec.body(team->spec.arg, rank, team, &end->error);
    store_relaxed(&end->returned, 1); /* relaxed, all: one thread */
    if (!shmt_team_is_clean_end(end->status) && load_relaxed(&team->ledger->first) == 0) shmt_team_fail(team, rank);
}

/* The scheduler does it. */
static int begin_again(void *arg, uint32_t rank) {
    (void)arg, (void)rank;
    return 0;
}

/* As if by SIGKILL. */
static bool died(void *arg, uint32_t rank) {
    struct shmt_team *team = arg;
    struct shmt_team_end *end = &team->ledger->end[rank];
    end->wait_status = SIGKILL;
    end->killed = team->spec.abort && load_relaxed(team->spec.abort) == SHMT_TEAM_KILLED; /* as all are; relaxed: one thread */
    if (end->killed) return false;
    const enum shmt_team_outcome outcome = shmt_team_outlive(team, rank, begin_again, NULL);
    if (outcome == SHMT_TEAM_FAILS && load_relaxed(&team->ledger->first) == 0) shmt_team_fail(team, rank);
    return outcome == SHMT_TEAM_RESPAWNS;
}

static int start(struct shmt_team *team, struct shmt_error *e) {
    const struct shmt_virtual *how = team->spec.virtual;
    struct shmt_team_fibers *fibers = calloc(1, sizeof *fibers);
    if (!fibers) return shmt_no_memory(e, "to start %u fibers for %s", team->spec.n, team->what);
    const struct shmt_fibers_spec spec = {.n = team->spec.n,
                                          .seed = how ? how->seed : 0,
                                          .begin_ns = shmt_now_ns(), /* times of before stay before */
                                          .stack_bytes = how ? how->stack_bytes : SHMT_FIBER_STACK,
                                          .sim = how ? how->sim : (struct shmt_sim){.look_ns = 50},
                                          .body = run,
                                          .died = died,
                                          .arg = team};
    const int rc = shmt_fibers_make(&spec, &fibers->all, e);
    if (rc < 0) {
        free(fibers);
        return rc;
    }
    team->fibers = fibers;
    shmt_team_notify(team);
    return 0;
}

static void step(struct shmt_team *team) {
    const uint64_t end_ns = SHMT_HOST_MACHINE.now_ns() + SLICE_NS;
    bool over = false;
    while (!over && SHMT_HOST_MACHINE.now_ns() < end_ns) over = shmt_fibers_run(team->fibers->all, SLICE_EVENTS);
    if (over) store_relaxed(&team->ledger->over, 1);
    shmt_team_notify(team); /* the next step is due at once */
}

static void kill_all(struct shmt_team *team) {
    if (!load_relaxed(&team->ledger->over)) shmt_team_set_abort(team, SHMT_TEAM_KILLED);
}

static int kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid) {
    if (rank < team->spec.n && pid == 0) shmt_fibers_kill(team->fibers->all, rank);
    return 0;
}

static int collect(struct shmt_team *team) {
    shmt_fibers_free(team->fibers->all);
    free(team->fibers);
    team->fibers = NULL;
    return 0;
}

const struct shmt_team_kind SHMT_TEAM_FIBERS = {.name = "fibers",
                                                .shares_process = true,
                                                .survives_deaths = true,
                                                .start = start,
                                                .step = step,
                                                .kill = kill_all,
                                                .kill_worker = kill_worker,
                                                .collect = collect};
