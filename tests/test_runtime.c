/* Tests of runtime: teams of processes and of threads, all their ways to end, and what they leave behind. */
#include "runtime/team.h"
#include "runtime/team_priv.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define N_MAX 256

/* What bodies and tests share; mapped anew for each test. */
static struct shared {
    _Atomic uint32_t abort, go, told;
    _Atomic uint32_t entered[N_MAX];
    _Atomic int32_t pid[N_MAX];
    _Atomic int32_t supervisor, rouser;
    _Atomic uint32_t number;
    char text[64];
} * shared;

/* ---- the system, faked where a test asks for it ---- */

static struct {
    _Atomic int32_t fork_left, thread_left; /* calls until one fails; negative: none does. Each process has its own */
    int no_pidfds;
    uint64_t oom_kills, oom_step;
} fake;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
uint64_t __real_shmt_oom_kills(void);
uint64_t __wrap_shmt_oom_kills(void);

pid_t __wrap_fork(void) {
    if (fake.fork_left-- == 0) {
        errno = EAGAIN;
        return -1;
    }
    return __real_fork();
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg) {
    return fake.thread_left-- == 0 ? EAGAIN : __real_pthread_create(thread, attributes, start, arg);
}

long __wrap_syscall(long number, ...) {
    va_list args;
    va_start(args, number);
    long arg[6];
    for (int i = 0; i < 6; i++) arg[i] = va_arg(args, long);
    va_end(args);
#ifdef SYS_pidfd_open
    if (number == SYS_pidfd_open && fake.no_pidfds) {
        errno = ENOSYS;
        return -1;
    }
#endif
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

uint64_t __wrap_shmt_oom_kills(void) { return fake.oom_kills += fake.oom_step; }

/* ---- helpers ---- */

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL); }

/* Until the other side has written something else than 0; the alarm of the test ends it if that never comes. */
static void await(const _Atomic uint32_t *word) {
    while (load_acquire(word) == 0) sleep_ms(1);
}

