/* Tests of runtime: teams of processes and of threads, and starts that fail. Deaths and what workers inherit have tests of
 * their own. */
#include "team_help.h"

/* ---- both kinds ---- */

static void every_body_runs_once_with_its_rank(const struct shmt_team_kind *kind, uint32_t n) {
    struct shmt_error e;
    assert_int_equal(run(kind, n, enter, &e), 0);
    assert_int_equal(e.status, 0);
    for (uint32_t rank = 0; rank < n; rank++) assert_int_equal(shared->entered[rank], 1);
    if (n < N_MAX) assert_int_equal(shared->entered[n], 0);
    assert_int_equal(shared->abort, 0);
}

static void every_process_runs_its_body_once(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(&SHMT_TEAM_PROCESSES, 4);
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_not_equal(shared->pid[rank], getpid());
        for (uint32_t other = 0; other < rank; other++) assert_int_not_equal(shared->pid[rank], shared->pid[other]);
    }
}

static void every_thread_runs_its_body_once(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(&SHMT_TEAM_THREADS, 4);
    for (uint32_t rank = 0; rank < 4; rank++) assert_int_equal(shared->pid[rank], getpid());
}

static void two_hundred_workers_run(void **state) {
    (void)state;
    every_body_runs_once_with_its_rank(&SHMT_TEAM_PROCESSES, 200);
    memset(shared, 0, sizeof *shared);
    every_body_runs_once_with_its_rank(&SHMT_TEAM_THREADS, 200);
}

static void impossible_numbers_are_refused(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        assert_int_equal(run(KINDS[kind], 0, enter, &e), SHMTRAIN_E_USAGE);
        assert_string_equal(e.text, "cannot start 0 workers for testing: ask for 1 to 4096");
        assert_int_equal(run(KINDS[kind], SHMT_TEAM_MAX + 1, enter, &e), SHMTRAIN_E_USAGE);
    }
}

static void a_workers_sentence_reaches_the_caller(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        store_relaxed(&shared->abort, 0);
        assert_int_equal(run(KINDS[kind], 3, fail_second, &e), SHMTRAIN_E_DATA);
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
        assert_int_equal(run(KINDS[kind], 3, fail_without_a_word, &e), SHMTRAIN_E_NUMBERS);
        assert_string_equal(e.text, "worker 1 failed while testing with SHMTRAIN_E_NUMBERS, without a message");
        store_relaxed(&shared->abort, 0);
        assert_int_equal(run(KINDS[kind], 3, return_a_number, &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, "worker 1 returned 7 while testing"));
    }
}

static void stopping_is_no_failure(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        assert_int_equal(run(KINDS[kind], 3, all_stopped, &e), SHMTRAIN_E_STOPPED);
        assert_string_equal(e.text, "stopped at step 7");
        assert_int_equal(shared->abort, 0);
    }
}

static void an_abort_word_that_is_set_stays(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct shmt_error e;
        store_relaxed(&shared->abort, 99);
        assert_int_equal(run(KINDS[kind], 3, fail_second, &e), SHMTRAIN_E_DATA);
        assert_int_equal(shared->abort, 99);
    }
}

static void on_abort_is_called_once_after_the_abort_word(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        memset(shared, 0, sizeof *shared);
        struct shmt_team_spec spec = spec_of(KINDS[kind], 3, fail_second);
        struct shmt_error e = {0};
        spec.arg = shared;
        spec.on_abort = note_abort;
        assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DATA);
        assert_int_equal(shared->told, 1);
        assert_int_equal(shared->number, 2);
        if (KINDS[kind] == &SHMT_TEAM_THREADS) assert_int_equal(shared->told_by, getpid());
        if (KINDS[kind] == &SHMT_TEAM_PROCESSES) assert_int_not_equal(shared->told_by, getpid());
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
        const struct shmt_team_spec spec = spec_of(KINDS[kind], 2, notify_then_wait);
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
        const struct shmt_team_spec spec = spec_of(KINDS[kind], 1, notify_a_lot);
        struct shmt_team *team;
        assert_int_equal(shmt_team_start(&spec, &team, NULL), 0);
        while (!load_acquire(&team->ledger->end[0].returned)) sleep_ms(1);
        assert_int_equal(shmt_team_finish(team, NULL), 0);
    }
}

BODY(lanes) {
    UNUSED;
    const struct shmt_team_spec spec = spec_of(&SHMT_TEAM_THREADS, 3, rank == 1 ? fail_second : enter);
    return shmt_team_run(&spec, e);
}

static void a_process_may_run_a_team_of_threads(void **state) {
    (void)state;
    struct shmt_error e;
    assert_int_equal(run(&SHMT_TEAM_PROCESSES, 3, lanes, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "line 1 is bad");
    assert_int_equal(shared->entered[2], 2);
}

/* ---- starts that fail ---- */

static void a_fork_that_fails_undoes_the_start(void **state) {
    (void)state;
    for (int32_t left = 0; left < 4; left++) {
        struct shmt_error e;
        fake.fork_left = left;
        assert_int_equal(run(&SHMT_TEAM_PROCESSES, 3, hang, &e), SHMTRAIN_E_SYSTEM);
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
    assert_int_equal(run(&SHMT_TEAM_THREADS, 4, enter, &e), SHMTRAIN_E_SYSTEM);
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
        if (run(&SHMT_TEAM_PROCESSES, 80, fail_second, &e) != SHMTRAIN_E_DATA) _exit(3);
        store_relaxed(&shared->abort, 0);
        _exit(run(&SHMT_TEAM_PROCESSES, 80, enter, &e) == 0 ? 0 : 4);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: the limit on open files cannot be changed here (valgrind keeps it)\n");
        skip();
    }
    assert_int_equal(status, 0);
}

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
        TEST(on_abort_is_called_once_after_the_abort_word),
        TEST(the_descriptor_is_readable_upon_reports_and_at_the_end),
        TEST(reports_that_nobody_reads_hold_up_nobody),
        TEST(a_process_may_run_a_team_of_threads),
        TEST(a_fork_that_fails_undoes_the_start),
        TEST(a_thread_that_fails_to_start_lets_no_body_begin),
        TEST(workers_may_be_more_than_open_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
