/* Tests of runtime: the deaths of workers, of the supervisor and of the application, and what they leave behind. */
#include "team_help.h"

/* ---- deaths of workers ---- */

static void a_death_is_noticed_and_named(void **state) {
    (void)state;
    for (fake.no_pidfds = 0; fake.no_pidfds < 2; fake.no_pidfds++) {
        assert_death(die_second_by_kill, "worker 1 (process ", ") was killed by signal 9 (Killed) while testing");
        assert_death(die_second_by_fault, "worker 1 (process ", ") was killed by signal 11 (Segmentation fault) while testing");
        assert_death(exit_second_with_3, "worker 1 (process ", ") ended with exit status 3 while testing");
        assert_death(exit_second_with_0, "worker 1 (process ", ") called exit(0) while testing, without finishing");
    }
}

static void workers_are_called_by_the_numbers_that_they_have(void **state) {
    const uint32_t number[] = {4, 17, 5};
    (void)state;
    shmt_team_body *const bodies[] = {die_second_by_kill, exit_second_with_3, exit_second_with_0};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct shmt_team_spec spec = spec_of(&SHMT_TEAM_PROCESSES, 3, bodies[i]);
        struct shmt_error e = {0};
        store_relaxed(&shared->abort, 0);
        spec.number = number;
        assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DIED);
        assert_memory_equal(e.text, "worker 17 (process ", 19);
    }
}

static void lack_of_memory_is_named_when_the_kernel_counted_it(void **state) {
    (void)state;
    fake.oom_step = 1;
    assert_death(die_second_by_kill, "worker 1 (process ",
                 ") was killed by signal 9 (Killed) while testing, perhaps because memory ran out: the kernel killed a process "
                 "for that reason");
    assert_death(die_second_by_fault, "worker 1 (process ", ") was killed by signal 11 (Segmentation fault) while testing");
    (void)__real_shmt_oom_kills(); /* whatever it finds here */
}

static void who_does_not_leave_is_killed_after_the_grace(void **state) {
    (void)state;
    for (uint32_t grace_ms = 0; grace_ms <= 50; grace_ms += 50) {
        struct shmt_team_spec spec = spec_of(&SHMT_TEAM_PROCESSES, 3, hang_but_second);
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
    start(&SHMT_TEAM_PROCESSES, 2, wait_for_go, &team);
    const pid_t pids[] = {shmt_team_pid(team, 0), shmt_team_pid(team, 1), shmt_team_pid(team, SHMT_TEAM_SUPERVISOR)};
    for (int i = 0; i < 3; i++) assert_int_equal(kill(pids[i], SIGTSTP), 0);
    sleep_ms(50);
    assert_int_equal(shmt_team_step(team), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(kill(pids[i], SIGCONT), 0);
    store_release(&shared->go, 1); /* last: in an orphaned process group nobody has stopped, and who may go is gone */
    assert_int_equal(shmt_team_finish(team, NULL), 0);
}

static void killing_a_team_ends_it_at_once(void **state) {
    (void)state;
    struct shmt_team *team;
    struct shmt_error e = {0};
    start(&SHMT_TEAM_PROCESSES, 3, hang, &team);
    shmt_team_kill(team);
    shmt_team_kill(team);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_STOPPED);
    assert_string_equal(e.text, "stopped while testing");
}

BODY(wait_for_abort) {
    UNUSED;
    store_release(&shared->entered[rank], 1);
    return until_abort();
}

/* A number that another process has by now, or a later life of the worker, is nobody's who was meant. */
static void one_worker_is_killed_by_its_pidfd_and_nobody_else(void **state) {
    (void)state;
    for (fake.no_pidfds = 0; fake.no_pidfds < 2; fake.no_pidfds++) {
        struct shmt_team *team;
        struct shmt_error e = {0};
        char begin[64];
        store_relaxed(&shared->abort, 0);
        store_relaxed(&shared->by_pidfd, 0);
        for (uint32_t rank = 0; rank < 3; rank++) store_relaxed(&shared->entered[rank], 0);
        start(&SHMT_TEAM_PROCESSES, 3, wait_for_abort, &team);
        shmt_team_kill_worker(team, 1, shmt_team_pid(team, 2));
        shmt_team_kill_worker(team, 1, 0);
        shmt_team_kill_worker(team, 3, shmt_team_pid(team, 2));
        sleep_ms(50);
        assert_int_equal(shared->abort, 0);
        snprintf(begin, sizeof begin, "worker 1 (process %d) was killed by signal 9 (Killed)", (int)shmt_team_pid(team, 1));
        assert_int_equal(kill(shmt_team_pid(team, 1), SIGSTOP), 0);
        assert_int_equal(shmt_team_kill_worker(team, 1, shmt_team_pid(team, 1)), 0);
        assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_DIED);
        assert_memory_equal(e.text, begin, strlen(begin));
#ifdef SYS_pidfd_send_signal
        assert_int_equal(load_relaxed(&shared->by_pidfd), fake.no_pidfds ? 0 : 1);
#endif
    }
}

static void killing_a_team_that_has_ended_changes_nothing(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_team *team;
        start(KINDS[kind], 2, enter, &team);
        struct pollfd polled = {.fd = shmt_team_fd(team), .events = POLLIN};
        while (!shmt_team_step(team)) poll(&polled, 1, -1);
        shmt_team_kill(team);
        assert_int_equal(shmt_team_finish(team, NULL), 0);
        assert_int_equal(shared->abort, 0);
    }
}

static void killing_threads_sets_the_abort_word(void **state) {
    (void)state;
    struct shmt_team_spec spec = spec_of(&SHMT_TEAM_THREADS, 2, wait_for_abort);
    struct shmt_team *team;
    spec.arg = shared;
    spec.on_abort = note_abort;
    assert_int_equal(shmt_team_start(&spec, &team, NULL), 0);
    assert_int_equal(shmt_team_kill_worker(team, 0, getpid()), -1); /* one alone cannot be killed */
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
        const struct shmt_team_spec spec = spec_of(&SHMT_TEAM_PROCESSES, 3, hang);
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
    start(&SHMT_TEAM_PROCESSES, 3, hang, &team);
    const pid_t pids[] = {shared->pid[0], shared->pid[1], shared->pid[2]};
    assert_int_equal(kill(shmt_team_pid(team, SHMT_TEAM_SUPERVISOR), SIGKILL), 0);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_DIED);
    assert_string_equal(e.text,
                        "the workers' supervisor was killed by signal 9 (Killed) while testing, and the workers with it");
    assert_all_gone(pids, 3);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void *start_in_thread(void *out) {
    start(&SHMT_TEAM_PROCESSES, 2, wait_for_go, out);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_death_is_noticed_and_named),
        TEST(workers_are_called_by_the_numbers_that_they_have),
        TEST(lack_of_memory_is_named_when_the_kernel_counted_it),
        TEST(who_does_not_leave_is_killed_after_the_grace),
        TEST(workers_that_are_stopped_and_continued_go_on),
        TEST(killing_a_team_ends_it_at_once),
        TEST(one_worker_is_killed_by_its_pidfd_and_nobody_else),
        TEST(killing_a_team_that_has_ended_changes_nothing),
        TEST(killing_threads_sets_the_abort_word),
        TEST(all_end_when_the_caller_is_killed),
        TEST(all_end_when_the_caller_exits_without_finishing),
        TEST(all_end_when_the_supervisor_is_killed),
        TEST(the_thread_that_started_a_team_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