static int count_entries(const char *path) {
    int n = 0;
    DIR *dir = opendir(path);
    if (!dir) return -1;
    for (const struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void assert_no_children(void) {
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static struct shmt_team_spec spec_of(enum shmt_team_kind kind, uint32_t n, shmt_team_body *body) {
    return (struct shmt_team_spec){
        .kind = kind, .n = n, .body = body, .abort = &shared->abort, .grace_ms = 60000, .what = "testing"};
}

static int run(enum shmt_team_kind kind, uint32_t n, shmt_team_body *body, struct shmt_error *e) {
    const struct shmt_team_spec spec = spec_of(kind, n, body);
    shmt_error_clear(e);
    return shmt_team_run(&spec, e);
}

static int open_files;

static int set_up(void **state) {
    (void)state;
    alarm(60); /* a death that is not noticed must fail, not hang */
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fake.fork_left = fake.thread_left = -1;
    fake.no_pidfds = 0;
    fake.oom_kills = fake.oom_step = 0;
    open_files = count_entries("/proc/self/fd");
    return shared == MAP_FAILED ? -1 : 0;
}

/* After every test, whatever happened in it: nothing of the team is left in this process. */
static int tear_down(void **state) {
    (void)state;
    munmap(shared, sizeof *shared);
    const int left = waitpid(-1, NULL, WNOHANG);
    const int files = count_entries("/proc/self/fd");
    if (left != -1) fprintf(stderr, "a child is left (%d)\n", left);
    if (files != open_files) fprintf(stderr, "%d files were open, now %d are\n", open_files, files);
    return left == -1 && files == open_files ? 0 : -1;
}

/* ---- bodies ---- */

#define BODY(name) static int name(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e)
#define UNUSED     (void)arg, (void)rank, (void)team, (void)e

BODY(enter) {
    UNUSED;
    atomic_fetch_add(&shared->entered[rank], 1);
    store_relaxed(&shared->pid[rank], getpid());
    store_relaxed(&shared->supervisor, getppid());
    return 0;
}

static int until_abort(void) {
    while (load_acquire(&shared->abort) == 0) sleep_ms(1);
    return SHMTRAIN_E_STOPPED;
}

BODY(fail_second) {
    UNUSED;
    if (rank != 1) return until_abort();
    return shmt_fail(e, SHMTRAIN_E_DATA, "line %u is bad", rank);
}

BODY(die_second_by_kill) {
    UNUSED;
    if (rank == 1) raise(SIGKILL);
    return until_abort();
}

BODY(die_second_by_fault) {
    UNUSED;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (rank == 1) raise(SIGSEGV);
    return until_abort();
}

BODY(exit_second_with_3) {
    UNUSED;
    if (rank == 1) _exit(3);
    return until_abort();
}

BODY(exit_second_with_0) {
    UNUSED;
    if (rank == 1) _exit(0);
    return until_abort();
}

BODY(return_a_number) {
    UNUSED;
    return rank == 1 ? 7 : until_abort();
}

BODY(fail_without_a_word) {
    UNUSED;
    return rank == 1 ? SHMTRAIN_E_NUMBERS : until_abort();
}

BODY(all_stopped) {
    UNUSED;
    return rank == 1 ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped at step 7") : SHMTRAIN_E_STOPPED;
}

BODY(hang) {
    UNUSED;
    store_relaxed(&shared->pid[rank], getpid());
    store_release(&shared->entered[rank], 1);
    for (;;) pause();
    return 0;
}

BODY(hang_but_second) {
    UNUSED;
    if (rank != 1) return hang(arg, rank, team, e);
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "I cannot");
}

BODY(wait_for_go) {
    UNUSED;
    store_relaxed(&shared->pid[rank], getpid());
    store_relaxed(&shared->supervisor, getppid());
    store_release(&shared->entered[rank], 1);
    await(&shared->go);
    return 0;
}

static void start(enum shmt_team_kind kind, uint32_t n, shmt_team_body *body, struct shmt_team **out) {
    const struct shmt_team_spec spec = spec_of(kind, n, body);
    struct shmt_error e = {0};
    assert_int_equal(shmt_team_start(&spec, out, &e), 0);
    assert_int_equal(e.status, 0);
    if (body == enter) return;
    for (uint32_t rank = 0; rank < n; rank++) await(&shared->entered[rank]);
}

/* ---- both kinds ---- */

static void every_body_runs_once_with_its_rank(enum shmt_team_kind kind, uint32_t n) {
    struct shmt_error e;
    assert_int_equal(run(kind, n, enter, &e), 0);
    assert_int_equal(e.status, 0);
    for (uint32_t rank = 0; rank < n; rank++) assert_int_equal(shared->entered[rank], 1);
    if (n < N_MAX) assert_int_equal(shared->entered[n], 0);
    assert_int_equal(shared->abort, 0);
}

static void every_process_runs_its_body_once(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(SHMT_TEAM_PROCESSES, 4);
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_not_equal(shared->pid[rank], getpid());
        for (uint32_t other = 0; other < rank; other++) assert_int_not_equal(shared->pid[rank], shared->pid[other]);
    }
}

static void every_thread_runs_its_body_once(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(SHMT_TEAM_THREADS, 4);
    for (uint32_t rank = 0; rank < 4; rank++) assert_int_equal(shared->pid[rank], getpid());
}

static void two_hundred_workers_run(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(SHMT_TEAM_PROCESSES, 200);
    memset(shared, 0, sizeof *shared);
    every_body_runs_once_with_its_rank(SHMT_TEAM_THREADS, 200);
}

static void impossible_numbers_are_refused(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        assert_int_equal(run((enum shmt_team_kind)kind, 0, enter, &e), SHMTRAIN_E_USAGE);
        assert_string_equal(e.text, "0 workers for testing cannot be: ask for 1 to 4096");
        assert_int_equal(run((enum shmt_team_kind)kind, SHMT_TEAM_MAX + 1, enter, &e), SHMTRAIN_E_USAGE);
    }
}

