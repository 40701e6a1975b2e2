/* The supervisor's process: forks the workers, notices their ends, starts those again that may be, and ends. Entered by
 * processes.c in the forked child, never left but by _exit. What runs here may follow a fork in a program with threads, so the
 * supervisor itself calls nothing that allocates or locks, and has one thread for ever, whatever the application does.
 *
 * Who notices whose death: the supervisor that of the caller by a pidfd (the kernel's own death signal would come when the
 * thread that forked ends, not its process) and that of the workers by pidfds; the workers that of the supervisor by the death
 * signal, because it has only one thread. Where there are no pidfds, or too few, it looks twenty times a second. */
#include "runtime/team_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/host.h"

#define LOOK_MS 50 /* without pidfds */

enum { CONTROL, CALLER, WORKERS }; /* places in `polled` */

struct supervision {
    struct shmt_team *team;
    const struct shmt_team_birth *birth;
    struct pollfd *polled; /* control, caller, workers' pidfds; fd -1 where there is none or nothing is awaited */
    uint32_t n_polled;     /* up to the last worker with a pidfd: poll refuses more entries than files are allowed */
    uint32_t n_running;
    bool blind;          /* some death shows in no descriptor */
    bool killing;        /* everybody has been sent SIGKILL */
    uint64_t kill_at_ns; /* after a failure; 0: not set */
    uint64_t oom_kills;  /* when it was looked at last */
    pid_t pid;           /* mine */
    struct rlimit files; /* as the caller had it, for who is forked later */
};

static struct shmt_team_end *end_of(struct supervision *s, uint32_t rank) { return &s->team->ledger->end[rank]; }

/* What is the supervisor's alone: sockets, and the others' pidfds, which there are when somebody is started again. */
static void close_own_files(struct supervision *s) {
    close(s->birth->control);
    if (s->birth->caller_fd >= 0) close(s->birth->caller_fd);
    for (uint32_t i = WORKERS; i < s->n_polled; i++)
        if (s->polled[i].fd >= 0) close(s->polled[i].fd);
    if (s->n_polled > 0) setrlimit(RLIMIT_NOFILE, &s->files);
}

/* The worker's process. */
static _Noreturn void work(struct supervision *s, uint32_t rank) {
    struct shmt_team *team = s->team;
    struct shmt_team_end *end = end_of(s, rank);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != s->pid) _exit(EXIT_FAILURE); /* it had died before it could be said what to do then */
    close_own_files(s);
    shmt_settle_name("w", rank);
    shmt_faults_answer(end, team->spec.guarded);
    const int status = team->spec.body(team->spec.arg, rank, team, &end->error);
    end->status = status;
    store_release(&end->returned, 1); /* pairs with the acquire in note_end and ends.c: status and sentence are complete */
    _exit(shmt_team_is_clean_end(status) ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void kill_all(struct supervision *s) {
    for (uint32_t rank = 0; rank < s->team->spec.n; rank++) {
        const pid_t pid = load_relaxed(&end_of(s, rank)->pid); /* our own word */
        if (pid) kill(pid, SIGKILL);                           /* not collected yet, so the number is still the worker's */
    }
    s->killing = true;
}

static void tell_caller(struct supervision *s, int32_t what) {
    const struct shmt_team_word word = {.what = what};
    if (send(s->birth->control, &word, sizeof word, MSG_NOSIGNAL) < 0) return; /* the caller is dead: the loop notices */
}

/* 0, or errno. */
static int fork_worker(struct supervision *s, uint32_t rank) {
    const pid_t pid = fork();
    if (pid == 0) work(s, rank);
    if (pid < 0) return errno;
    end_of(s, rank)->last_pid = pid;
    store_relaxed(&end_of(s, rank)->pid, pid); /* for displays; nothing hangs on it */
    s->n_running++;
    return 0;
}

static void fork_workers(struct supervision *s) {
    struct shmt_team_ledger *ledger = s->team->ledger;
    for (uint32_t rank = 0; rank < s->team->spec.n; rank++) {
        ledger->fork_errno = fork_worker(s, rank);
        if (ledger->fork_errno == 0) continue;
        ledger->fork_rank = rank;
        kill_all(s);
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
        tell_caller(s, SHMT_TEAM_FAILED);
        _exit(EXIT_FAILURE);
    }
}

/* A worker that has ended already is not collected yet and has its pidfd. */
static void open_pidfd(struct supervision *s, uint32_t rank) {
    int fd = -1;
#ifdef SYS_pidfd_open
    fd = (int)syscall(SYS_pidfd_open, end_of(s, rank)->last_pid, 0);
#endif
    s->polled[WORKERS + rank] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (fd >= 0 && s->n_polled < WORKERS + rank + 1) s->n_polled = WORKERS + rank + 1;
    s->blind |= fd < 0;
}

/* Only after all forks, so that no worker inherits them. */
static void open_pidfds(struct supervision *s) {
    /* 1,024 are usual, and too few for as many workers. The change is ours alone: the workers are there already, and who is
     * started again takes it back. */
    if (getrlimit(RLIMIT_NOFILE, &s->files) == 0 && s->files.rlim_cur < s->files.rlim_max) {
        struct rlimit most = s->files;
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_NOFILE, &most);
    }
    s->polled[CONTROL] = (struct pollfd){.fd = s->birth->control, .events = POLLIN};
    s->polled[CALLER] = (struct pollfd){.fd = s->birth->caller_fd, .events = POLLIN};
    s->n_polled = WORKERS;
    s->blind = s->birth->caller_fd < 0;
    for (uint32_t rank = 0; rank < s->team->spec.n; rank++) open_pidfd(s, rank);
}

