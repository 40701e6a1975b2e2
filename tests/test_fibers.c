/* Fibers: clocks, waits and wakes in virtual time; what work takes there; and the same seed gives the same run. */
#include "fibers_help.h"

#include <math.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/sanitizer.h"
#include "watching/stage_times.h"

/* ---- time ---- */

static void sleep_the_longer_the_lower(void *arg, uint32_t i) {
    (void)arg;
    shmt_host()->sleep_until(BEGIN + (1000 - i) * 1000);
    note(i);
}

static void who_sleeps_less_goes_on_first(void **state) {
    (void)state;
    run_all(1000, 1, "", sleep_the_longer_the_lower);
    for (uint32_t k = 0; k < 1000; k++) {
        assert_int_equal(g_order[k], 999 - k);
        assert_true(g_at[k] >= BEGIN + (k + 1) * 1000 && g_at[k] < BEGIN + (k + 2) * 1000);
    }
}

static void look_and_offer(void *arg, uint32_t i) {
    (void)arg;
    uint64_t before = 0;
    for (int k = 0; k < 100; k++) {
        const uint64_t now = shmt_now_ns();
        assert_true(now > before); /* else who spins until a time would spin for ever */
        before = now;
        if (k % 3 == 0) shmt_host()->yield();
    }
    note(i);
}

static void a_look_at_the_clock_takes_time(void **state) {
    (void)state;
    run_all(3, 1, "look=20ns", look_and_offer);
    assert_int_equal(g_n, 3);
    assert_true(g_at[2] >= BEGIN + 134 * 20);
}

static void note_thrice(void *arg, uint32_t i) {
    (void)arg;
    for (int k = 0; k < 3; k++) {
        note(i);
        shmt_sleep_ns(1000);
    }
}

static void equal_times_are_in_an_order_that_the_seed_chooses(void **state) {
    uint32_t first[MOST], differ = 0;
    (void)state;
    run_all(16, 7, "", note_thrice);
    memcpy(first, g_order, sizeof first);
    run_all(16, 7, "", note_thrice);
    assert_int_equal(g_n, 48);
    assert_memory_equal(first, g_order, 48 * sizeof *first);
    for (uint64_t seed = 8; seed < 12; seed++) {
        run_all(16, seed, "", note_thrice);
        differ += memcmp(first, g_order, 48 * sizeof *first) != 0;
    }
    assert_int_equal(differ, 4);
}

/* ---- waits ---- */

static void wait_or_wake(void *arg, uint32_t i) {
    (void)arg;
    if (i == 0) {
        shmt_host()->sleep_until(BEGIN + 500000);
        store_relaxed(&g_word, 1);
        shmt_host()->wake(&g_word);
        return;
    }
    while (load_relaxed(&g_word) == 0) shmt_host()->wait(&g_word, 0, i == 1 ? 200000 : 100000000);
    note(i);
}

static void all_who_wait_for_a_word_are_woken(void **state) {
    (void)state;
    run_all(300, 3, "", wait_or_wake);
    assert_int_equal(g_n, 299);
    for (uint32_t k = 0; k < g_n; k++) assert_true(g_at[k] >= BEGIN + 500000 && g_at[k] < BEGIN + 600000);
}

static void wait_in_vain(void *arg, uint32_t i) {
    static _Atomic uint32_t never;
    (void)arg;
    shmt_host()->wait(&never, 1, UINT64_C(1000000000)); /* it is another one: nobody would wake it */
    if (i == 0) note(i);
    shmt_host()->wait(&never, 0, 1000000);
    note(i);
}

static void a_wait_ends_when_its_time_is_over_or_the_word_is_another(void **state) {
    (void)state;
    run_all(2, 1, "", wait_in_vain);
    assert_int_equal(g_n, 3);
    assert_true(g_at[0] < BEGIN + 10000);
    for (int k = 1; k < 3; k++) assert_true(g_at[k] >= BEGIN + 1000000 && g_at[k] < BEGIN + 1100000);
}

static void *look_at_the_machine(void *arg) {
    const uint64_t before = shmt_machine_ns(), now = shmt_now_ns(), after = shmt_machine_ns();
    *(bool *)arg = before <= now && now <= after;
    return NULL;
}