static void a_workers_sentence_reaches_the_caller(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        store_relaxed(&shared->abort, 0);
        assert_int_equal(run((enum shmt_team_kind)kind, 3, fail_second, &e), SHMTRAIN_E_DATA);
        assert_string_equal(e.text, "line 1 is bad");
        assert_int_equal(e.status, SHMTRAIN_E_DATA);
        assert_int_equal(shared->abort, 2);
    }
}

static void a_failure_without_a_sentence_gets_one(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        store_relaxed(&shared->abort, 0);
        assert_int_equal(run((enum shmt_team_kind)kind, 3, fail_without_a_word, &e), SHMTRAIN_E_NUMBERS);
        assert_string_equal(e.text, "worker 1 failed while testing with SHMTRAIN_E_NUMBERS, and said no more");
        store_relaxed(&shared->abort, 0);
        assert_int_equal(run((enum shmt_team_kind)kind, 3, return_a_number, &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, "worker 1 returned 7 while testing"));
    }
}

static void stopping_is_no_failure(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        assert_int_equal(run((enum shmt_team_kind)kind, 3, all_stopped, &e), SHMTRAIN_E_STOPPED);
        assert_string_equal(e.text, "stopped at step 7");
        assert_int_equal(shared->abort, 0);
    }
}

static void an_abort_word_that_is_set_stays(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        store_relaxed(&shared->abort, 99);
        assert_int_equal(run((enum shmt_team_kind)kind, 3, fail_second, &e), SHMTRAIN_E_DATA);
        assert_int_equal(shared->abort, 99);
    }
}

static void note_rouser(void *arg) {
    struct shared *s = arg;
    store_relaxed(&s->number, load_acquire(&s->abort));
    store_relaxed(&s->rouser, getpid());
    atomic_fetch_add(&s->told, 1);
}

static void sleepers_are_roused_once_after_the_abort_word(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        memset(shared, 0, sizeof *shared);
        struct shmt_team_spec spec = spec_of((enum shmt_team_kind)kind, 3, fail_second);
        struct shmt_error e = {0};
        spec.arg = shared;
        spec.roused = note_rouser;
        assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DATA);
        assert_int_equal(shared->told, 1);
        assert_int_equal(shared->number, 2);
        if (kind == SHMT_TEAM_THREADS) assert_int_equal(shared->rouser, getpid());
        if (kind == SHMT_TEAM_PROCESSES) assert_int_not_equal(shared->rouser, getpid());
    }
}

BODY(notify_then_wait) {
    UNUSED;
    if (rank == 0) {
        await(&shared->told);
        shmt_team_notify(team);
    }
    await(&shared->go);
    return 0;
}

static void the_descriptor_is_readable_upon_reports_and_at_the_end(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        memset(shared, 0, sizeof *shared);
        const struct shmt_team_spec spec = spec_of((enum shmt_team_kind)kind, 2, notify_then_wait);
        struct shmt_team *team;
        assert_int_equal(shmt_team_start(&spec, &team, NULL), 0);
        struct pollfd polled = {.fd = shmt_team_fd(team), .events = POLLIN};
        assert_int_equal(poll(&polled, 1, 20), 0);
        assert_int_equal(shmt_team_step(team), 0);
        store_release(&shared->told, 1);
        assert_int_equal(poll(&polled, 1, -1), 1);
        assert_int_equal(shmt_team_step(team), 0);
        assert_int_equal(poll(&polled, 1, 20), 0); /* emptied */
        store_release(&shared->go, 1);
        while (!shmt_team_step(team)) assert_int_equal(poll(&polled, 1, -1), 1);
        assert_int_equal(poll(&polled, 1, -1), 1); /* for ever */
        assert_int_equal(shmt_team_step(team), 1);
        assert_int_equal(shmt_team_finish(team, NULL), 0);
    }
}