static void wait_for_news(struct supervision *s) {
    int limit_ms = s->blind ? LOOK_MS : -1;
    if (s->kill_at_ns && !s->killing) {
        const uint64_t now_ns = shmt_now_ns();
        const uint64_t left_ms = now_ns < s->kill_at_ns ? (s->kill_at_ns - now_ns) / 1000000 + 1 : 0;
        if (limit_ms < 0 || left_ms < (uint64_t)limit_ms) limit_ms = left_ms < 3600000 ? (int)left_ms : 3600000;
    }
    if (poll(s->polled, s->n_polled, limit_ms) >= 0) return;
    for (uint32_t i = 0; i < s->n_polled; i++) s->polled[i].revents = 0; /* interrupted: nothing is known */
}

/* Whether the caller's process has ended. Without a pidfd we see it by having another parent. */
static bool caller_is_gone(struct supervision *s) {
    struct pollfd *caller = &s->polled[CALLER];
    if (s->birth->caller_fd < 0) return getppid() != s->birth->caller_pid;
    if (!caller->revents) return false;
    caller->fd = -1; /* it would stay news for ever */
    return true;
}

/* By its pidfd, which stands for that process alone. Where there is none, the number is the worker's as long as it is not
 * collected, which we alone do. */
static void kill_one(struct supervision *s, const struct shmt_team_word *word) {
    if (word->rank >= s->team->spec.n || word->pid <= 0) return;
    if (load_relaxed(&end_of(s, word->rank)->pid) != word->pid)
        return; /* my own word: it has died, or another life has begun */
#ifdef SYS_pidfd_send_signal
    const int fd = s->polled[WORKERS + word->rank].fd;
    if (fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0) return;
#endif
    kill(word->pid, SIGKILL);
}

/* What the caller asks for, packet by packet. True: all are to be killed. */
static bool read_requests(struct supervision *s) {
    struct shmt_team_word word;
    ssize_t got = 0;
    if (!s->polled[CONTROL].revents) return false;
    while ((got = recv(s->birth->control, &word, sizeof word, MSG_DONTWAIT)) == sizeof word && word.what == SHMT_TEAM_KILL_ONE)
        kill_one(s, &word);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    s->polled[CONTROL].fd = -1; /* once is enough */
    if (got <= 0) shmt_team_set_abort(s->team, SHMT_TEAM_KILLED);
    return true; /* closed: the caller has ended, which is as good as asked */
}

static bool is_failure(const struct shmt_team_end *end) {
    if (load_acquire(&end->returned)) return !shmt_team_is_clean_end(end->status); /* pairs with the release in `work` */
    return !end->killed;
}

/* The next life, from this process's memory, in which no worker has run. 0, or errno. */
static int start_again(void *arg, uint32_t rank) {
    const int code = fork_worker(arg, rank);
    if (code == 0) open_pidfd(arg, rank);
    return code;
}

static void fail(struct supervision *s, uint32_t rank) {
    shmt_team_fail(s->team, rank);
    s->kill_at_ns = shmt_now_ns() + (uint64_t)s->team->spec.grace_ms * 1000000;
}

/* Whether the kernel has ended a process for lack of memory since I looked last. */
static bool has_ended_others(struct supervision *s) {
    const uint64_t before = s->oom_kills;
    s->oom_kills = shmt_oom_kills();
    return s->oom_kills > before;
}

static void note_end(struct supervision *s, uint32_t rank, int status) {
    struct shmt_team_end *end = end_of(s, rank);
    const bool by_kill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    end->wait_status = status;
    end->killed = by_kill && s->killing;
    end->short_of_memory = by_kill && !s->killing && has_ended_others(s);
    store_relaxed(&end->pid, 0); /* for displays, and for kill_all, which is ours */
    s->n_running--;
    if (!is_failure(end)) return;
    if (!s->killing && shmt_team_outlive(s->team, rank, start_again, s) != SHMT_TEAM_FAILS) return;
    if (load_relaxed(&s->team->ledger->first) == 0) fail(s, rank); /* my own word */
}

static void collect(struct supervision *s) {
    for (uint32_t rank = 0; rank < s->team->spec.n; rank++) {
        struct pollfd *polled = &s->polled[WORKERS + rank];
        const pid_t pid = load_relaxed(&end_of(s, rank)->pid); /* our own word */
        int status = 0;
        if (pid == 0 || (polled->fd >= 0 && !polled->revents) || waitpid(pid, &status, WNOHANG) == 0) continue;
        if (polled->fd >= 0) close(polled->fd);
        polled->fd = -1;
        note_end(s, rank, status);
    }
}

_Noreturn void shmt_team_supervise(struct shmt_team *team, const struct shmt_team_birth *birth) {
    struct supervision s = {.team = team, .birth = birth, .polled = birth->polled, .pid = getpid()};
    shmt_settle_signals(&birth->masked);
    shmt_settle_name("sup", -1);
    fork_workers(&s);
    tell_caller(&s, SHMT_TEAM_STARTED);
    open_pidfds(&s);
    s.oom_kills = shmt_oom_kills();
    while (s.n_running > 0) {
        wait_for_news(&s);
        const bool gone = caller_is_gone(&s), asked = read_requests(&s);
        /* others than our workers may look at the word: those that join by name */
        if (gone) shmt_team_set_abort(team, SHMT_TEAM_KILLED);
        if ((gone || asked) && !s.killing) kill_all(&s);
        collect(&s);
        if (s.kill_at_ns && !s.killing && shmt_now_ns() >= s.kill_at_ns) kill_all(&s);
    }
    store_release(&team->ledger->over, 1); /* pairs with step's acquire: the ledger is complete */
    shmt_team_notify(team);                /* for a caller whose descriptor a stranger holds open */
    _exit(EXIT_SUCCESS);
}
