/* Driving a team to its end: see drive.h. */
#include "workers/drive.h"

#include <poll.h>
#include <unistd.h>

#include "sync/host.h"

#define LOOK_MS 100 /* how often it looks up when nothing wakes it */

/* What has become of the team, as the loop below sees it. */
struct course {
    int failed;          /* a tick's status */
    bool failed_first;   /* no worker had failed before */
    uint64_t kill_at_ns; /* 0: nothing has failed */
    bool stopped;        /* killed because a stop was asked for */
};

static void look(struct shmt_call *call, struct shmt_team *team, const struct shmt_driver *driver, struct course *c) {
    if (driver->look) driver->look(driver->arg, team);
    const bool team_has_failed = shmt_team_has_failed(team); /* asked first: a tick that fails ends workers */
    const int rc = driver->tick ? driver->tick(driver->arg, team) : 0;
    if (rc < 0 && c->failed == 0) {
        c->failed = rc;
        c->failed_first = !team_has_failed;
        c->kill_at_ns = shmt_now_ns() + (uint64_t)SHMT_GRACE_MS * 1000000;
    }
    if (c->kill_at_ns && shmt_now_ns() >= c->kill_at_ns) {
        shmt_team_kill(team);
        c->kill_at_ns = 0;
    }
    if (!shmt_stop_asked(call) || c->stopped) return;
    if (driver->stop) {
        driver->stop(driver->arg);
    } else {
        shmt_team_kill(team);
        c->stopped = true;
    }
}

static void drain(int fd) {
    uint64_t count;
    if (fd >= 0 && read(fd, &count, sizeof count) < 0) return; /* another look has heard it */
}

int shmt_drive(struct shmt_call *call, const struct shmt_team_spec *spec, const struct shmt_driver *driver) {
    const int fd = driver->tick ? driver->fd : -1;
    struct shmt_team *team;
    struct course course = {0};
    int rc = shmt_team_start(spec, &team, &call->error);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        struct pollfd pollfd[3] = {{.fd = shmt_team_fd(team), .events = POLLIN},
                                   {.fd = call->stop_fd, .events = POLLIN},
                                   {.fd = fd, .events = POLLIN}};
        const int most_ms = driver->due_ms ? driver->due_ms(driver->arg, LOOK_MS) : LOOK_MS;
        (void)poll(pollfd, 3, most_ms); /* interrupted: look at once */
        drain(fd);
        look(call, team, driver, &course);
    }
    if (driver->look) driver->look(driver->arg, team);
    struct shmt_error why = {0};
    rc = shmt_team_finish(team, &why);
    if (course.stopped) return shmt_fail(&call->error, SHMTRAIN_E_STOPPED, "stopped while %s", spec->what);
    /* Workers who were told to end have nothing to say, nor has one that died when all were told to; one that failed before
     * has. */
    if (course.failed && (course.failed_first || rc == 0 || rc == SHMTRAIN_E_STOPPED)) return course.failed;
    if (rc < 0) shmt_fail(&call->error, rc, "%s", why.text);
    return rc;
}