BODY(notify_a_lot) {
    UNUSED;
    for (int i = 0; i < 200000; i++) shmt_team_notify(team);
    return 0;
}

static void reports_that_nobody_reads_hold_up_nobody(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const struct shmt_team_spec spec = spec_of((enum shmt_team_kind)kind, 1, notify_a_lot);
        struct shmt_team *team;
        assert_int_equal(shmt_team_start(&spec, &team, NULL), 0);
        while (!load_acquire(&team->ledger->end[0].returned)) sleep_ms(1);
        assert_int_equal(shmt_team_finish(team, NULL), 0);
    }
}

BODY(lanes) {
    UNUSED;
    const struct shmt_team_spec spec = spec_of(SHMT_TEAM_THREADS, 3, rank == 1 ? fail_second : enter);
    return shmt_team_run(&spec, e);
}

static void a_process_may_run_a_team_of_threads(void **state) {
    (void)state;
    struct shmt_error e;
    assert_int_equal(run(SHMT_TEAM_PROCESSES, 3, lanes, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "line 1 is bad");
    assert_int_equal(shared->entered[2], 2);
}

/* ---- deaths of workers ---- */

static void assert_death(shmt_team_body *body, const char *begin, const char *end) {
    struct shmt_error e;
    store_relaxed(&shared->abort, 0);
    assert_int_equal(run(SHMT_TEAM_PROCESSES, 3, body, &e), SHMTRAIN_E_DIED);
    assert_int_equal(shared->abort, 2);
    assert_memory_equal(e.text, begin, strlen(begin));
    assert_true(strtol(e.text + strlen(begin), NULL, 10) > 1);
    assert_string_equal(strchr(e.text, ')'), end);
}

static void a_death_is_noticed_and_named(void **state) {
    (void)state;
    for (fake.no_pidfds = 0; fake.no_pidfds < 2; fake.no_pidfds++) {
        assert_death(die_second_by_kill, "worker 1 (process ", ") was killed by signal 9 (Killed) while testing");
        assert_death(die_second_by_fault, "worker 1 (process ", ") was killed by signal 11 (Segmentation fault) while testing");
        assert_death(exit_second_with_3, "worker 1 (process ", ") ended with exit status 3 while testing");
        assert_death(exit_second_with_0, "worker 1 (process ", ") left by exit(0) while testing, without finishing");
    }
}

static void lack_of_memory_is_named_when_the_kernel_counted_it(void **state) {
    (void)state;
    fake.oom_step = 1;
    assert_death(
        die_second_by_kill, "worker 1 (process ",
        ") was killed by signal 9 (Killed) while testing, perhaps for lack of memory: the kernel ended a process for that "
        "meanwhile");
    assert_death(die_second_by_fault, "worker 1 (process ", ") was killed by signal 11 (Segmentation fault) while testing");
    (void)__real_shmt_oom_kills(); /* whatever it finds here */
}

static void who_does_not_leave_is_killed_after_the_grace(void **state) {
    (void)state;
    for (uint32_t grace_ms = 0; grace_ms <= 50; grace_ms += 50) {
        struct shmt_team_spec spec = spec_of(SHMT_TEAM_PROCESSES, 3, hang_but_second);
        struct shmt_error e = {0};
        spec.grace_ms = grace_ms;
        spec.abort = NULL;
        assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_SYSTEM);
        assert_string_equal(e.text, "I cannot");
    }
}

