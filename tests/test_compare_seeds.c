/* cli: comparisons of several seeds and of several numbers of workers: medians and ends, what is a win, speed-ups, their table and
 * plot. */
#include "compare_help.h"

#include <jansson.h>

#include "cli/pen.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static const struct made QUICK = {"async", {0.40, 0.36, 0.34, 0.33}, 0.5, 0, 0, 3};
static const struct made SLOW = {"sync", {0.40, 0.36, 0.34, 0.33}, 2, 0, 0, 0};

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

/* A sentence, wherever its lines break. */
static void assert_tells(const char *text, const char *words) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *at = copy; (at = strchr(at, '\n')); at++) *at = ' ';
    const bool tells = strstr(copy, words) != NULL;
    free(copy);
    if (!tells) fail_msg("\"%s\" is not in:\n%s", words, strchr(text, '\n'));
}

/* ---- seeds ---- */

/* Two modes with `n` seeds each: the losses of both are 0.1 % apart from seed to seed, those of the second `above` higher. */
static struct comparison *make_seeds(unsigned n, double above) {
    struct comparison *c = calloc(1, sizeof *c);
    struct made higher = SLOW;
    assert_non_null(c);
    for (size_t i = 0; i < MADE_EPOCHS; i++) higher.loss[i] *= 1 + above;
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = n;
    c->first_seed = 1;
    add_made(c, &QUICK);
    add_made(c, &higher);
    for (unsigned k = 1; k < n; k++) {
        add_seed(&c->run[0], &QUICK, 1 + 0.001 * k, 1);
        add_seed(&c->run[1], &higher, 1 + 0.001 * k, 1 + 0.1 * k);
    }
    compare_letter(c);
    compare_work_out(c);
    return c;
}

static void figures_are_medians_and_what_is_shown_is_of_the_seed_in_the_middle(void **state) {
    (void)state;
    struct comparison *c = make_seeds(5, 0);
    const struct compare_spread loss = compare_spread_of(&c->run[0], COMPARE_LOSS);
    NEAR(loss.least, 0.33);
    NEAR(loss.median, 0.33 * 1.002);
    NEAR(loss.most, 0.33 * 1.004);
    assert_int_equal(loss.n, 5);
    NEAR(c->run[0].final_loss, 0.33 * 1.002);
    assert_ptr_equal(c->run[0].kept, c->run[0].seed[2].kept);
    NEAR(c->target, 0.33 * 1.002 * 1.01);
    destroy_comparison(c);
    c = make_seeds(4, 0);
    NEAR(c->run[0].final_loss, 0.33 * 1.0015);
    assert_ptr_equal(c->run[0].kept, c->run[0].seed[1].kept);
    destroy_comparison(c);
}

/* In time each seed of one is before each of the other; in losses they are alike. */
static void only_what_is_outside_of_the_spread_is_a_win(void **state) {
    (void)state;
    struct comparison *c = make_seeds(5, 0.001);
    char *text = text_of(compare_put_table, c);
    assert_true(compare_is_below(&c->run[0], &c->run[1], COMPARE_TIME));
    assert_false(compare_is_below(&c->run[1], &c->run[0], COMPARE_TIME));
    assert_false(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS));
    assert_tells(text, " Time to 0.33397: async (1.835 s) wins. ");
    assert_tells(text, "Final loss: no winner; within the spread are async (0.33066), sync (0.33099). ");
    assert_tells(text, "in 1 of 126 cases");
    assert_true(compare_is_best(c, &c->run[0], COLUMN_TIME));
    assert_false(compare_is_best(c, &c->run[0], COLUMN_LOSS));
    free(text);
    destroy_comparison(c);
    c = make_seeds(5, 0.01); /* now they are apart */
    text = text_of(compare_put_table, c);
    assert_tells(text, "async (0.33066) wins.");
    assert_true(compare_is_best(c, &c->run[0], COLUMN_LOSS));
    free(text);
    destroy_comparison(c);
}

static void two_seeds_are_too_few_for_a_winner(void **state) {
    (void)state;
    struct comparison *c = make_seeds(2, 0.5);
    char *text = text_of(compare_put_table, c);
    assert_false(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS));
    assert_tells(text, "No verdict: 2 seeds are too few to tell a win from chance; take 3 or more.");
    assert_null(strstr(text, "wins"));
    free(text);
    destroy_comparison(c);
}

