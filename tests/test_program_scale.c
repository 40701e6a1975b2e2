/* Costs that are measured, and what more workers bring by them: shmtrain scale, from outside. */
#include "run_program.h"

#include <math.h>

#define DATA  "builtin:sparse:examples=3000,features=300,nonzeros=9"
#define COSTS "example=lognormal:1us:0.1,line=100ns,next=10ns"

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

static json_t *run_with(const char *mode, const char *sim) {
    struct program *p = RUN("-q", "--json", "-e", "2", "-w", "4", "--mode", mode, "--spawn", "fibers:1", "--sim", sim, DATA);
    program_assert_status(p, 0);
    return program_json(p);
}

static const char *text_of(const json_t *run, const char *key) {
    const char *text = json_string_value(json_object_get(run, key));
    assert_non_null(text);
    return text;
}

/* What was measured is in the report, and the run that has it as its option is the same. */
static void what_was_measured_repeats_the_run(void **state) {
    static const char *const MODES[] = {"hogwild", "sync", "backup:2", "backup:4", "local:8"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        json_t *measured = run_with(MODES[i], "measured"), *again = run_with(MODES[i], text_of(measured, "sim"));
        assert_says(text_of(measured, "sim"), "example=lognormal:");
        assert_says(text_of(measured, "sim"), ",bandwidth=");
        assert_string_equal(text_of(measured, "sim"), text_of(again, "sim"));
        assert_string_equal(text_of(measured, "parameters_xxh64"), text_of(again, "parameters_xxh64"));
        assert_true(json_number_value(json_object_get(measured, "train_seconds")) ==
                    json_number_value(json_object_get(again, "train_seconds")));
        json_decref(measured);
        json_decref(again);
    }
}

static void a_note_says_what_was_measured_and_what_is_named_is_not(void **state) {
    (void)state;
    struct program *p = RUN("-e", "1", "-w", "2", "--mode", "sync", "--spawn", "fibers", "--sim", "measured,line=7ns", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "shmtrain: measured: --sim example=lognormal:");
    assert_says(p->text[ERR], ",line=7ns\n");
    assert_null(strstr(p->text[ERR], "next="));
}

/* By one worker of the model that is asked for, also where that is none of several. */
static void what_cannot_be_measured_is_refused_in_one_line(void **state) {
    (void)state;
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "measured", "no-such-file"), 1, "no-such-file");
    program_assert_refused(RUN("--sim", "measured", DATA), 2, "--sim is for workers in virtual time: use --spawn fibers");
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "measured,compute=1us,example=1us", DATA), 2, "name one of them");
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "measured", "--tolerance", "0.01", DATA), 2,
                           "--sim measured: a fit with --tolerance takes no steps that could be measured");
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "measured", "-"), 2, "standard input can be read once only");
}

/* ---- scale ---- */

static void speed_ups_are_a_table_for_each_mode_and_a_plot(void **state) {
    (void)state;
    struct program *p = RUN("scale", "-w", "1..8", "--nodes", "1,2", "--modes", "hogwild,sync", "--seeds", "2", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "shmtrain: hogwild, seed 1 of 2: 7 of 28 runs are done\n");
    assert_says(p->text[OUT],
                "predicted on fibers: the median of 2 seeds,\nleast-most\n\n"
                "hogwild\n workers  1 node              2 nodes\n       1   1.00               -\n       2   ");
    assert_says(p->text[OUT], "\nsync\n workers  1 node              2 nodes\n");
    assert_says(p->text[OUT], "\nsync: train loss 0.");
    assert_says(p->text[OUT], "\nspeed-up, 1 node");
    assert_says(p->text[OUT], "(Niu et al. 2011):\n      4.5 with 10 threads\n");
    for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n")) {
        unsigned columns = 0;
        for (const char *at = line; *at; at++) columns += ((unsigned char)*at & 0xc0) != 0x80;
        if (columns > 80) fail_msg("wider than 80 columns: %s", line);
        if (line[strlen(line) - 1] == ' ') fail_msg("it ends with a blank: \"%s\"", line);
    }
}

/* With costs that are named nothing is measured, and the same command gives the same figures. */
static void named_costs_make_the_same_figures_each_time(void **state) {
    (void)state;
    char *first = NULL;
    for (int again = 0; again < 2; again++) {
        struct program *p =
            RUN("scale", "--json", "-w", "1,3,16", "--modes", "hogwild,async", "--seeds", "2", "--sim", COSTS, DATA);
        program_assert_status(p, 0);
        if (first) assert_string_equal(first, p->text[OUT]);
        if (!first) first = strdup(p->text[OUT]);
    }
    json_t *o = json_loads(first, 0, NULL), *mode = json_array_get(json_object_get(o, "modes"), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(mode, "sim"), 1)), COSTS);
    const json_t *cells = json_object_get(mode, "predicted");
    assert_int_equal(json_array_size(cells), 3 + 2 + 1); /* on 1, 2 and 4 nodes */
    const json_t *one = json_array_get(cells, 0), *many = json_array_get(cells, 2);
    assert_true(json_number_value(json_object_get(one, "speed_up")) == 1);
    assert_int_equal(json_integer_value(json_object_get(many, "workers")), 16);
    assert_true(json_number_value(json_object_get(many, "speed_up_least")) <=
                json_number_value(json_object_get(many, "speed_up")));
    assert_int_equal(json_array_size(json_object_get(many, "examples_per_second")), 2);
    json_decref(o);
    free(first);
}