static void ask_in_another_thread(void *arg, uint32_t i) {
    pthread_t thread;
    bool is_the_machine = false;
    (void)arg, (void)i;
    assert_int_equal(pthread_create(&thread, NULL, look_at_the_machine, &is_the_machine), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_the_machine);
    assert_true(shmt_now_ns() < BEGIN + 10000);
}

static void other_threads_are_answered_by_the_machine(void **state) {
    (void)state;
    run_all(1, 1, "", ask_in_another_thread);
}

/* ---- work ---- */

static void work_an_item(void *arg, uint32_t i) {
    (void)arg;
    shmt_spend(SHMT_SPENT_ITEM, 0.5);
    shmt_spend(SHMT_SPENT_PULLING, 2);
    shmt_spend(SHMT_SPENT_COMPUTING, 0.25);
    note(i);
    shmt_spend(SHMT_SPENT_COMPUTING, 1); /* what is left */
    shmt_spend(SHMT_SPENT_COMPUTING, 1); /* nothing is */
    note(i);
    shmt_spend(SHMT_SPENT_PUSHING, 1);
    note(i);
}

static void work_takes_what_the_costs_say(void **state) {
    static const uint64_t WANT[] = {20000 + 125000, 20000 + 500000, 20000 + 500000 + 5000};
    (void)state;
    run_all(2, 1, "compute=1ms,pull=10us,push=5us,straggler=1:3x,look=1ns", work_an_item);
    int of_first = 0, of_second = 0;
    for (uint32_t k = 0; k < 6; k++) {
        const uint64_t slower = g_order[k] ? 2 * (WANT[g_order[k] ? of_second : of_first] - 20000) : 0;
        uint64_t want = g_order[k] ? WANT[of_second++] : WANT[of_first++];
        if (g_order[k]) want += of_second == 3 ? UINT64_C(2) * 500000 : slower;
        assert_in_range(g_at[k] - BEGIN, want, want + 100);
    }
}

static void work_many_items(void *arg, uint32_t i) {
    (void)arg;
    for (int k = 0; k < 1000; k++) {
        shmt_spend(SHMT_SPENT_ITEM, 1);
        shmt_spend(SHMT_SPENT_COMPUTING, 1);
    }
    note(i);
}

/* One in 4 ms of computing on average; where an item takes longer than that, several in one. */
static void hiccups_come_as_often_and_take_as_long_as_they_say(void **state) {
    (void)state;
    run_all(1, 1, "compute=1ms,hiccup=4ms:100us", work_many_items);
    assert_in_range(g_at[0] - BEGIN, UINT64_C(1000000000) + 200 * 100000, UINT64_C(1000000000) + 300 * 100000);
    run_all(1, 1, "compute=10ms,hiccup=4ms:100us", work_many_items);
    assert_in_range(g_at[0] - BEGIN, UINT64_C(10000000000) + 2400 * 100000, UINT64_C(10000000000) + 2600 * 100000);
}