static void ends_stand_below_the_medians(void **state) {
    (void)state;
    struct comparison *c = make_seeds(3, 0.001);
    char *text = text_of(compare_put_table, c);
    assert_says(text,
                "a async    1.835    3.67     2.00 k     3.0    0.0 %    0.0 %    0.33033\n"
                "  least    1.818    3.64     2.00 k                              0.33000\n"
                "   most    1.852    3.70     2.00 k                              0.33066\n"
                "s sync ");
    assert_says(text, "\nMedians of 3 seeds, from 1 on; below them the least and the most.");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (pen_width(line) > 80) fail_msg("%u columns: %s", pen_width(line), line);
    free(text);
    destroy_comparison(c);
}

/* With two of three seeds nothing came to the target: the median is nowhere, and the most is not either. */
static void a_seed_that_misses_the_target_is_the_worst(void **state) {
    (void)state;
    char cell[32];
    struct comparison *c = make_seeds(3, 0);
    c->target_is_given = true;
    c->target = 0.33;
    compare_work_out(c);
    const struct compare_spread time = compare_spread_of(&c->run[0], COMPARE_TIME);
    NEAR(time.least, 2);
    assert_true(isinf(time.median) && isinf(time.most));
    assert_true(isnan(c->run[0].to_target_s));
    assert_string_equal(compare_cell(c, &c->run[0], COLUMN_TIME, cell), "-");
    char *text = text_of(compare_put_table, c);
    assert_says(text, "No mode came to the target.");
    free(text);
    destroy_comparison(c);
}

/* The median is that of two others; no mode wins over one that may be as good. */
static void a_seed_with_which_a_mode_failed_counts_as_infinite(void **state) {
    (void)state;
    struct comparison *c = make_seeds(3, 0.01);
    kept_destroy(c->run[0].seed[1].kept);
    c->run[0].seed[1].kept = NULL;
    c->run[0].seed[1].status = SHMTRAIN_E_NUMBERS;
    compare_work_out(c);
    NEAR(c->run[0].final_loss, 0.33 * 1.002);
    assert_true(isinf(compare_spread_of(&c->run[0], COMPARE_LOSS).most));
    assert_false(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS));
    char *text = text_of(compare_put_table, c);
    assert_tells(text, "A seed with which a mode failed counts as an infinite loss.");
    free(text);
    destroy_comparison(c);
}

static void put_json(const struct comparison *c, FILE *out) { assert_int_equal(compare_put_json(c, out), 0); }

static void json_has_every_seed(void **state) {
    (void)state;
    struct comparison *c = make_seeds(3, 0);
    char *text = text_of(put_json, c);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    json_t *run = json_array_get(json_object_get(o, "runs"), 1), *seeds = json_object_get(run, "seeds");
    assert_int_equal(json_array_size(seeds), 3);
    NEAR(json_real_value(json_object_get(run, "final_loss")), c->run[1].final_loss);
    for (unsigned k = 0; k < 3; k++) {
        json_t *seed = json_array_get(seeds, k);
        assert_int_equal(json_integer_value(json_object_get(seed, "seed")), k + 1);
        assert_true(fabs(json_real_value(json_object_get(seed, "final_loss")) - 0.33 * (1 + 0.001 * k)) < 1e-9);
        assert_true(fabs(json_real_value(json_object_get(seed, "seconds_per_epoch")) - 2 * (1 + 0.1 * k)) < 1e-9);
    }
    json_decref(o);
    free(text);
    destroy_comparison(c);
}

/* ---- numbers of workers ---- */

/* async scales, and loses with four workers; sync does not. Two cores. */
static struct comparison *make_workers(void) {
    struct comparison *c = calloc(1, sizeof *c);
    struct made worse = QUICK;
    assert_non_null(c);
    for (size_t i = 0; i < MADE_EPOCHS; i++) worse.loss[i] += 0.02;
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = 1;
    c->rates = 3;
    c->n_workers = 3;
    memcpy(c->workers, (uint32_t[]){1, 2, 4}, 3 * sizeof *c->workers);
    add_workers(c, &QUICK, 1, 1);
    add_workers(c, &QUICK, 2, 0.5);
    add_workers(c, &worse, 4, 0.4);
    add_workers(c, &SLOW, 1, 2);
    add_workers(c, &SLOW, 2, 2.5);
    add_workers(c, &SLOW, 4, 4);
    compare_letter(c);
    compare_work_out(c);
    return c;
}

