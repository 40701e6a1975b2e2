/* A team of processes, seen from the caller: one fork, of the supervisor. Called by team.c, by the row at the end. Relies on
 * supervisor.c, which runs in the child. Guarantees that a failed start leaves no process and no descriptor, and that no handler
 * of the application ever runs in the child: all signals are blocked around the fork. */
#include "runtime/team_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A descriptor that becomes readable when this process ends; -1 where kernel or container have none. Asked for before the fork,
 * so that the supervisor cannot miss a death that comes early. */
static int pidfd_of_myself(void) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
#else
    return -1;
#endif
}

/* Forks the supervisor. The descriptors of *birth are the child's; here they are closed. */
static int fork_supervisor(struct shmt_team *team, struct shmt_team_birth *birth) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &birth->masked);
    const pid_t pid = fork();
    if (pid == 0) {
        close(team->control);
        close(team->report_read);
        shmt_team_supervise(team, birth);
    }
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &birth->masked, NULL);
    close(birth->control);
    if (birth->caller_fd >= 0) close(birth->caller_fd);
    close(team->report_write); /* workers and supervisor have it: when they have all ended, our end is hung up */
    team->report_write = -1;
    team->supervisor = pid > 0 ? pid : 0;
    errno = code;
    return pid < 0 ? -1 : 0;
}

/* The sentence for a fork that failed with errno. */
static int refuse(const struct shmt_team *team, const char *who, struct shmt_error *e) {
    if (errno != EAGAIN) return shmt_fail_errno(e, "cannot start %s for %s", who, team->what);
    return shmt_fail(
        e, SHMTRAIN_E_SYSTEM,
        "cannot start %s for %s: no more processes are allowed; ask for fewer workers, or raise the limit (ulimit -u, or "
        "pids.max of the container)",
        who, team->what);
}

/* Waits for the supervisor, which has ended or is about to. */
static int collect(struct shmt_team *team) {
    int status = 0;
    pid_t got;
    do got = waitpid(team->supervisor, &status, 0);
    while (got < 0 && errno == EINTR);
    team->supervisor = 0;
    close(team->control);
    team->control = -1;
    return got < 0 ? 0 : status; /* an application that ignores SIGCHLD, or waits for everybody, was faster */
}

/* Waits until the supervisor has forked all workers, or has failed to. */
static int wait_for_start(struct shmt_team *team, struct shmt_error *e) {
    struct shmt_team_word heard = {0};
    ssize_t got;
    do got = read(team->control, &heard, sizeof heard);
    while (got < 0 && errno == EINTR);
    if (got == sizeof heard && heard.what == SHMT_TEAM_STARTED) return 0;
    const int supervisor_status = collect(team);
    if (got != sizeof heard || heard.what != SHMT_TEAM_FAILED) return shmt_team_verdict(team, supervisor_status, e);
    char who[64];
    snprintf(who, sizeof who, "worker %u of %u", team->ledger->fork_rank, team->spec.n);
    errno = team->ledger->fork_errno;
    return refuse(team, who, e);
}

static int start(struct shmt_team *team, struct shmt_error *e) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        return shmt_fail_errno(e, "cannot make sockets for the supervisor of %u workers", team->spec.n);
    struct pollfd *polled = malloc((team->spec.n + 2) * sizeof *polled);
    if (!polled) {
        close(sockets[0]);
        close(sockets[1]);
        return shmt_no_memory(e, "to supervise %u workers", team->spec.n);
    }
    team->control = sockets[0];
    struct shmt_team_birth birth = {
        .control = sockets[1], .caller_fd = pidfd_of_myself(), .caller_pid = getpid(), .polled = polled};
    const int rc = fork_supervisor(team, &birth) ? refuse(team, "the workers' supervisor", e) : wait_for_start(team, e);
    free(polled);
    if (rc < 0 && team->control >= 0) {
        close(team->control);
        team->control = -1;
    }
    return rc;
}

/* -1, with errno: the supervisor has ended, and all workers with it, or has not read what it was told before. Without SIGPIPE,
 * which is the application's. */
static int tell_supervisor(const struct shmt_team *team, const struct shmt_team_word *word) {
    errno = ESRCH;
    if (team->control < 0) return -1;
    return send(team->control, word, sizeof *word, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static void kill_all(struct shmt_team *team) { (void)tell_supervisor(team, &(struct shmt_team_word){.what = SHMT_TEAM_KILL}); }

static int kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid) {
    return tell_supervisor(team, &(struct shmt_team_word){.what = SHMT_TEAM_KILL_ONE, .rank = rank, .pid = pid});
}

const struct shmt_team_kind SHMT_TEAM_PROCESSES = {.name = "processes",
                                                   .survives_deaths = true,
                                                   .start = start,
                                                   .kill = kill_all,
                                                   .kill_worker = kill_worker,
                                                   .collect = collect};