static void workers_that_are_stopped_and_continued_go_on(void **state) {
    (void)state;
    struct shmt_team *team;
    start(SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
    const pid_t pids[] = {shmt_team_pid(team, 0), shmt_team_pid(team, 1), shmt_team_pid(team, SHMT_TEAM_SUPERVISOR)};
    for (int i = 0; i < 3; i++) assert_int_equal(kill(pids[i], SIGTSTP), 0);
    sleep_ms(50);
    assert_int_equal(shmt_team_step(team), 0);
    store_release(&shared->go, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(kill(pids[i], SIGCONT), 0);
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

static void killing_a_team_ends_it_at_once(void **state) {
    (void)state;
    struct shmt_team *team;
    struct shmt_error e = {0};
    start(SHMT_TEAM_PROCESSES, 3, hang, &team);
    shmt_team_kill(team);
    shmt_team_kill(team);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_STOPPED);
    assert_string_equal(e.text, "stopped while testing");
}

static void killing_a_team_that_has_ended_changes_nothing(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_team *team;
        start((enum shmt_team_kind)kind, 2, enter, &team);
        struct pollfd polled = {.fd = shmt_team_fd(team), .events = POLLIN};
        while (!shmt_team_step(team)) poll(&polled, 1, -1);
        shmt_team_kill(team);
        assert_int_equal(shmt_team_finish(team, NULL), 0);
        assert_int_equal(shared->abort, 0);
    }
}

BODY(wait_for_abort) {
    UNUSED;
    store_release(&shared->entered[rank], 1);
    return until_abort();
}

static void killing_threads_sets_the_abort_word(void **state) {
    (void)state;
    struct shmt_team_spec spec = spec_of(SHMT_TEAM_THREADS, 2, wait_for_abort);
    struct shmt_team *team;
    spec.arg = shared;
    spec.roused = note_rouser;
    assert_int_equal(shmt_team_start(&spec, &team, NULL), 0);
    shmt_team_kill(team);
    assert_int_equal(shmt_team_finish(team, NULL), SHMTRAIN_E_STOPPED);
    assert_true(shared->abort == SHMT_TEAM_KILLED);
    assert_int_equal(shared->told, 1);
}

/* ---- deaths of those above ---- */

/* Whoever loses its parent becomes our child; so we see each end, and that none is left. */
static void assert_all_gone(const pid_t *pids, int n) {
    for (int i = 0; i < n; i++) {
        int status = -1;
        assert_true(waitpid(pids[i], &status, 0) == pids[i] || errno == ECHILD);
        assert_int_equal(kill(pids[i], 0), -1);
        assert_int_equal(errno, ESRCH);
    }
    assert_no_children();
}

/* A child that has a team of three, which never ends by itself. */
static pid_t fork_application(void (*then)(struct shmt_team *team)) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t application = __real_fork();
    assert_true(application >= 0);
    if (application == 0) {
        const struct shmt_team_spec spec = spec_of(SHMT_TEAM_PROCESSES, 3, hang);
        struct shmt_team *team;
        if (shmt_team_start(&spec, &team, NULL)) _exit(1);
        store_relaxed(&shared->supervisor, shmt_team_pid(team, SHMT_TEAM_SUPERVISOR));
        store_release(&shared->told, 1);
        then(team);
        _exit(0);
    }
    await(&shared->told);
    for (int rank = 0; rank < 3; rank++) await(&shared->entered[rank]);
    return application;
}

static void for_ever(struct shmt_team *team) {
    (void)team;
    for (;;) pause();
}