static void speed_up_is_over_the_fewest_workers_of_the_same_mode(void **state) {
    (void)state;
    static const double EXPECTED[] = {1, 2, 2.5, 1, 0.8, 0.5};
    struct comparison *c = make_workers();
    for (unsigned i = 0; i < c->n; i++) {
        NEAR(c->run[i].speed_up, EXPECTED[i]);
        assert_int_equal(c->run[i].mark, i < 3 ? 'a' : 's');
    }
    assert_string_equal(c->run[4].name, "sync -w 2");
    destroy_comparison(c);
}

/* An epoch during which the machine did something else does not count, nor does one that was stopped. */
static void the_median_epoch_counts(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    struct shmtrain_epoch *epoch = (struct shmtrain_epoch *)(uintptr_t)c->run[1].kept->report.epoch;
    epoch[0].seconds = 100;
    epoch[3].seconds = 0.001;
    epoch[3].partial = 1;
    compare_work_out(c);
    NEAR(c->run[1].epoch_s, 0.5);
    destroy_comparison(c);
}

static void the_table_of_workers_is_as_it_should_be(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    char *text = text_of(compare_put_table, c);
    assert_says(text,
                "                   to 0.33330\n"
                "  mode    -w  seconds  epochs  s/epoch speed-up  waiting final loss\n"
                "a async    1    3.670    3.67   1.0000     1.00    0.0 %    0.33000\n"
                "a async    2    1.835    3.67   0.5000     2.00    0.0 %    0.33000\n"
                "a async    4        -       -   0.4000     2.50    0.0 %    0.35000\n"
                "s sync     1    7.340    3.67   2.0000     1.00    0.0 %    0.33000\n"
                "s sync     2    9.175    3.67   2.5000     0.80    0.0 %    0.33000\n"
                "s sync     4   14.680    3.67   4.0000     0.50    0.0 %    0.33000\n");
    for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        assert_int_not_equal(strncmp(line, "-w ", 3), 0); /* names are not torn */
    assert_tells(text, "the best of 3 for each mode, with -w 1, 2, 4: async 0.5, 0.5, 0.5; sync 0.5, 0.5, 0.5.");
    free(text);
    destroy_comparison(c);
}

static void speed_that_costs_loss_is_called_so(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    char *text = text_of(compare_put_table, c);
    assert_tells(
        text,
        "At most: async -w 4, 2.50 times, but at a loss of 0.35000 in place of 0.33000. No gain with more than -w 1: sync. "
        "-w 4 shares the 2 cores that the runs may use.");
    free(text);
    for (unsigned i = 0; i < c->n; i++) c->run[i].kept->report.cores = 1;
    text = text_of(compare_put_table, c);
    assert_tells(text, "-w 2, 4 share the 1 core that");
    free(text);
    destroy_comparison(c);
}

/* With any number of workers, and each seed; the best number is told. */
static void of_several_numbers_of_workers_a_mode_wins_over_all_of_another(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    c->seeds = 3;
    c->first_seed = 1;
    static const double TIMES[] = {2, 1, 2, 1, 1, 1};
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 1; k < 3; k++) add_seed(&c->run[i], i < 3 ? &QUICK : &SLOW, 1, TIMES[i]);
    compare_work_out(c);
    char *text = text_of(compare_put_table, c);
    assert_tells(text, ": async wins, at best async -w 2 (1.835 s). ");
    assert_tells(text, "Final loss: no winner; within the spread are async -w 1 (0.33000), sync -w 1 (0.33000). ");
    assert_true(compare_is_best(c, &c->run[1], COLUMN_TIME));
    free(text);
    struct shmtrain_epoch *epoch = (struct shmtrain_epoch *)(uintptr_t)c->run[5].seed[2].kept->report.epoch;
    for (unsigned i = 0; i < MADE_EPOCHS; i++) epoch[i].seconds = 0.4; /* with four workers sync is as fast with one seed */
    compare_work_out(c);
    text = text_of(compare_put_table, c);
    assert_tells(text, "no winner; within the spread are async -w 2 (1.835 s), sync -w 4 (");
    free(text);
    destroy_comparison(c);
}

/* One of its seeds was slower with two workers. */
static void a_speed_up_within_the_spread_is_no_gain(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    c->seeds = 3;
    c->first_seed = 1;
    for (unsigned k = 1; k < 3; k++) {
        add_seed(&c->run[0], &QUICK, 1, 2);
        add_seed(&c->run[1], &QUICK, 1, k == 1 ? 3 : 1);
        add_seed(&c->run[2], &QUICK, 1, k == 1 ? 3 : 1);
    }
    compare_work_out(c);
    const struct compare_spread s = compare_spread_of(&c->run[1], COMPARE_SPEED_UP);
    NEAR(s.least, 1 / 1.5);
    NEAR(s.most, 2);
    char *text = text_of(compare_put_table, c);
    assert_tells(text, "No gain outside of the spread with more than -w 1: async, sync. ");
    assert_null(strstr(text, "wins")); /* sync has one seed */
    free(text);
    destroy_comparison(c);
}

