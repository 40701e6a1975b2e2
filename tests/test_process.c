/* Recognising processes of others (base/process.h): those that live, that have ended, whose number was given again, and that
 * live in another namespace. */
#include "base/process.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "skip.h"

static int g_no_pidfd, g_no_signal; /* errno of the two calls; 0: as the system has them */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
    const int refused = number == SYS_pidfd_open ? g_no_pidfd : number == SYS_pidfd_send_signal ? g_no_signal : 0;
    if (refused == 0) return __real_syscall(number, a, b, c, d, e, f);
    errno = refused;
    return -1;
}

static void nap(void) { (void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL); }

/* A process that waits, and what it says of itself. */
static pid_t start(struct shmt_life *life, void (*body)(void)) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        shmt_life_mine(life);
        if (write(ends[1], life, sizeof *life) != sizeof *life) _exit(1);
        body();
        _exit(0);
    }
    assert_int_equal(read(ends[0], life, sizeof *life), sizeof *life);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void wait_for_ever(void) {
    for (;;) pause();
}

static void end_at_once(void) {}

static void *wait_in_thread(void *arg) {
    (void)arg;
    wait_for_ever();
    return NULL;
}

static void end_first_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_in_thread, NULL) != 0) _exit(1);
    pthread_exit(NULL);
}

static void who_lives_is_found(void **state) {
    struct shmt_life mine, other;
    (void)state;
    shmt_life_mine(&mine);
    assert_int_equal(shmt_life_look(&mine), SHMT_LIFE_GOES_ON);
    assert_int_equal(shmt_life_pid(&mine), getpid());
    const pid_t pid = start(&other, wait_for_ever);
    assert_int_equal(other.space, mine.space);
    assert_int_equal(shmt_life_look(&other), SHMT_LIFE_GOES_ON);
    assert_int_equal(shmt_life_pid(&other), pid);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    while (!shmt_state_is_stopped(shmt_process_state(pid))) nap();
    assert_int_equal(shmt_life_look(&other), SHMT_LIFE_GOES_ON);
    assert_int_equal(shmt_life_kill(&other), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Before its parent has asked for its status, too. */
static void who_has_ended_is_gone(void **state) {
    struct shmt_life life;
    (void)state;
    const pid_t pid = start(&life, end_at_once);
    while (shmt_process_state(pid) != 'Z') nap();
    assert_int_equal(shmt_life_look(&life), SHMT_LIFE_IS_OVER);
    assert_int_equal(shmt_life_pid(&life), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(shmt_life_look(&life), SHMT_LIFE_IS_OVER);
    assert_int_equal(shmt_process_state(pid), '\0');
}

static void a_number_that_was_given_again_is_another_process(void **state) {
    struct shmt_life life;
    (void)state;
    const pid_t pid = start(&life, wait_for_ever);
    struct shmt_life earlier = life;
    earlier.process -= UINT64_C(1) << 22; /* began a tick before */
    assert_int_equal(shmt_life_look(&earlier), SHMT_LIFE_IS_OVER);
    assert_int_equal(shmt_life_kill(&earlier), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(shmt_life_kill(&life), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void of_another_namespace_nothing_is_known(void **state) {
    struct shmt_life life;
    (void)state;
    const pid_t pid = start(&life, wait_for_ever);
    const struct shmt_life there = {life.process, life.space + 1}, nobody = {0};
    assert_int_equal(shmt_life_look(&there), SHMT_LIFE_UNKNOWN);
    assert_int_equal(shmt_life_look(&nobody), SHMT_LIFE_UNKNOWN);
    assert_int_equal(shmt_life_kill(&there), -1);
    assert_int_equal(shmt_life_kill(&nobody), -1);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Old kernels, filters of containers, and who has no descriptor left. */
static void where_a_pidfd_is_refused_the_number_does(void **state) {
    static const int OPEN[] = {ENOSYS, EPERM, EMFILE, 0, 0}, SIGNAL[] = {0, 0, 0, ENOSYS, EPERM};
    (void)state;
    for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++) {
        struct shmt_life life;
        int status;
        const pid_t pid = start(&life, wait_for_ever);
        g_no_pidfd = OPEN[i];
        g_no_signal = SIGNAL[i];
        assert_int_equal(shmt_life_kill(&life), 0);
        g_no_pidfd = g_no_signal = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

/* In a PID namespace whose /proc is that of the one around it: our number is there, and another process's. 99: not allowed. */
static int look_without_proc(void) {
    int status;
    if (unshare(CLONE_NEWPID) != 0) return 99;
    const pid_t pid = fork();
    if (pid == 0) {
        struct shmt_life mine;
        shmt_life_mine(&mine);
        _exit(mine.process != 0 ? 1 : shmt_life_look(&mine) != SHMT_LIFE_UNKNOWN ? 2 : shmt_process_state(getpid()) ? 3 : 0);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void a_proc_of_another_namespace_says_nothing(void **state) {
    int status;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) _exit(look_without_proc());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 99) SKIP("no right to make a PID namespace");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void who_lives_in_another_thread_lives(void **state) {
    struct shmt_life life;
    (void)state;
    const pid_t pid = start(&life, end_first_thread);
    while (shmt_process_state(pid) != 'Z') nap();
    assert_int_equal(shmt_life_look(&life), SHMT_LIFE_GOES_ON);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_lives_is_found),
        cmocka_unit_test(who_has_ended_is_gone),
        cmocka_unit_test(a_number_that_was_given_again_is_another_process),
        cmocka_unit_test(of_another_namespace_nothing_is_known),
        cmocka_unit_test(where_a_pidfd_is_refused_the_number_does),
        cmocka_unit_test(a_proc_of_another_namespace_says_nothing),
        cmocka_unit_test(who_lives_in_another_thread_lives),
    };
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
