/* What the tests of runtime share: bodies of workers, a system that fails where a test asks for it, and the check after each
 * test that nothing is left. For one .c file per program: it defines the wrapped system calls. */
#pragma once

/* No program uses all bodies. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

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

static const struct shmt_team_kind *const KINDS[] = {&SHMT_TEAM_PROCESSES, &SHMT_TEAM_THREADS};

/* What bodies and tests share; mapped anew for each test. */
static struct shared {
    _Atomic uint32_t abort, go, told;
    _Atomic uint32_t entered[N_MAX];
    _Atomic int32_t pid[N_MAX];
    _Atomic int32_t supervisor, told_by;
    _Atomic uint32_t number;
    _Atomic uint32_t by_pidfd; /* signals that were sent so */
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

/* Takes six, however many were passed, as the C library does. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
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
#ifdef SYS_pidfd_send_signal
    if (number == SYS_pidfd_send_signal) atomic_fetch_add(&shared->by_pidfd, 1);
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

static struct shmt_team_spec spec_of(const struct shmt_team_kind *kind, uint32_t n, shmt_team_body *body) {
    return (struct shmt_team_spec){
        .kind = kind, .n = n, .body = body, .abort = &shared->abort, .grace_ms = 60000, .what = "testing"};
}

static int run(const struct shmt_team_kind *kind, uint32_t n, shmt_team_body *body, struct shmt_error *e) {
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

static void start(const struct shmt_team_kind *kind, uint32_t n, shmt_team_body *body, struct shmt_team **out) {
    const struct shmt_team_spec spec = spec_of(kind, n, body);
    struct shmt_error e = {0};
    assert_int_equal(shmt_team_start(&spec, out, &e), 0);
    assert_int_equal(e.status, 0);
    if (body == enter) return;
    for (uint32_t rank = 0; rank < n; rank++) await(&shared->entered[rank]);
}

static void note_abort(void *arg) {
    struct shared *s = arg;
    store_relaxed(&s->number, load_acquire(&s->abort));
    store_relaxed(&s->told_by, getpid());
    atomic_fetch_add(&s->told, 1);
}

static void assert_death(shmt_team_body *body, const char *begin, const char *end) {
    struct shmt_error e;
    store_relaxed(&shared->abort, 0);
    assert_int_equal(run(&SHMT_TEAM_PROCESSES, 3, body, &e), SHMTRAIN_E_DIED);
    assert_int_equal(shared->abort, 2);
    assert_memory_equal(e.text, begin, strlen(begin));
    assert_true(strtol(e.text + strlen(begin), NULL, 10) > 1);
    assert_string_equal(strchr(e.text, ')'), end);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
