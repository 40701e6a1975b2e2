/* The real program from outside: workers that are stopped, or long at one item. Who stands still is told of once, with what
 * holds it up, and once more when it goes on; what --on-stall asks for is done. No assertion is about how long anything
 * takes. */
#include "run_program.h"
#include "sanitized.h"

#include <signal.h>

#define DATA    "builtin:sparse:examples=20000,valid=100,features=2000,nonzeros=20"
#define ENDLESS "-e", "100000"
#define SOON    "--stall-timeout", "500ms"

static void send_to(pid_t pid, int number) { assert_int_equal(kill(pid, number), 0); }

static unsigned count(const char *text, const char *words) {
    unsigned n = 0;
    for (; (text = strstr(text, words)); text++) n++;
    return n;
}

/* "worker 1 (process 4711) has made no progress for " */
static const char *stall_of(unsigned rank, pid_t pid) {
    static char words[80];
    snprintf(words, sizeof words, "shmtrain: worker %u (process %d) has made no progress for ", rank, pid);
    return words;
}

static const char *end_of(unsigned rank, pid_t pid) {
    static char words[80];
    snprintf(words, sizeof words, "shmtrain: worker %u (process %d) continues after ", rank, pid);
    return words;
}

static void end_by_signal(struct program *p) {
    send_to(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(p, 130);
}

static void a_stopped_worker_is_told_of_in_each_mode_and_the_run_continues_with_it(void **state) {
    const char *const modes[] = {"async", "sync", "ssp:2", "local"};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        char remedy[64];
        struct program *p = START("-w", "2", "--mode", modes[m], SOON, ENDLESS, "--json", DATA);
        program_wait_for(p, ERR, "\n    1 ");
        const pid_t pid = program_worker(p, 1);
        send_to(pid, SIGSTOP);
        program_wait_for(p, ERR, stall_of(1, pid));
        program_wait_for(p, ERR, "stopped by a signal (state T); ");
        snprintf(remedy, sizeof remedy, "kill -CONT %d lets it continue\n", pid);
        program_wait_for(p, ERR, remedy);
        usleep(1200000); /* twice the time: it is told of once */
        send_to(pid, SIGCONT);
        program_wait_for(p, ERR, end_of(1, pid));
        end_by_signal(p);
        assert_int_equal(count(p->text[ERR], stall_of(1, pid)), 1);
        json_t *o = program_json(p);
        assert_true(json_integer_value(json_object_get(o, "stalls")) >= 1);
        json_decref(o);
    }
}

/* In sync all wait for whoever is stopped, and are not told of for that: they are only waiting. */
static void who_waits_for_it_is_counted_and_does_not_stand_still(void **state) {
    (void)state;
    struct program *p = START("-w", "3", "--mode", "sync", SOON, ENDLESS, DATA);
    program_wait_for_epoch(p);
    const pid_t pid = program_worker(p, 2);
    send_to(pid, SIGSTOP);
    program_wait_for(p, ERR, "2 others wait: kill -CONT");
    usleep(1500000);
    send_to(pid, SIGCONT);
    program_wait_for(p, ERR, end_of(2, pid));
    end_by_signal(p);
    assert_int_equal(count(p->text[ERR], "shmtrain: worker 0"), 0);
    assert_int_equal(count(p->text[ERR], "shmtrain: worker 1"), 0);
}

/* Who waits for a row lock is at work: but not for one who is stopped, perhaps with that lock. */
static void who_may_be_waiting_for_a_lock_of_it_does_not_stand_still(void **state) {
    (void)state;
    for (unsigned rank = 0; rank < 3; rank++) {
        struct program *p = START("-w", "3", "--mode", "hogwild", "--write", "locked", SOON, ENDLESS,
                                  "builtin:sparse:examples=20000,valid=100,features=16,nonzeros=4");
        program_wait_for_epoch(p);
        const pid_t pid = program_worker(p, rank);
        send_to(pid, SIGSTOP);
        program_wait_for(p, ERR, stall_of(rank, pid));
        usleep(1500000); /* three times what it takes to be told of */
        send_to(pid, SIGCONT);
        program_wait_for(p, ERR, end_of(rank, pid));
        end_by_signal(p);
        assert_int_equal(count(p->text[ERR], "has made no progress"), 1);
    }
}

/* What it has in hand is known where items are dealt. An item is made long by --slow, which sleeps. Of two workers one might
 * come too late to get any. */
