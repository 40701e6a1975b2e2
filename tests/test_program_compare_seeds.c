/* shmtrain compare with several seeds and several numbers of workers, from outside. */
#include "run_program.h"

#include <math.h>
#include <signal.h>

#define DATA "builtin:sparse:examples=4000,features=400,nonzeros=10"

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

static int speak_ascii(void) { return setenv("LC_ALL", "C", 1); }

/* Each is the run that `train` makes with this seed at the rate that was found with the first one, on the first one's data. */
static void each_seed_is_a_run_of_its_own_on_the_same_data(void **state) {
    (void)state;
    struct program *p =
        RUN("compare", "--json", "-w", "1", "-e", "2", "--modes", "sync,local:2", "--seed", "5", "--seeds", "3", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *run = json_array_get(json_object_get(o, "runs"), 0), *seeds = json_object_get(run, "seeds");
    assert_int_equal(json_array_size(seeds), 3);
    char rate[32];
    snprintf(rate, sizeof rate, "%.9g", json_real_value(json_object_get(run, "rate")));
    for (size_t k = 0; k < 3; k++) {
        json_t *seed = json_array_get(seeds, k);
        char number[8];
        snprintf(number, sizeof number, "%zu", 5 + k);
        assert_int_equal(json_integer_value(json_object_get(seed, "seed")), 5 + (int)k);
        struct program *of = RUN("-q", "--json", "-w", "1", "-e", "2", "--mode", "sync", "--schedule", "cosine", "--seed",
                                 number, "--rate", rate, DATA ",seed=5");
        program_assert_status(of, 0);
        json_t *r = program_json(of);
        const double loss = json_real_value(json_object_get(json_array_get(json_object_get(r, "epochs"), 1), "valid_loss"));
        assert_true(fabs(json_real_value(json_object_get(seed, "final_loss")) / loss - 1) < 1e-6);
        json_decref(r);
    }
    json_decref(o);
}

static void several_seeds_have_a_line_for_each_round(void **state) {
    (void)state;
    struct program *p = RUN("compare", "-w", "1", "-e", "2", "--modes", "sync,local:2", "--seeds", "3", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "shmtrain: 12 runs: 2 modes x (3 rates + 3 seeds)\n");
    assert_says(p->text[ERR], "shmtrain: seed 3 (3 of 3): 2 runs in ");
    assert_says(p->text[OUT], "\nMedians of 3 seeds, from 1 on; ");
    assert_says(p->text[OUT], "\nTime to ");
    p = RUN("compare", "-w", "1", "-e", "1", "--rate", "0.1", "--modes", "sync,local:2", "--seeds", "2", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "shmtrain: 4 runs: 2 modes x 2 seeds\n");
    assert_says(p->text[OUT], "No verdict: 2 seeds are too few");
    p = RUN("compare", "-w", "1", "-e", "1", "--modes", "local:2", "--valid", "0.2", "--seeds", "2", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "sets other examples aside");
}

static void a_list_of_workers_is_a_row_for_each_and_a_plot_of_speed_up(void **state) {
    (void)state;
    struct program *p = RUN_IN(speak_ascii, "compare", "-w", "2,1", "-e", "2", "--modes", "async,sync", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "shmtrain: 16 runs: 2 modes x 2 numbers of workers x (3 rates + 1 seed)\n");
    assert_says(p->text[OUT], "\na async    1 ");
    assert_says(p->text[OUT], "\na async    2 ");
    assert_says(p->text[OUT], "\ns sync     2 ");
    assert_says(p->text[OUT], "\nSpeed-up: the median epoch's seconds with -w 1 over");
    assert_says(p->text[OUT], "\nspeed-up over -w 1   a async   s sync   + perfect");
    assert_says(p->text[OUT], "\nvalidation loss over epochs, -w 2");
    for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
    p = RUN("compare", "--json", "-q", "-w", "1,2", "--seeds", "2", "-e", "2", "--modes", "sync", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *runs = json_object_get(o, "runs"), *two = json_array_get(runs, 1);
    assert_int_equal(json_array_size(runs), 2);
    assert_int_equal(json_integer_value(json_object_get(two, "workers_asked_for")), 2);
    assert_true(json_real_value(json_object_get(two, "speed_up")) > 0);
    assert_int_equal(json_array_size(json_object_get(two, "seeds")), 2);
    json_decref(o);
    p = RUN("compare", "-w", "1,2", "-w", "1", "-e", "1", "--modes", "sync", DATA); /* the last one counts */
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "speed-up"));
}

/* What was measured before it is shown; the run that it stops does not count. */
static void a_signal_between_seeds_leaves_those_that_are_done(void **state) {
    (void)state;
    struct program *p = START("compare", "-w", "1", "-e", "20", "--rate", "0.1", "--modes", "sync,local:2", "--seeds", "30",
                              "builtin:sparse:examples=20000");
    program_wait_for(p, ERR, "seed 1 (1 of 30)");
    kill(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(p, 130);
    assert_null(strstr(p->text[OUT], " *\n"));
    for (char *at = p->text[OUT]; (at = strchr(at, '\n')); at++) *at = ' ';
    assert_says(p->text[OUT], "A signal came: some modes have ");
}

static void bad_lists_are_answered_in_one_line(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "--seeds 0: expected a number of seeds from 1 to 30", {"compare", "--seeds", "0"}},
        {2, "--seeds x: expected a number of seeds from 1 to 30", {"compare", "--seeds", "x"}},
        {2, "--seeds 31: expected a number of seeds from 1 to 30", {"compare", "--seeds", "31"}},
        {2,
         "--seeds 30: there are not as many behind --seed 9200000000000000500: give a smaller one",
         {"compare", "--seeds", "30", "--seed", "9200000000000000500"}},
        {2, "--workers 1,,2: \"\" is no number of workers from 1 to 4096", {"compare", "--workers", "1,,2"}},
        {2, "--workers 0,2: \"0\" is no number of workers from 1 to 4096; expected a list", {"compare", "-w", "0,2"}},
        {2, "--workers 0: expected a whole number from 1 to 4096", {"compare", "--workers", "0"}},
        {2, "--workers 1,2,1: 1 is there twice; leave one out", {"compare", "--workers", "1,2,1"}},
        {2, "--workers 1,2,3,4,5,6,7,8,9: at most 8 numbers", {"compare", "-w", "1,2,3,4,5,6,7,8,9"}},
        {2, "--workers 1,2: expected a whole number from 1 to 4096", {"-w", "1,2"}},
    };
    ASSERT_ALL_REFUSED(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(each_seed_is_a_run_of_its_own_on_the_same_data),
        PROGRAM_TEST(several_seeds_have_a_line_for_each_round),
        PROGRAM_TEST(a_list_of_workers_is_a_row_for_each_and_a_plot_of_speed_up),
        PROGRAM_TEST(a_signal_between_seeds_leaves_those_that_are_done),
        PROGRAM_TEST(bad_lists_are_answered_in_one_line),
    };
    return cmocka_run_group_tests_name("program_compare_seeds", tests, program_make_folder, program_remove_folder);
}
