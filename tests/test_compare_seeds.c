/* cli: comparisons of several seeds: medians and ends, what is a win, and what a signal or an error leaves. */
#include "compare_help.h"

#include "cli/pen.h"

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

/* The least of these differences is a win with three seeds, and none with two; both show their ends. */
static void from_three_seeds_on_there_is_a_winner(void **state) {
    (void)state;
    for (unsigned n = 2; n <= 3; n++) {
        struct comparison *c = make_seeds(n, 0.01);
        char *text = text_of(compare_put_table, c);
        assert_int_equal(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS), n == 3);
        assert_int_equal(compare_is_best(c, &c->run[0], COLUMN_LOSS), n == 3);
        assert_tells(text, n == 3 ? "in 1 of 10 cases" : "No verdict: 2 seeds are too few");
        assert_says(text, "\n  least ");
        assert_says(text, "\n   most ");
        free(text);
        destroy_comparison(c);
    }
}

/* The most of one is the least of the other: they touch, and neither is below. */
static void a_tie_is_no_win(void **state) {
    (void)state;
    struct comparison *c = make_seeds(3, 0);
    for (unsigned k = 0; k < 3; k++) {
        c->run[0].seed[k].final_loss = 0.30 + 0.01 * k;
        c->run[1].seed[k].final_loss = 0.32 + 0.01 * k;
    }
    assert_false(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS));
    assert_false(compare_is_below(&c->run[1], &c->run[0], COMPARE_LOSS));
    c->run[0].seed[2].final_loss = 0.3199;
    assert_true(compare_is_below(&c->run[0], &c->run[1], COMPARE_LOSS));
    destroy_comparison(c);
    c = make_seeds(3, 0); /* the same losses: both stand there */
    char *text = text_of(compare_put_table, c);
    assert_tells(text, "Final loss: no winner; within the spread are async (0.33033), sync (0.33033). ");
    assert_false(compare_is_best(c, &c->run[0], COLUMN_LOSS) || compare_is_best(c, &c->run[1], COLUMN_LOSS));
    free(text);
    destroy_comparison(c);
}

/* The second round ended early: sync has one seed, and what there is with two says so. */
static void what_ended_early_says_why_and_there_is_no_verdict(void **state) {
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        struct comparison *c = make_seeds(3, 0.5);
        for (; c->run[1].n_seeds > 1; c->run[1].n_seeds--) kept_destroy(c->run[1].seed[c->run[1].n_seeds - 1].kept);
        c->broken = broken != 0;
        compare_work_out(c);
        char *text = text_of(compare_put_table, c);
        assert_tells(text, broken ? " An error ended it: some modes have 1." : " A signal came: some modes have 1.");
        assert_tells(text, "No verdict: 1 seed is too few to tell a win from chance");
        assert_null(strstr(text, "wins"));
        free(text);
        destroy_comparison(c);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_medians_and_what_is_shown_is_of_the_seed_in_the_middle),
        cmocka_unit_test(only_what_is_outside_of_the_spread_is_a_win),
        cmocka_unit_test(two_seeds_are_too_few_for_a_winner),
        cmocka_unit_test(from_three_seeds_on_there_is_a_winner),
        cmocka_unit_test(a_tie_is_no_win),
        cmocka_unit_test(what_ended_early_says_why_and_there_is_no_verdict),
        cmocka_unit_test(ends_stand_below_the_medians),
        cmocka_unit_test(a_seed_that_misses_the_target_is_the_worst),
        cmocka_unit_test(a_seed_with_which_a_mode_failed_counts_as_infinite),
    };
    return cmocka_run_group_tests_name("compare_seeds", tests, NULL, NULL);
}
