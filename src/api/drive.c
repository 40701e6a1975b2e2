/* Driving a team to its end on the calling thread, and what is asked of it meanwhile. Called by whoever runs workers: loading,
 * runs, joining. */
#include <poll.h>
#include <unistd.h>

#include "api/progress.h"
#include "api/store_priv.h"
#include "base/clock.h"

#define LOOK_MS 100 /* how often it looks up when nothing wakes it */

/* An eventfd, because a write to it is allowed everywhere: on other threads, in signal handlers and in workers. It lives as
 * long as the store, so whoever stops a run never meets memory of one that has just ended. */
bool shmt_stop_asked(struct shmtrain_store *store) {
    uint64_t asked;
    if (read(store->stop_fd, &asked, sizeof asked) > 0) store->stop_asked = true;
    return store->stop_asked;
}

void shmt_stop_forget(struct shmtrain_store *store) {
    (void)shmt_stop_asked(store);
    store->stop_asked = false;
}

/* What has become of the team, as the loop below sees it. */
struct course {
    int failed;          /* a tick's status */
    bool failed_first;   /* no worker had failed before */
    uint64_t kill_at_ns; /* 0: nothing has failed */
    bool stopped;        /* killed because a stop was asked for */
};

static void look(struct shmtrain_store *store, struct shmt_team *team, const struct shmt_driver *driver, struct course *c) {
    shmt_deaths_note(store, team);
    const bool team_has_failed = shmt_team_has_failed(team); /* asked first: a tick that fails ends workers */
    const int rc = driver->tick ? driver->tick(store, team) : 0;
    if (rc < 0 && c->failed == 0) {
        c->failed = rc;
        c->failed_first = !team_has_failed;
        c->kill_at_ns = shmt_now_ns() + (uint64_t)SHMT_GRACE_MS * 1000000;
    }
    if (c->kill_at_ns && shmt_now_ns() >= c->kill_at_ns) {
        shmt_team_kill(team);
        c->kill_at_ns = 0;
    }
    if (!shmt_stop_asked(store) || c->stopped) return;
    if (driver->stop) {
        driver->stop(store);
    } else {
        shmt_team_kill(team);
        c->stopped = true;
    }
}

int shmt_drive(struct shmtrain_store *store, const struct shmt_team_spec *spec, const struct shmt_driver *driver) {
    struct shmt_team *team;
    struct course course = {0};
    int rc = shmt_team_start(spec, &team, &store->error);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        /* Requests are for those who have a tick; they wait for the others. */
        const int request_fd = driver->tick ? shmt_snapshots_fd(store) : -1;
        struct pollfd pollfd[3] = {{.fd = shmt_team_fd(team), .events = POLLIN},
                                   {.fd = store->stop_fd, .events = POLLIN},
                                   {.fd = request_fd, .events = POLLIN}};
        /* Who has no tick tells nobody, so nothing would be due later than now. */
        const int most_ms = driver->tick ? shmt_snapshots_due_ms(store, shmt_progress_due_ms(store, LOOK_MS)) : LOOK_MS;
        (void)poll(pollfd, 3, most_ms); /* interrupted: look at once */
        if (request_fd >= 0) shmt_snapshots_hear(store);
        look(store, team, driver, &course);
    }
    shmt_deaths_note(store, team);
    struct shmt_error why = {0};
    rc = shmt_team_finish(team, &why);
    if (course.stopped) return shmt_fail(&store->error, SHMTRAIN_E_STOPPED, "stopped while %s", spec->what);
    /* Workers who were told to end have nothing to say, nor has one that died when all were told to; one that failed before
     * has. */
    if (course.failed && (course.failed_first || rc == 0 || rc == SHMTRAIN_E_STOPPED)) return course.failed;
    if (rc < 0) shmt_fail(&store->error, rc, "%s", why.text);
    return rc;
}