static void all_end_when_the_caller_is_killed(void **state) {
    (void)state;
    for (fake.no_pidfds = 0; fake.no_pidfds < 2; fake.no_pidfds++) {
        memset(shared, 0, sizeof *shared);
        const pid_t application = fork_application(for_ever);
        const pid_t pids[] = {application, shared->supervisor, shared->pid[0], shared->pid[1], shared->pid[2]};
        assert_int_equal(kill(application, SIGKILL), 0);
        assert_all_gone(pids, 5);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void leave_when_told(struct shmt_team *team) {
    (void)team;
    await(&shared->go);
}

static void all_end_when_the_caller_exits_without_finishing(void **state) {
    (void)state;
    const pid_t application = fork_application(leave_when_told);
    const pid_t pids[] = {application, shared->supervisor, shared->pid[0], shared->pid[1], shared->pid[2]};
    store_release(&shared->go, 1);
    assert_all_gone(pids, 5);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void all_end_when_the_supervisor_is_killed(void **state) {
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct shmt_team *team;
    struct shmt_error e = {0};
    start(SHMT_TEAM_PROCESSES, 3, hang, &team);
    const pid_t pids[] = {shared->pid[0], shared->pid[1], shared->pid[2]};
    assert_int_equal(kill(shmt_team_pid(team, SHMT_TEAM_SUPERVISOR), SIGKILL), 0);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_DIED);
    assert_string_equal(e.text,
                        "the workers' supervisor was killed by signal 9 (Killed) while testing, and the workers with it");
    assert_all_gone(pids, 3);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void *start_in_thread(void *out) {
    start(SHMT_TEAM_PROCESSES, 2, wait_for_go, out);
    return NULL;
}

static void the_thread_that_started_a_team_may_end(void **state) {
    (void)state;
    struct shmt_team *team = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, start_in_thread, &team), 0);
    pthread_join(thread, NULL);
    sleep_ms(50);
    assert_int_equal(shmt_team_step(team), 0);
    store_release(&shared->go, 1);
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

/* ---- starts that fail ---- */

static void a_fork_that_fails_undoes_the_start(void **state) {
    (void)state;
    for (int32_t left = 0; left < 4; left++) {
        struct shmt_error e;
        fake.fork_left = left;
        assert_int_equal(run(SHMT_TEAM_PROCESSES, 3, hang, &e), SHMTRAIN_E_SYSTEM);
        fake.fork_left = -1;
        char begin[64];
        snprintf(begin, sizeof begin, "cannot start worker %d of 3 for testing: no more processes", left - 1);
        if (left == 0) assert_memory_equal(e.text, "cannot start the workers' supervisor for testing: no more processes", 66);
        if (left > 0) assert_memory_equal(e.text, begin, strlen(begin));
        assert_non_null(strstr(e.text, "ask for fewer workers, or raise the limit (ulimit -u"));
        assert_no_children();
        assert_int_equal(count_entries("/proc/self/fd"), open_files);
    }
}

static void a_thread_that_fails_to_start_lets_no_body_begin(void **state) {
    (void)state;
    struct shmt_error e;
    fake.thread_left = 2;
    assert_int_equal(run(SHMT_TEAM_THREADS, 4, enter, &e), SHMTRAIN_E_SYSTEM);
    const char begin[] = "cannot start thread 2 of 4 for testing: Resource temporarily unavailable; ask for fewer";
    assert_memory_equal(e.text, begin, sizeof begin - 1);
    for (uint32_t rank = 0; rank < 4; rank++) assert_int_equal(shared->entered[rank], 0);
}

static void workers_may_be_more_than_open_files(void **state) {
    (void)state;
    const pid_t pid = __real_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct shmt_error e = {0};
        const struct rlimit few = {.rlim_cur = 40, .rlim_max = 40};
        if (setrlimit(RLIMIT_NOFILE, &few)) _exit(77);
        if (run(SHMT_TEAM_PROCESSES, 80, fail_second, &e) != SHMTRAIN_E_DATA) _exit(3);
        store_relaxed(&shared->abort, 0);
        _exit(run(SHMT_TEAM_PROCESSES, 80, enter, &e) == 0 ? 0 : 4);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("the limit on open files cannot be changed here (valgrind keeps it)\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- what workers inherit, and what not ---- */

static void count_a_signal(int number) {
    (void)number;
    atomic_fetch_add(&shared->told, 1);
}

static void interrupts_are_the_applications(void **state) {
    (void)state;
    struct sigaction old_int, old_usr1;
    const struct sigaction action = {.sa_handler = count_a_signal};
    struct shmt_team *team;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGUSR1, &action, &old_usr1);
    start(SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
    const pid_t pids[] = {shmt_team_pid(team, 0), shmt_team_pid(team, 1), shmt_team_pid(team, SHMT_TEAM_SUPERVISOR)};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kill(pids[i], SIGINT), 0);
        assert_int_equal(kill(pids[i], SIGTERM), 0);
        assert_int_equal(kill(pids[i], SIGUSR1), 0);
    }
    sleep_ms(20);
    assert_int_equal(shared->told, 0);
    raise(SIGINT); /* still ours */
    assert_int_equal(shared->told, 1);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGUSR1, &old_usr1, NULL);
    store_release(&shared->go, 1);
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

BODY(report_handlers) {
    UNUSED;
    struct sigaction action;
    sigset_t mask;
    uint32_t found = 0;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action)) continue;
        const bool ignored = action.sa_handler == SIG_IGN;
        const bool must_be = number == SIGINT || number == SIGTERM || number == SIGUSR2 || number == SIGWINCH;
        if (ignored != must_be || (!ignored && action.sa_handler != SIG_DFL)) found = (uint32_t)number;
    }
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&mask, number) == 1) found = 1000 + (uint32_t)number;
    store_release(&shared->number, found);
    return 0;
}