static void a_long_item_is_told_from_a_stop_and_named(void **state) {
    (void)state;
    struct program *p = START("-w", "1", "--mode", "hogwild", SOON, "-e", "1", "--steps", "2", "--slow", "0:+2000ms", DATA);
    program_wait_for(p, ERR, stall_of(0, program_worker(p, 0)));
    program_finish(p);
    program_assert_status(p, 0);
    assert_int_equal(count(p->text[ERR], ", in item "), count(p->text[ERR], "has made no progress"));
    assert_true(count(p->text[ERR], " of epoch 1: it ") >= 1); /* what it does at that moment */
    assert_true(count(p->text[ERR], "use a longer --stall-timeout, or smaller items (--item)") >= 1);
    assert_int_equal(count(p->text[ERR], "state T"), 0);
}

static void of_threads_the_progress_tells(void **state) {
    (void)state;
    struct program *p = START("-w", "1", "--spawn", "threads", "--mode", "hogwild", SOON, "-e", "1", "--steps", "2", "--slow",
                              "0:+2000ms", DATA);
    program_finish(p);
    program_assert_status(p, 0);
    assert_true(count(p->text[ERR], "shmtrain: worker 0 has made no progress for ") >= 1);
    assert_int_equal(count(p->text[ERR], "(state"), 0);
}

static void a_stopped_worker_is_killed_where_that_is_asked_for(void **state) {
    (void)state;
    struct program *p = START("-w", "2", SOON, "--on-stall", "kill", "--on-death", "abort", ENDLESS, DATA);
    program_wait_for_epoch(p);
    const pid_t pid = program_worker(p, 1);
    char died[96];
    send_to(pid, SIGSTOP);
    program_finish(p);
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[ERR], stall_of(1, pid)));
    assert_non_null(strstr(p->text[ERR], ": it is killed (--on-stall kill)\n"));
    snprintf(died, sizeof died, "\nshmtrain: worker 1 (process %d) was killed by signal 9 (Killed) while training", pid);
    assert_non_null(strstr(p->text[ERR], died));
}

/* Killed, started again where it stood: in sync the bits are those of a run that nobody has touched. */
static void and_is_started_again_where_that_is_not_forbidden(void **state) {
    char reference[17], hash[40];
    (void)state;
#define OF_SOME "--mode", "sync", "-w", "2", "-e", SANITIZED ? "25" : "100", DATA
    HASH(reference, OF_SOME);
    struct program *p = START(SOON, "--on-stall", "kill", OF_SOME);
    program_wait_for_epoch(p);
    const pid_t pid = program_worker(p, 1);
    send_to(pid, SIGSTOP);
    program_finish(p);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], stall_of(1, pid)));
    assert_non_null(strstr(p->text[ERR], ": it is killed (--on-stall kill)\n"));
    assert_non_null(strstr(p->text[ERR], ": it is restarted (1 of 3)\n"));
    snprintf(hash, sizeof hash, "xxh64 %s", reference);
    assert_non_null(strstr(p->text[OUT], hash));
}

static void or_the_run_ends_with_a_sentence(void **state) {
    const char *const modes[] = {"async", "sync"};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct program *p = START("-w", "2", "--mode", modes[m], SOON, "--on-stall", "abort", ENDLESS, "-o", "m.model", DATA);
        program_wait_for_epoch(p);
        const pid_t pid = program_worker(p, 0);
        send_to(pid, SIGSTOP);
        program_assert_gone_within(p, 30);
        assert_int_equal(p->status, 1);
        assert_int_equal(strncmp(p->text[ERR], stall_of(0, pid), strlen(stall_of(0, pid))), 0);
        assert_non_null(strstr(p->text[ERR], ": the run ends (--on-stall abort)\n"));
        assert_int_not_equal(access("m.model", F_OK), 0);
    }
}

/* Nobody comes to the consistent point at which the limit would end the run. */
static void a_time_limit_ends_a_run_in_which_one_stands_still(void **state) {
    (void)state;
    struct program *p = START("-w", "2", "--mode", "sync", "--stall-timeout", "none", "--time-limit", "2", ENDLESS, DATA);
    program_wait_for_epoch(p);
    const pid_t pid = program_worker(p, 1);
    send_to(pid, SIGSTOP);
    program_assert_gone_within(p, 30);
    assert_int_equal(p->status, 1);
    assert_int_equal(strncmp(p->text[ERR], stall_of(1, pid), strlen(stall_of(1, pid))), 0);
    assert_non_null(strstr(p->text[ERR], "; 1 other waits: the time limit has passed, so the run ends (--time-limit)\n"));
}

