/* cli: comparisons of several numbers of workers: speed-ups, over what they are, their table and plot. */
#include "compare_help.h"

/* async scales, and loses with four workers; sync does not. Two cores. */
static struct comparison *make_workers(void) {
    struct comparison *c = calloc(1, sizeof *c);
    struct made worse = MADE_QUICK;
    assert_non_null(c);
    for (size_t i = 0; i < MADE_EPOCHS; i++) worse.loss[i] += 0.02;
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = 1;
    c->rates = 3;
    c->n_workers = 3;
    memcpy(c->workers, (uint32_t[]){1, 2, 4}, 3 * sizeof *c->workers);
    add_workers(c, &MADE_QUICK, 1, 1);
    add_workers(c, &MADE_QUICK, 2, 0.5);
    add_workers(c, &worse, 4, 0.4);
    add_workers(c, &MADE_SLOW, 1, 2);
    add_workers(c, &MADE_SLOW, 2, 2.5);
    add_workers(c, &MADE_SLOW, 4, 4);
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
        for (unsigned k = 1; k < 3; k++) add_seed(&c->run[i], i < 3 ? &MADE_QUICK : &MADE_SLOW, 1, TIMES[i]);
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
        add_seed(&c->run[0], &MADE_QUICK, 1, 2);
        add_seed(&c->run[1], &MADE_QUICK, 1, k == 1 ? 3 : 1);
        add_seed(&c->run[2], &MADE_QUICK, 1, k == 1 ? 3 : 1);
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
    add_workers(c, &MADE_QUICK, 1, 1);
    add_workers(c, &MADE_QUICK, 2, 0.5);
    add_workers(c, &MADE_QUICK, 4, 0.3);
    for (int k = 1; k < 3; k++) {
        add_seed(&c->run[0], &MADE_QUICK, 1, 2);
        add_seed(&c->run[1], &MADE_QUICK, 1, 1);
        add_seed(&c->run[2], &MADE_QUICK, 1, k == 1 ? 2.5 : 0.6);
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

/* With more workers sync was stopped before an epoch was over: nothing is known of it. */
static void where_nothing_was_measured_no_gain_is_denied(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    for (unsigned i = 4; i < 6; i++) {
        struct shmtrain_report *r = &c->run[i].kept->report;
        r->n_epochs = 1;
        ((struct shmtrain_epoch *)(uintptr_t)r->epoch)->partial = 1;
    }
    compare_work_out(c);
    char *text = text_of(compare_put_table, c);
    assert_null(strstr(text, "No gain"));
    assert_null(strstr(text, "No speed-up"));
    free(text);
    destroy_comparison(c);
}

/* sync is refused with one worker, as backup:2 is: its other rows are over nothing that the others are over. */
static void a_mode_that_did_not_run_with_the_fewest_workers_has_no_speed_up(void **state) {
    (void)state;
    struct comparison *c = make_workers();
    struct compare_plot made;
    kept_destroy(c->run[3].kept);
    c->run[3].kept = NULL;
    c->run[3].n_seeds = 0;
    c->run[3].status = SHMTRAIN_E_USAGE;
    compare_work_out(c);
    assert_null(compare_fewest(c, &c->run[4]));
    assert_true(isnan(c->run[4].speed_up) && isnan(c->run[5].speed_up));
    NEAR(c->run[1].speed_up, 2);
    NEAR(c->run[4].epoch_s, 2.5);
    char *text = text_of(compare_put_table, c);
    assert_says(text, "s sync     2    9.175    3.67   2.5000        -    0.0 %    0.33000\n");
    assert_tells(text, " No speed-up of what did not run with -w 1: sync. ");
    assert_null(strstr(text, "No gain"));
    assert_tells(text, "with -w 1, 2, 4: async 0.5, 0.5, 0.5; sync -, 0.5, 0.5.");
    free(text);
    compare_make_speed_up(c, &made);
    assert_int_equal(made.plot.n_curves, 2); /* async and the perfect one */
    compare_release_plot(&made);
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
        cmocka_unit_test(speed_up_is_over_the_fewest_workers_of_the_same_mode),
        cmocka_unit_test(the_median_epoch_counts),
        cmocka_unit_test(the_table_of_workers_is_as_it_should_be),
        cmocka_unit_test(speed_that_costs_loss_is_called_so),
        cmocka_unit_test(of_several_numbers_of_workers_a_mode_wins_over_all_of_another),
        cmocka_unit_test(a_speed_up_within_the_spread_is_no_gain),
        cmocka_unit_test(the_gain_that_is_certain_is_told_and_a_loss_that_is_lost),
        cmocka_unit_test(where_nothing_was_measured_no_gain_is_denied),
        cmocka_unit_test(a_mode_that_did_not_run_with_the_fewest_workers_has_no_speed_up),
        cmocka_unit_test(the_perfect_speed_up_ends_at_the_cores),
        cmocka_unit_test(the_plot_marks_the_cores),
    };
    return cmocka_run_group_tests_name("compare_workers", tests, NULL, NULL);
}