/* What may be typed, and what is said of the rest. */
static void costs_are_times_or_distributions(void **state) {
    static const char *const WELL[] = {"",
                                       "compute=10ms",
                                       "compute=0.5us",
                                       "pull=uniform:1us:2us",
                                       "push=exponential:3ns",
                                       "compute=lognormal:10ms:0.3,straggler=3:5x,straggler=4:1.5x,look=1ms",
                                       "compute=0s",
                                       "pause=7@2s:1s,pause=7@0s:1ns,death=2@5s,death=0@0s",
                                       "line=80ns,bandwidth=20GB/s,cache=1MiB,nodes=2,far=1.7x,race=exponential:100ns",
                                       "nodes=64,bandwidth=1.5TB/s",
                                       "cache=64KiB,line=0.5us",
                                       "example=lognormal:80ns:0.2,aggregate=3us,update=uniform:1us:2us",
                                       "line=80ns,next=0ns",
                                       "hiccup=4ms:30us",
                                       "hiccup=1us:exponential:30ns",
                                       "measured",
                                       "measured,nodes=2,straggler=1:3x",
                                       "line=80ns,far=3x"};
    static const struct {
        const char *text, *said;
    } ILL[] = {{"compute=10", "--sim \"compute=10\": expected a time with its unit, as 10ms"},
               {"compute=", "expected a time"},
               {"compute",
                "--sim \"compute\": expected compute=, example=, item=, pull=, push=, aggregate=, update=, look=, hiccup=, "
                "straggler=, pause=, death=, line=, next=, bandwidth=, cache=, nodes=, far=, race= or measured"},
               {"measured=1", "--sim \"measured=1\": expected compute=, example="},
               {"compute=1us,example=1ns", "--sim: compute= is an item's and example= an example's: name one of them"},
               {"next=5ns", "--sim: next= is for further lines of a call: name the first one's time, too, as line=80ns"},
               {"think=1ms", "--sim \"think=1ms\": expected compute="},
               {"compute=1ms,", "--sim \"\": expected compute="},
               {"compute=-1ms", "expected a time"},
               {"compute=1e3ms", "expected a time"},
               {"compute=100000000s", "expected a time"},
               {"compute=lognormal:1ms", "expected a time"},
               {"compute=lognormal:1ms:9", "a sigma of 0 to 5"},
               {"compute=lognormal:1ms:x", "a sigma of 0 to 5"},
               {"pull=uniform:2us:1us", "the smaller time before the larger one"},
               {"push=exponential:1us:2", "expected a time"},
               {"push=normal:1us:2", "expected a time"},
               {"hiccup=4ms", "as hiccup=4ms:30us"},
               {"hiccup=0ns:1us", "as hiccup=4ms:30us"},
               {"hiccup=4ms:normal:1us", "lognormal:MEDIAN:SIGMA"},
               {"straggler=3", "as straggler=3:5x"},
               {"straggler=3:5", "as straggler=3:5x"},
               {"straggler=x:5x", "as straggler=3:5x"},
               {"straggler=3:0.5x", "as straggler=3:5x"},
               {"death=2", "as death=2@5s (at most 16 of them)"},
               {"death=2@5", "as death=2@5s"},
               {"death=@5s", "as death=2@5s"},
               {"death=2@5s:1s", "as death=2@5s"},
               {"pause=7@2s", "as pause=7@2s:1s"},
               {"pause=7@2s:0s", "as pause=7@2s:1s"},
               {"pause=7:1s@2s", "as pause=7@2s:1s"},
               {"pause=x@2s:1s", "as pause=7@2s:1s"},
               {"look=0ns", "expected a time of 1ns to 1ms"},
               {"look=2s", "expected a time of 1ns to 1ms"},
               {"line=80", "--sim \"line=80\": expected a time of at most 1ms with its unit, as 80ns"},
               {"line=lognormal:80ns:0.3", "expected a time of at most 1ms"},
               {"line=2ms", "expected a time of at most 1ms"},
               {"bandwidth=20", "expected bytes a second with their unit, as 20GB/s"},
               {"bandwidth=20GB", "as 20GB/s"},
               {"bandwidth=0GB/s", "from 1MB/s to 1000TB/s"},
               {"cache=1MB", "expected a size from 1KiB to 1GiB with its unit, as 1MiB"},
               {"cache=2GiB", "from 1KiB to 1GiB"},
               {"line=80ns,nodes=0", "--sim \"nodes=0\": expected a number of NUMA nodes from 1 to 64"},
               {"line=80ns,nodes=2,far=1.7", "how many times as much a line of another node costs, from 1x to 100x, as 1.7x"},
               {"line=80ns,nodes=2,far=0.5x", "from 1x to 100x"},
               {"nodes=2", "--sim: cache=, nodes= and far= are for line= or bandwidth=: name one of them, as line=80ns"},
               {"race=100", "expected a time with its unit"}};
    struct shmt_sim sim;
    (void)state;
    for (size_t i = 0; i < sizeof WELL / sizeof *WELL; i++) {
        struct shmt_error e = {0};
        if (shmt_sim_parse("--sim", WELL[i], &sim, &e) < 0) fail_msg("%s: %s", WELL[i], e.text);
    }
    for (int most = 16; most <= 17; most++) {
        struct shmt_error e = {0};
        char many[512] = "death=1@1s";
        for (int i = 1; i < most; i++) strncat(many, ",death=1@1s", sizeof many - strlen(many) - 1);
        assert_int_equal(shmt_sim_parse("--sim", many, &sim, &e), most == 16 ? 0 : SHMTRAIN_E_USAGE);
    }
    for (size_t i = 0; i < sizeof ILL / sizeof *ILL; i++) {
        struct shmt_error e = {0};
        assert_int_equal(shmt_sim_parse("--sim", ILL[i].text, &sim, &e), SHMTRAIN_E_USAGE);
        if (!strstr(e.text, ILL[i].said)) fail_msg("%s: %s", ILL[i].text, e.text);
    }
}