static void none_and_0_look_at_nobody(void **state) {
    const char *const offs[] = {"none", "0"};
    (void)state;
    for (size_t i = 0; i < sizeof offs / sizeof *offs; i++) {
        struct program *p = START("-w", "2", "--stall-timeout", offs[i], ENDLESS, DATA);
        program_wait_for_epoch(p);
        const pid_t pid = program_worker(p, 1);
        send_to(pid, SIGSTOP);
        usleep(600000);
        send_to(pid, SIGCONT);
        end_by_signal(p);
        assert_int_equal(count(p->text[ERR], "has made no progress"), 0);
    }
}

/* The whole group, as Ctrl-Z stops it: nobody looked meanwhile, so nobody stood still. */
static void a_run_that_was_stopped_as_a_whole_tells_of_nobody(void **state) {
    (void)state;
    struct program *p = START("-w", "2", "--mode", "sync", "--stall-timeout", "2s", ENDLESS, DATA);
    program_wait_for_epoch(p);
    send_to(-p->pid, SIGSTOP);
    usleep(5000000);
    send_to(-p->pid, SIGCONT);
    usleep(500000);
    end_by_signal(p);
    assert_int_equal(count(p->text[ERR], "has made no progress"), 0);
}

static void metrics_say_who_stands_still(void **state) {
    char *line = NULL;
    size_t bytes = 0;
    bool stalled = false;
    (void)state;
    struct program *p = START("-w", "2", SOON, "--metrics", "m.json", ENDLESS, DATA);
    program_wait_for_epoch(p);
    const pid_t pid = program_worker(p, 1);
    send_to(pid, SIGSTOP);
    program_wait_for(p, ERR, stall_of(1, pid));
    usleep(500000); /* some lines of it */
    send_to(pid, SIGCONT);
    program_wait_for(p, ERR, end_of(1, pid));
    end_by_signal(p);
    FILE *f = fopen("m.json", "r");
    assert_non_null(f);
    while (getline(&line, &bytes, f) > 0) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        stalled |= json_is_true(json_object_get(json_array_get(json_object_get(o, "per_worker"), 1), "stalled"));
        assert_false(json_is_true(json_object_get(json_array_get(json_object_get(o, "per_worker"), 0), "stalled")));
        json_decref(o);
    }
    fclose(f);
    free(line);
    assert_true(stalled);
}

static void what_cannot_be_is_refused(void **state) {
    static const struct refusal LIST[] = {
        {2,
         "--stall-timeout 5parsecs: expected a time, as in 30s, 500ms or 2m (a number alone: seconds), or none",
         {"--stall-timeout", "5parsecs"}},
        {2, "--stall-timeout -1s: expected a time", {"--stall-timeout", "-1s"}},
        {2, "--stall-timeout 1e9s: expected a time", {"--stall-timeout", "1e9s"}},
        {2, "--on-stall wait: expected one of report|kill|abort", {"--on-stall", "wait"}},
    };
    (void)state;
    ASSERT_ALL_REFUSED(LIST);
    struct program *p = RUN("-w", "1", "-e", "1", "--stall-timeout", "none", "--on-stall", "kill", DATA);
    assert_string_equal(p->text[ERR], "shmtrain: --on-stall has no effect with --stall-timeout none\n");
    p = RUN("-w", "1", "-e", "1", "--spawn", "threads", "--on-stall", "kill", DATA);
    assert_string_equal(p->text[ERR],
                        "shmtrain: workers are threads here and cannot be killed: --on-stall kill has no effect\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_stopped_worker_is_told_of_in_each_mode_and_the_run_continues_with_it),
        PROGRAM_TEST(who_waits_for_it_is_counted_and_does_not_stand_still),
        PROGRAM_TEST(who_may_be_waiting_for_a_lock_of_it_does_not_stand_still),
        PROGRAM_TEST(a_long_item_is_told_from_a_stop_and_named),
        PROGRAM_TEST(of_threads_the_progress_tells),
        PROGRAM_TEST(a_stopped_worker_is_killed_where_that_is_asked_for),
        PROGRAM_TEST(and_is_started_again_where_that_is_not_forbidden),
        PROGRAM_TEST(or_the_run_ends_with_a_sentence),
        PROGRAM_TEST(a_time_limit_ends_a_run_in_which_one_stands_still),
        PROGRAM_TEST(none_and_0_look_at_nobody),
        PROGRAM_TEST(a_run_that_was_stopped_as_a_whole_tells_of_nobody),
        PROGRAM_TEST(metrics_say_who_stands_still),
        PROGRAM_TEST(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("stalls", tests, program_make_folder, program_remove_folder);
}