/* With 4 workers one seed is slower than with one; with most seeds the second run ended in nothing. */
static void the_gain_that_is_certain_is_told_and_a_loss_that_is_lost(void **state) {
    struct comparison *c = calloc(1, sizeof *c);
    (void)state;
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = 3;
    c->first_seed = 1;
    c->n_workers = 3;
    memcpy(c->workers, (uint32_t[]){1, 2, 4}, 3 * sizeof(uint32_t));
    add_workers(c, &QUICK, 1, 1);
    add_workers(c, &QUICK, 2, 0.5);
    add_workers(c, &QUICK, 4, 0.3);
    for (int k = 1; k < 3; k++) {
        add_seed(&c->run[0], &QUICK, 1, 2);
        add_seed(&c->run[1], &QUICK, 1, 1);
        add_seed(&c->run[2], &QUICK, 1, k == 1 ? 2.5 : 0.6);
        kept_destroy(c->run[1].seed[k].kept);
        c->run[1].seed[k].kept = NULL;
        c->run[1].seed[k].status = SHMTRAIN_E_NUMBERS;
    }
    compare_letter(c);
    compare_work_out(c);
    char *text = text_of(compare_put_table, c);
    assert_tells(text, "At most: async -w 2, ");
    assert_tells(text, ", but at a loss of ");
    free(text);
    destroy_comparison(c);
}

/* Over one worker; as far as there are cores. */
static void the_perfect_speed_up_ends_at_the_cores(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    struct compare_plot made;
    compare_make_speed_up(c, &made);
    assert_int_equal(made.plot.n_curves, 3);
    assert_int_equal(made.curve[0].n, 3);
    NEAR(made.curve[0].point[2].x, 4);
    NEAR(made.curve[0].point[2].y, 2.5);
    const struct plot_curve *perfect = &made.curve[2];
    assert_true(perfect->is_guide);
    assert_int_equal(perfect->n, 3);
    NEAR(perfect->point[1].x, 2);
    NEAR(perfect->point[1].y, 2);
    NEAR(perfect->point[2].y, 2);
    compare_release_plot(&made);
    destroy_comparison(c);
}

static void the_plot_marks_the_cores(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    struct compare_plot made;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    compare_make_speed_up(c, &made);
    const struct plot_screen screen = {.columns = 78, .rows = 16};
    assert_int_equal(plot_draw(&made.plot, &screen, out), 16);
    fclose(out);
    assert_says(text, "speed-up over -w 1   a async   s sync   + perfect   : 2 cores\n");
    unsigned n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strlen(line) > 78) fail_msg("too wide: %s", line);
        n += strchr(line + 5, ':') != NULL;
    }
    assert_true(n >= 10);
    free(text);
    compare_release_plot(&made);
    destroy_comparison(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_medians_and_what_is_shown_is_of_the_seed_in_the_middle),
        cmocka_unit_test(only_what_is_outside_of_the_spread_is_a_win),
        cmocka_unit_test(two_seeds_are_too_few_for_a_winner),
        cmocka_unit_test(ends_stand_below_the_medians),
        cmocka_unit_test(a_seed_that_misses_the_target_is_the_worst),
        cmocka_unit_test(a_seed_with_which_a_mode_failed_counts_as_infinite),
        cmocka_unit_test(json_has_every_seed),
        cmocka_unit_test(speed_up_is_over_the_fewest_workers_of_the_same_mode),
        cmocka_unit_test(the_median_epoch_counts),
        cmocka_unit_test(the_table_of_workers_is_as_it_should_be),
        cmocka_unit_test(speed_that_costs_loss_is_called_so),
        cmocka_unit_test(of_several_numbers_of_workers_a_mode_wins_over_all_of_another),
        cmocka_unit_test(a_speed_up_within_the_spread_is_no_gain),
        cmocka_unit_test(the_gain_that_is_certain_is_told_and_a_loss_that_is_lost),
        cmocka_unit_test(the_perfect_speed_up_ends_at_the_cores),
        cmocka_unit_test(the_plot_marks_the_cores),
    };
    return cmocka_run_group_tests_name("compare_seeds", tests, NULL, NULL);
}
