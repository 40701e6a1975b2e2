/* Teams: what all kinds of workers have in common. See team.h. Called by api; relies on the kinds (processes.c, threads.c) for how
 * workers begin and end, on ends.c for what is said about it. */
#include "runtime/team_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct shmt_team_kind *const KINDS[] = {&SHMT_TEAM_PROCESSES, &SHMT_TEAM_THREADS, &SHMT_TEAM_FIBERS};

const struct shmt_team_kind *shmt_team_kind_find(const char *name) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i]->name, name) == 0) return KINDS[i];
    return NULL;
}

static void destroy(struct shmt_team *team) {
    if (team->report_read >= 0) close(team->report_read);
    if (team->report_write >= 0) close(team->report_write);
    if (team->ledger) munmap(team->ledger, team->ledger_bytes);
    free(team);
}

/* The handle with its ledger and its pipe. Non-blocking: a report must not hold up a worker, nor an empty pipe the
 * application. */
static int create(const struct shmt_team_spec *spec, struct shmt_team **out, struct shmt_error *e) {
    struct shmt_team *team = malloc(sizeof *team);
    if (!team) return shmt_no_memory(e, "to start %u workers for %s", spec->n, spec->what);
    *team = (struct shmt_team){.spec = *spec, .report_read = -1, .report_write = -1, .control = -1};
    snprintf(team->what, sizeof team->what, "%s", spec->what);
    team->spec.what = team->what;
    int rc = 0;
    int ends[2];
    const size_t bytes = sizeof *team->ledger + spec->n * sizeof team->ledger->end[0];
    void *ledger = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ledger == MAP_FAILED) {
        rc = shmt_fail_errno(e, "cannot map %zu bytes for the ends of %u workers", bytes, spec->n);
        goto fail;
    }
    team->ledger = ledger;
    team->ledger_bytes = bytes;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
        rc = shmt_fail_errno(e, "cannot make a pipe for the reports of %u workers", spec->n);
        goto fail;
    }
    team->report_read = ends[0];
    team->report_write = ends[1];
    *out = team;
    return 0;
fail:
    destroy(team);
    return rc;
}

int shmt_team_start(const struct shmt_team_spec *spec, struct shmt_team **out, struct shmt_error *e) {
    if (spec->n < 1 || spec->n > SHMT_TEAM_MAX)
        return shmt_refuse(e, "cannot start %u workers for %s: ask for 1 to %u", spec->n, spec->what, SHMT_TEAM_MAX);
    struct shmt_team *team = NULL;
    int rc = create(spec, &team, e);
    if (rc < 0) return rc;
    rc = spec->kind->start(team, e);
    if (rc < 0) {
        destroy(team);
        return rc;
    }
    *out = team;
    return 0;
}

int shmt_team_fd(const struct shmt_team *team) { return team->report_read; }

void shmt_team_notify(struct shmt_team *team) {
    /* A full pipe is readable anyway, and a reader that is gone takes us with it. */
    if (write(team->report_write, "r", 1) < 0) return;
}

int shmt_team_step(struct shmt_team *team) {
    char reports[4096];
    ssize_t got;
    do got = read(team->report_read, reports, sizeof reports);
    while (got > 0 || (got < 0 && errno == EINTR));
    /* Behind the look into the pipe: what it writes there says that the next step is due. relaxed: this thread's own word. */
    if (team->spec.kind->step && !load_relaxed(&team->ledger->over)) team->spec.kind->step(team);
    /* Hung up: nobody of the team is left to write, however they ended. That alone is not enough: a stranger that was forked at
     * the wrong moment may hold the pipe open. Acquire pairs with the release of the last one: the ledger is complete. */
    if (got == 0) team->hung_up = true;
    return team->hung_up || load_acquire(&team->ledger->over);
}

void shmt_team_kill(struct shmt_team *team) { team->spec.kind->kill(team); }

int shmt_team_kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid) {
    if (team->spec.kind->kill_worker) return team->spec.kind->kill_worker(team, rank, pid);
    errno = ENOTSUP;
    return -1;
}

int shmt_team_finish(struct shmt_team *team, struct shmt_error *e) {
    while (!shmt_team_step(team)) {
        struct pollfd readable = {.fd = team->report_read, .events = POLLIN};
        (void)poll(&readable, 1, -1); /* interrupted: step looks again */
    }
    const int rc = shmt_team_verdict(team, team->spec.kind->collect(team), e);
    destroy(team);
    return rc;
}

pid_t shmt_team_pid(const struct shmt_team *team, uint32_t rank) {
    if (rank == SHMT_TEAM_SUPERVISOR) return team->supervisor;
    /* relaxed: a number to show */
    return rank < team->spec.n ? (pid_t)load_relaxed(&team->ledger->end[rank].pid) : 0;
}

bool shmt_team_has_failed(const struct shmt_team *team) {
    return load_acquire(&team->ledger->first) != 0; /* pairs with the release of who noted it */
}

bool shmt_team_goes_on_without(const struct shmt_team *team, uint32_t rank) {
    /* relaxed: nothing is read on its strength */
    return rank < team->spec.n && load_relaxed(&team->ledger->end[rank].left_out) != 0;
}

uint32_t shmt_team_life(const struct shmt_team *team, uint32_t rank) {
    return load_relaxed(&team->ledger->end[rank].life); /* in the worker: published by the fork; else a number to show */
}

bool shmt_team_death_at(const struct shmt_team *team, uint64_t at, struct shmt_team_death *out, uint64_t *n_out) {
    const struct shmt_team_ledger *ledger = team->ledger;
    const uint64_t n = load_acquire(&ledger->n_deaths); /* pairs with the release in `record` */
    if (n_out) *n_out = n;
    if (at >= n || n - at >= SHMT_TEAM_DEATHS) return false; /* the oldest one may be being written over */
    *out = ledger->death[at % SHMT_TEAM_DEATHS];
    return true;
}

int shmt_team_run(const struct shmt_team_spec *spec, struct shmt_error *e) {
    struct shmt_team *team;
    const int rc = shmt_team_start(spec, &team, e);
    return rc < 0 ? rc : shmt_team_finish(team, e);
}