static void workers_start_without_handlers_and_masks(void **state) {
    (void)state;
    const pid_t pid = __real_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct shmt_error e = {0};
        sigset_t mask;
        for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
        signal(SIGCHLD, count_a_signal);
        signal(SIGPIPE, count_a_signal);
        signal(SIGSEGV, count_a_signal);
        signal(SIGWINCH, SIG_IGN);
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR2); /* as for a signalfd */
        sigaddset(&mask, SIGALRM);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        store_relaxed(&shared->number, 1);
        const int rc = run(SHMT_TEAM_PROCESSES, 1, report_handlers, &e);
        sigset_t after;
        sigprocmask(SIG_SETMASK, NULL, &after);
        _exit(rc == 0 && sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGINT) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(shared->number, 0);
}

BODY(report_mask) {
    UNUSED;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    store_release(&shared->number, sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGSEGV) == 0 ? 1 : 2);
    return 0;
}

static void threads_leave_signals_to_the_application(void **state) {
    (void)state;
    struct shmt_error e;
    sigset_t mask;
    assert_int_equal(run(SHMT_TEAM_THREADS, 1, report_mask, &e), 0);
    assert_int_equal(shared->number, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGINT), 0);
}

static void an_application_that_ignores_its_children_gets_its_answer(void **state) {
    (void)state;
    struct shmt_error e;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    assert_int_equal(run(SHMT_TEAM_PROCESSES, 2, enter, &e), 0);
    assert_death(exit_second_with_3, "worker 1 (process ", ") ended with exit status 3 while testing");
    signal(SIGCHLD, old);
}

static void *idle(void *p) {
    (void)p;
    await(&shared->go);
    return NULL;
}

static void the_supervisor_has_one_thread(void **state) {
    (void)state;
    struct shmt_team *team;
    pthread_t thread;
    char path[64];
    assert_int_equal(pthread_create(&thread, NULL, idle, NULL), 0);
    start(SHMT_TEAM_PROCESSES, 1, wait_for_go, &team);
    snprintf(path, sizeof path, "/proc/%d/task", shared->supervisor);
    assert_int_equal(shared->supervisor, shmt_team_pid(team, SHMT_TEAM_SUPERVISOR));
    assert_int_equal(count_entries(path), 1);
    snprintf(path, sizeof path, "/proc/%d/task", shared->pid[0]);
    assert_int_equal(count_entries(path), 1);
    store_release(&shared->go, 1);
    pthread_join(thread, NULL);
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

static void assert_name(pid_t pid, const char *expected) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    fclose(file);
    name[strcspn(name, "\n")] = 0;
    assert_string_equal(name, expected);
}