/* What is typed counts, 0, too. */
static void computing_that_nobody_has_said_goes_by_examples(void **state) {
    static const struct {
        const char *text;
        double ns;
    } CASES[] = {{"", 64000},          {"push=1us", 64000},   {"compute=lognormal:0s:0.3", 0}, {"compute=0s", 0},
                 {"compute=1ms", 1e6}, {"example=10ns", 640}, {"example=uniform:1ns:2ns", 64}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_sim sim;
        struct shmt_error e = {0};
        assert_int_equal(shmt_sim_parse("--sim", CASES[i].text, &sim, &e), 0);
        shmt_sim_settle(&sim, 64);
        assert_true(sim.compute.ns == CASES[i].ns);
    }
}

/* What is named counts, and a text with what was measured says the same as what it stands for. */
static void what_was_measured_completes_the_text(void **state) {
    const struct shmt_sim_found found = {.example_ns = 62.314,
                                         .sigma = 0.11,
                                         .hiccup_every_ns = 4e6,
                                         .hiccup_ns = 30000,
                                         .update_ns = 1234,
                                         .line_ns = 80,
                                         .bandwidth = 12.5};
    static const struct {
        const char *text, *whole;
    } CASES[] = {
        {"measured",
         "example=lognormal:62.31ns:0.11,hiccup=4ms:exponential:30us,pull=0ns,push=0ns,update=1.234us,line=80ns,next=0ns,"
         "bandwidth=12.5GB/s"},
        {"measured,hiccup=1s:1us,line=1us,straggler=1:3x",
         "example=lognormal:62.31ns:0.11,pull=0ns,push=0ns,update=1.234us,bandwidth=12.5GB/s,hiccup=1s:1us,line=1us,"
         "straggler=1:3x"},
        {"push=1us,measured,compute=3ms,bandwidth=1TB/s,update=0ns",
         "hiccup=4ms:exponential:30us,pull=0ns,line=80ns,next=0ns,push=1us,compute=3ms,bandwidth=1TB/s,update=0ns"},
    };
    char out[SHMT_SIM_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_sim sim;
        struct shmt_error e = {0};
        assert_true(shmt_sim_complete(CASES[i].text, &found, out, sizeof out));
        assert_string_equal(out, CASES[i].whole);
        assert_int_equal(shmt_sim_parse("--sim", out, &sim, &e), 0);
        assert_false(sim.measured);
    }
    assert_false(shmt_sim_complete("measured", &found, out, 40));
}

/* Of 1,000 steps of 8 examples, which take 80 ns each, the last ones were stopped for 5 us. */
static void steps_that_were_stopped_are_told_from_slow_ones(void **state) {
    double x[1000], every_ns, ns;
    (void)state;
    for (int stopped = 0; stopped <= 10; stopped++) {
        for (int i = 0; i < 1000; i++) x[i] = log(i < 900 ? 80 : 90);
        for (int i = 1000 - stopped; i < 1000; i++) x[i] = log((8 * 80 + 5000) / 8.0);
        shmt_stage_find_hiccups(x, 1000, 8, 0.05, &every_ns, &ns);
        if (stopped < 4) assert_true(every_ns == 0 && ns == 0);
        if (stopped < 4) continue;
        assert_true(fabs(ns - 5000) < 1e-6);
        assert_true(fabs(every_ns - 8 * (900 * 80 + (100 - stopped) * 90 + stopped * 80) / (double)stopped) < 1e-6);
    }
}