static void a_mode_that_cannot_have_so_many_workers_is_refused_there_alone(void **state) {
    (void)state;
    struct program *p = RUN("scale", "-w", "8,2", "--modes", "sync", "--sim", COSTS, DATA);
    program_assert_refused(p, 2, "--workers 8,2: expected ascending numbers from 1 to 1000");
    p = RUN("scale", "-w", "1,2", "--modes", "backup:4", "--nodes", "1", "--seeds", "1", "--sim", COSTS, DATA);
    program_assert_refused(p, 2, "backup:4: ");
    p = RUN("scale", "-w", "1..8", "--modes", "backup:4,sync", "--nodes", "1", "--seeds", "1", "--sim", COSTS, DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT],
                "\nbackup:4\n workers  1 node\n       1  refused\n       2  refused\n       4   1.00\n       8   ");
    assert_says(p->text[OUT], "\nbackup:4 is refused: ");
    assert_says(p->text[OUT], "\nsync\n workers  1 node\n       1   1.00\n");
}

/* A run that its own options end is a run. */
static void runs_that_end_early_count(void **state) {
    (void)state;
    struct program *p = RUN("scale", "--json", "-w", "1,2", "--nodes", "1", "--modes", "sync", "--seeds", "1", "--target-loss",
                            "5", "--sim", COSTS, DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *mode = json_array_get(json_object_get(o, "modes"), 0);
    assert_true(json_number_value(json_object_get(json_array_get(json_object_get(mode, "predicted"), 1), "speed_up")) > 0);
    json_decref(o);
}

static void what_scale_cannot_do_is_refused_in_one_line(void **state) {
    (void)state;
    program_assert_refused(RUN("scale", "-w", "1..", DATA), 2, "--workers 1..: expected ascending numbers");
    program_assert_refused(RUN("scale", "-w", "1..2000", DATA), 2, "from 1 to 1000");
    program_assert_refused(RUN("scale", "-w", "1,,2", DATA), 2, "--workers 1,,2: expected ascending numbers");
    program_assert_refused(RUN("scale", "-w", "4", "--nodes", "8", DATA), 2,
                           "--nodes 8: each node needs a worker, and there are 4 at most");
    program_assert_refused(RUN("scale", "--nodes", "x", DATA), 2, "--nodes x: expected ascending numbers from 1 to 64");
    program_assert_refused(RUN("scale", "--sim", "line=80ns,nodes=2", DATA), 2, "use --nodes");
    program_assert_refused(RUN("scale", "--spawn", "threads", DATA), 2,
                           "scale runs workers as fibers, with its seeds: leave it out");
    program_assert_refused(RUN("scale", "-w", "1..8", "--nodes", "2,4", DATA), 2, "begin --nodes or --workers with others");
    program_assert_refused(RUN("scale", "--modes", "sync,sync", DATA), 2, "sync is there twice");
    program_assert_refused(RUN("compare", "--spawn", "fibers", "--sim", "measured", DATA), 2, "or use shmtrain scale");
    program_assert_refused(RUN("scale", "--mode", "sync", DATA), 2, "name modes by --modes");
    program_assert_refused(RUN("scale", "--modes", "sink", DATA), 2, "--modes sink: ");
    program_assert_refused(RUN("scale", "--seeds", "0", DATA), 2, "--seeds 0: expected a number of seeds from 1 to 30");
    program_assert_refused(RUN("scale", "no-such-file"), 1, "no-such-file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(what_was_measured_repeats_the_run),
        PROGRAM_TEST(a_note_says_what_was_measured_and_what_is_named_is_not),
        PROGRAM_TEST(what_cannot_be_measured_is_refused_in_one_line),
        PROGRAM_TEST(speed_ups_are_a_table_for_each_mode_and_a_plot),
        PROGRAM_TEST(named_costs_make_the_same_figures_each_time),
        PROGRAM_TEST(a_mode_that_cannot_have_so_many_workers_is_refused_there_alone),
        PROGRAM_TEST(runs_that_end_early_count),
        PROGRAM_TEST(what_scale_cannot_do_is_refused_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