static void processes_have_names_and_numbers(void **state) {
    (void)state;
    struct shmt_team *team;
    start(SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
    assert_int_equal(shmt_team_pid(team, 1), shared->pid[1]);
    assert_int_equal(shmt_team_pid(team, 2), 0);
    assert_name(shmt_team_pid(team, SHMT_TEAM_SUPERVISOR), "shmtrain-sup");
    assert_name(shmt_team_pid(team, 1), "shmtrain-w1");
    store_release(&shared->go, 1);
    struct pollfd polled = {.fd = shmt_team_fd(team), .events = POLLIN};
    while (!shmt_team_step(team)) poll(&polled, 1, -1);
    assert_int_equal(shmt_team_pid(team, 1), 0);
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

static void what_the_application_has_not_flushed_is_written_once(void **state) {
    (void)state;
    int ends[2];
    char text[8];
    struct shmt_error e;
    assert_int_equal(pipe(ends), 0);
    FILE *file = fdopen(ends[1], "w");
    assert_non_null(file);
    fputs("once", file);
    assert_int_equal(run(SHMT_TEAM_PROCESSES, 2, enter, &e), 0);
    fclose(file);
    assert_int_equal(read(ends[0], text, sizeof text), 4);
    close(ends[0]);
}

/* A stranger that was forked at the wrong moment keeps the pipe open; the end is noticed all the same. */
BODY(leave_a_stranger) {
    UNUSED;
    if (rank == 0 && __real_fork() == 0) {
        store_release(&shared->told, 1);
        await(&shared->go);
        store_release(&shared->entered[7], 1);
        _exit(0);
    }
    return 0;
}

static void a_stranger_with_our_pipe_does_not_hide_the_end(void **state) {
    (void)state;
    struct shmt_error e;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(run(SHMT_TEAM_PROCESSES, 1, leave_a_stranger, &e), 0);
    await(&shared->told);
    store_release(&shared->go, 1);
    await(&shared->entered[7]);
    while (waitpid(-1, NULL, 0) > 0) continue;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_process_runs_its_body_once),
        TEST(every_thread_runs_its_body_once),
        TEST(two_hundred_workers_run),
        TEST(impossible_numbers_are_refused),
        TEST(a_workers_sentence_reaches_the_caller),
        TEST(a_failure_without_a_sentence_gets_one),
        TEST(stopping_is_no_failure),
        TEST(an_abort_word_that_is_set_stays),
        TEST(sleepers_are_roused_once_after_the_abort_word),
        TEST(the_descriptor_is_readable_upon_reports_and_at_the_end),
        TEST(reports_that_nobody_reads_hold_up_nobody),
        TEST(a_process_may_run_a_team_of_threads),
        TEST(a_death_is_noticed_and_named),
        TEST(lack_of_memory_is_named_when_the_kernel_counted_it),
        TEST(who_does_not_leave_is_killed_after_the_grace),
        TEST(workers_that_are_stopped_and_continued_go_on),
        TEST(killing_a_team_ends_it_at_once),
        TEST(killing_a_team_that_has_ended_changes_nothing),
        TEST(killing_threads_sets_the_abort_word),
        TEST(all_end_when_the_caller_is_killed),
        TEST(all_end_when_the_caller_exits_without_finishing),
        TEST(all_end_when_the_supervisor_is_killed),
        TEST(the_thread_that_started_a_team_may_end),
        TEST(a_fork_that_fails_undoes_the_start),
        TEST(a_thread_that_fails_to_start_lets_no_body_begin),
        TEST(workers_may_be_more_than_open_files),
        TEST(interrupts_are_the_applications),
        TEST(workers_start_without_handlers_and_masks),
        TEST(threads_leave_signals_to_the_application),
        TEST(an_application_that_ignores_its_children_gets_its_answer),
        TEST(the_supervisor_has_one_thread),
        TEST(processes_have_names_and_numbers),
        TEST(what_the_application_has_not_flushed_is_written_once),
        TEST(a_stranger_with_our_pipe_does_not_hide_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
