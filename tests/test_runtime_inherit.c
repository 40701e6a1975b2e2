/* Tests of runtime: signals, descriptors, names and unwritten output, which workers inherit or must not. */
#include "team_help.h"

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
    start(&SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
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
        const bool is_teams = number == SIGBUS || number == SIGCONT; /* of mapped files that became shorter or changed */
        if (ignored != must_be || (!ignored && !is_teams && action.sa_handler != SIG_DFL)) found = (uint32_t)number;
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
        const int rc = run(&SHMT_TEAM_PROCESSES, 1, report_handlers, &e);
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
    assert_int_equal(run(&SHMT_TEAM_THREADS, 1, report_mask, &e), 0);
    assert_int_equal(shared->number, 1);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGINT), 0);
}

static void an_application_that_ignores_its_children_gets_its_answer(void **state) {
    (void)state;
    struct shmt_error e;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    assert_int_equal(run(&SHMT_TEAM_PROCESSES, 2, enter, &e), 0);
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
    start(&SHMT_TEAM_PROCESSES, 1, wait_for_go, &team);
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
    start(&SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
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
    assert_int_equal(run(&SHMT_TEAM_PROCESSES, 2, enter, &e), 0);
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
    assert_int_equal(run(&SHMT_TEAM_PROCESSES, 1, leave_a_stranger, &e), 0);
    await(&shared->told);
    store_release(&shared->go, 1);
    await(&shared->entered[7]);
    while (waitpid(-1, NULL, 0) > 0) continue;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
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