/* Whatever is found, the text can be parsed. */
static void what_was_measured_is_a_text_that_is_taken(void **state) {
    static const double FOUND[] = {0, 1e-9, 0.5, 999.99, 1e6, 3e9, 1e18, INFINITY};
    char out[SHMT_SIM_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) {
        const double x = FOUND[i];
        const struct shmt_sim_found found = {x, x, x, x, x, x, x, x, x, x};
        struct shmt_sim sim;
        struct shmt_error e = {0};
        assert_true(shmt_sim_complete("measured", &found, out, sizeof out));
        if (shmt_sim_parse("--sim", out, &sim, &e) < 0) fail_msg("%s: %s", out, e.text);
    }
}

static int compare_counts(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void draws_follow_their_distribution(void **state) {
    enum { N = 20001 };
    static const struct {
        const char *text;
        double median, mean;
    } CASES[] = {{"compute=10us", 1e4, 1e4},
                 {"compute=lognormal:10us:0.5", 1e4, 1e4 * 1.1331},
                 {"compute=exponential:10us", 1e4 * 0.6931, 1e4},
                 {"compute=uniform:10us:30us", 2e4, 2e4}};
    uint64_t *drawn = calloc(N, sizeof *drawn);
    (void)state;
    assert_non_null(drawn);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_sim sim;
        struct shmt_error e = {0};
        double sum = 0;
        assert_int_equal(shmt_sim_parse("--sim", CASES[i].text, &sim, &e), 0);
        for (uint64_t k = 0; k < N; k++) sum += (double)(drawn[k] = shmt_cost_draw(&sim.compute, 5, 3, k));
        qsort(drawn, N, sizeof *drawn, compare_counts);
        assert_true((double)drawn[N / 2] > 0.97 * CASES[i].median && (double)drawn[N / 2] < 1.03 * CASES[i].median);
        assert_true(sum / N > 0.97 * CASES[i].mean && sum / N < 1.03 * CASES[i].mean);
    }
    free(drawn);
}

/* The same on every machine: they are made of no library's functions. */
static void draws_are_these_numbers(void **state) {
    const struct shmt_cost lognormal = {SHMT_COST_LOGNORMAL, 1e6, 0.3}, exponential = {SHMT_COST_EXPONENTIAL, 1e6, 0};
    (void)state;
    assert_int_equal(shmt_cost_draw(&lognormal, 1, 2, 3), 1420226);
    assert_int_equal(shmt_cost_draw(&lognormal, 1, 2, 4), 692741);
    assert_int_equal(shmt_cost_draw(&exponential, 1, 2, 3), 2640400);
}

/* ---- stacks ---- */

static int dig(volatile char *above, int depth) {
    volatile char here[512];
    here[0] = (char)depth;
    if (above) here[1] = above[0];
    return depth > 1000 ? here[1] : dig(here, depth + 1) + here[0]; /* half a mebibyte of a stack of 64 KiB */
}

static void dig_deep(void *arg, uint32_t i) {
    (void)arg, (void)i;
    if (dig(NULL, 0) == 12345) note(i);
}

static void who_leaves_its_stack_is_stopped_by_a_guard_page(void **state) {
    (void)state;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(STDERR_FILENO); /* sanitizers have something to say */
        run_all(2, 1, "", dig_deep);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sleeps_less_goes_on_first),
        cmocka_unit_test(a_look_at_the_clock_takes_time),
        cmocka_unit_test(equal_times_are_in_an_order_that_the_seed_chooses),
        cmocka_unit_test(all_who_wait_for_a_word_are_woken),
        cmocka_unit_test(a_wait_ends_when_its_time_is_over_or_the_word_is_another),
        cmocka_unit_test(other_threads_are_answered_by_the_machine),
        cmocka_unit_test(work_takes_what_the_costs_say),
        cmocka_unit_test(hiccups_come_as_often_and_take_as_long_as_they_say),
        cmocka_unit_test(costs_are_times_or_distributions),
        cmocka_unit_test(what_was_measured_completes_the_text),
        cmocka_unit_test(steps_that_were_stopped_are_told_from_slow_ones),
        cmocka_unit_test(what_was_measured_is_a_text_that_is_taken),
        cmocka_unit_test(computing_that_nobody_has_said_goes_by_examples),
        cmocka_unit_test(draws_follow_their_distribution),
        cmocka_unit_test(draws_are_these_numbers),
        cmocka_unit_test(who_leaves_its_stack_is_stopped_by_a_guard_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
