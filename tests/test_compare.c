/* cli: the figures of a comparison, its table and its sentences, from made-up reports. */
#include "compare_help.h"

#include "cli/pen.h"

/* ---- figures ---- */

static void the_target_is_one_percent_above_the_lowest_loss(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    NEAR(c->target, 0.32 * 1.01);
    assert_int_equal(c->best, 1);
    NEAR(c->run[0].final_loss, 0.33);
    assert_true(isnan(c->run[3].final_loss));
    assert_true(c->validates);
    c->target_is_given = true; /* stays */
    c->target = 0.4;
    compare_work_out(c);
    NEAR(c->target, 0.4);
    destroy_comparison(c);
}

/* Nobody would train for the loss at its end, which each run has passed long before. */
static void of_runs_that_overfit_the_best_epoch_counts(void **state) {
    (void)state;
    static const struct made OVERFIT = {"local:4", {0.40, 0.30, 0.35, 0.5}, 1, 0, 0, 0};
    struct comparison *c = make_comparison();
    add_made(c, &OVERFIT);
    c->run[4].kept->report.merge_every = 4;
    compare_letter(c);
    compare_work_out(c);
    NEAR(c->target, 0.30 * 1.01);
    assert_int_equal(c->best, 4);
    NEAR(c->run[4].final_loss, 0.5);
    NEAR(c->run[4].lowest_loss, 0.30);
    NEAR(c->run[4].seed[0].lowest_at, 2);
    NEAR(c->run[4].to_target_epochs, 1 + 0.097 / 0.1);
    assert_true(compare_got_worse(&c->run[4]));
    assert_false(compare_got_worse(&c->run[1]));
    char *text = text_of(compare_put_table, c);
    assert_says(text, "1 % above the lowest of any epoch (local:4)");
    assert_says(text, "\nThe final loss is over 1 % above the best of the same run: local:4 (0.30000,\nepoch 2).\n");
    assert_says(text, "0.50000\n");
    free(text);
    destroy_comparison(c);
}

static void a_mode_that_is_asked_for_again_has_a_name_of_its_own(void **state) {
    (void)state;
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    add_refused(c, "async", 0, "");
    add_refused(c, "sync", 0, "");
    add_refused(c, "async", 0, "");
    add_refused(c, "async", 0, "");
    assert_string_equal(c->run[0].name, "async");
    assert_string_equal(c->run[1].name, "sync");
    assert_string_equal(c->run[2].name, "async (2)");
    assert_string_equal(c->run[3].name, "async (3)");
    assert_string_equal(c->run[3].mode, "async");
    free(c);
}

static void what_ran_in_place_of_a_mode_is_said(void **state) {
    (void)state;
    char instead[96];
    struct comparison *c = make_comparison();
    for (unsigned i = 0; i < c->n; i++) assert_string_equal(compare_instead(&c->run[i], instead), "");
    c->run[1].kept->report.mode = "locked, staleness 0";
    c->run[2].kept->report.quorum = 2;
    snprintf(c->replacing, sizeof c->replacing, "--write locked");
    char *text = text_of(compare_put_table, c);
    assert_says(text,
                "\nHere \"sync\" is locked, staleness 0; \"backup:3\" is backup:2: an option counts\n"
                "more than what a mode says (--write locked).\n");
    free(text);
    destroy_comparison(c);
}

static void waits_and_drops_of_one_run_are_one_sentence(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->run[2].kept->report.wait_fraction = 0.82;
    c->run[2].kept->report.waits_mostly_for = 3;
    char *text = text_of(compare_put_table, c);
    assert_says(text, "\nbackup:3 waited 82 % of the time, mostly for worker 3, and dropped");
    free(text);
    destroy_comparison(c);
}

static void times_that_are_mostly_noise_are_called_so(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->run[0].kept->report.train_seconds = 0.0234;
    char *text = text_of(compare_put_table, c);
    assert_says(text, "\nasync trained for 0.023 s in all: times so short are mostly noise; ");
    free(text);
    c->run[0].kept->report.spawn = "fibers";
    text = text_of(compare_put_table, c);
    assert_null(strstr(text, "noise"));
    free(text);
    c->run[0].kept->report.spawn = "";
    c->run[0].kept->report.train_seconds = 0.2;
    text = text_of(compare_put_table, c);
    assert_null(strstr(text, "noise"));
    free(text);
    destroy_comparison(c);
}

static void when_a_run_comes_to_the_target_is_interpolated(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->target_is_given = true;
    c->target = 0.345; /* async: 3/4 of the way from 0.36 to 0.34, sync: 7/10 of the first step */
    compare_work_out(c);
    NEAR(c->run[0].to_target_epochs, 2.75);
    NEAR(c->run[0].to_target_s, 2.75 * 0.5);
    NEAR(c->run[1].to_target_epochs, 1.7);
    NEAR(c->run[1].to_target_s, 1.7 * 2);
    assert_true(isnan(c->run[3].to_target_s));
    c->target = 0.39; /* before the first epoch's end nobody knows */
    compare_work_out(c);
    NEAR(c->run[1].to_target_epochs, 1);
    NEAR(c->run[2].to_target_epochs, 1);
    c->target = 0.1;
    compare_work_out(c);
    for (unsigned i = 0; i < c->n; i++) assert_true(isnan(c->run[i].to_target_s));
    destroy_comparison(c);
}

static void without_validation_the_training_losses_count(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    for (unsigned i = 0; i < 3; i++) c->run[i].kept->report.valid.name = "";
    compare_work_out(c);
    assert_false(c->validates);
    NEAR(c->run[0].final_loss, 0.34);
    assert_string_equal(compare_loss_name(c), "train loss");
    destroy_comparison(c);
}

static void an_epoch_that_was_stopped_counts_as_far_as_it_came(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    size_t n;
    struct shmtrain_epoch *last = (struct shmtrain_epoch *)(uintptr_t)&c->run[0].kept->report.epoch[MADE_EPOCHS - 1];
    last->partial = 1;
    last->examples = 250;
    struct plot_point *p = compare_points(c, compare_report(&c->run[0]), false, &n);
    assert_int_equal(n, MADE_EPOCHS);
    NEAR(p[MADE_EPOCHS - 1].x, 3.25);
    free(p);
    last->valid_loss = NAN; /* it was not evaluated any more */
    p = compare_points(c, compare_report(&c->run[0]), true, &n);
    assert_int_equal(n, MADE_EPOCHS - 1);
    free(p);
    compare_work_out(c);
    NEAR(c->run[0].final_loss, 0.34);
    destroy_comparison(c);
}

static void each_run_has_a_letter_of_its_own(void **state) {
    (void)state;
    static const char *const NAMES[] = {"async", "sync", "ssp:4", "backup", "local", "node",
                                        "sync",  "sync", "sync",  "sync",   "a"};
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) add_refused(c, NAMES[i], 0, "");
    compare_letter(c);
    const char *const expected = "aspblnycdef";
    for (unsigned i = 0; i < c->n; i++) assert_int_equal(c->run[i].mark, expected[i]);
    free(c);
}

/* ---- the table ---- */

static void the_table_is_as_it_should_be(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->rates = 3;
    for (unsigned i = 0; i < 4; i++) c->run[i].times = i == 1 ? 1 / 3.0 : 1;
    char *text = text_of(compare_put_table, c);
    assert_string_equal(text,
                        "                 to 0.32320\n"
                        "  mode      seconds  epochs examples/s   delay  waiting  dropped final loss\n"
                        "a async           -       -     2.00 k     3.0    0.0 %    0.0 %    0.33000\n"
                        "s sync        5.360    2.68        500     0.0   58.0 %    0.0 %    0.32000\n"
                        "b backup:3        -       -     1.00 k       -    5.0 %   10.0 %    0.32500\n"
                        "p ssp:4     refused: adam cannot be written atomically: its step has no bound if\n"
                        "            its two averages are not of the same moment; use --write racy or\n"
                        "            locked\n"
                        "\n"
                        "Target: validation loss 0.32320, 1 % above the lowest of any epoch (sync);\n"
                        "linear between two epochs, not before the first. Seconds are of training,\n"
                        "without loading and evaluation. Delay: mean, in clocks (updates of one work\n"
                        "item). Waiting: within epochs; at their ends all meet in every mode.\n"
                        "Rates, inverse, the best of 3 for each mode: async 0.5 (1 x auto), sync 0.5\n"
                        "(0.333 x auto), backup:3 0.5 (1 x auto).\n"
                        "Fastest to 0.32320: sync, in 5.360 s, and with the fewest epochs (2.68). Not\n"
                        "reached by: async, backup:3. One seed shows no spread: --seeds 5 tells a win\n"
                        "from chance.\n"
                        "sync waited 58 % of the time, mostly for worker 3.\n"
                        "backup:3 waited 5 % of the time, and dropped 10.0 % of the gradients.\n");
    free(text);
    destroy_comparison(c);
}

/* As its report says, and by nothing else. */
static void whom_a_run_has_waited_for_is_said_when_it_is_one(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->run[1].kept->report.waits_mostly_for = 0;
    char *text = text_of(compare_put_table, c);
    assert_non_null(strstr(text, "\nsync waited 58 % of the time, mostly for worker 0.\n"));
    free(text);
    c->run[1].kept->report.waits_mostly_for = UINT32_MAX;
    text = text_of(compare_put_table, c);
    assert_non_null(strstr(text, "\nsync waited 58 % of the time.\n"));
    free(text);
    destroy_comparison(c);
}

/* What is small is not nothing. */
static void small_numbers_are_shown(void **state) {
    (void)state;
    static const struct made SMALL = {"async", {1e-6, 1e-7, 2e-9, 1e-9}, 1e-6, 0, 0, 0.001};
    char cell[32];
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->target = NAN;
    add_made(c, &SMALL);
    compare_work_out(c);
    assert_string_equal(compare_cell(c, &c->run[0], 7, cell), "1.000e-09");
    assert_string_equal(compare_cell(c, &c->run[0], 1, cell), "4e-06");
    assert_string_equal(compare_cell(c, &c->run[0], 4, cell), "<0.1");
    c->run[0].kept->report.delay.clocks = 2e-5;
    assert_string_equal(compare_cell(c, &c->run[0], 4, cell), "<0.1");
    c->run[0].kept->report.delay.clocks = 0;
    assert_string_equal(compare_cell(c, &c->run[0], 4, cell), "0.0");
    c->run[0].kept->report.delay.clocks = 137.44;
    assert_string_equal(compare_cell(c, &c->run[0], 4, cell), "137.4");
    destroy_comparison(c);
}

/* Long names, large numbers, long sentences. */
static void no_line_of_the_table_is_longer_than_80_columns(void **state) {
    (void)state;
    static const struct made LARGE = {"ssp:1000000000000", {1e9, 1e9, 1e9, 1e9}, 1e6, 0.999, 4000, 123456};
    struct comparison *c = make_comparison();
    add_made(c, &LARGE);
    add_made(c, &LARGE);
    add_refused(c, "node", 0, "");
    c->target_is_given = true;
    c->target = 2e9;
    compare_letter(c);
    for (int round = 0; round < 2; round++) {
        compare_work_out(c);
        char *text = text_of(compare_put_table, c);
        assert_says(text, "n node");
        assert_says(text, "not run");
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            if (pen_width(line) > 80) fail_msg("%u columns: %s", pen_width(line), line);
        free(text);
        c->target = 0.324;
    }
    destroy_comparison(c);
}

/* async is there after 1 s and 2 epochs, sync after 2.8 s and 1.4 epochs; backup, and what was refused, is best in nothing. */
static void the_best_of_a_column_has_its_least_time_epochs_or_loss(void **state) {
    static const int BEST[COMPARE_COLUMNS] = {-1, 0, 1, -1, -1, -1, -1, 1, -1, -1, -1}; /* a run; -1: none is */
    (void)state;
    struct comparison *c = make_comparison();
    c->target_is_given = true;
    for (int reached = 1; reached >= 0; reached--) {
        c->target = reached ? 0.36 : 0.1;
        compare_work_out(c);
        for (unsigned column = 0; column < COMPARE_COLUMNS; column++)
            for (unsigned i = 0; i < c->n; i++) {
                const bool is = (int)i == BEST[column] && (reached || !COMPARE_TABLE[column].to_target);
                if (compare_is_best(c, &c->run[i], column) != is)
                    fail_msg("%s, %s", c->run[i].name, COMPARE_TABLE[column].title);
            }
    }
    destroy_comparison(c);
}

static void who_does_not_come_to_the_target_has_a_dash(void **state) {
    (void)state;
    char cell[32];
    struct comparison *c = make_comparison();
    c->target_is_given = true;
    c->target = 0.322;
    compare_work_out(c);
    assert_string_equal(compare_cell(c, &c->run[0], 1, cell), "-");
    assert_string_equal(compare_cell(c, &c->run[0], 2, cell), "-");
    assert_string_equal(compare_cell(c, &c->run[0], 7, cell), "0.33000");
    char *text = text_of(compare_put_table, c);
    assert_says(text, "as asked for");
    assert_says(text, "reached by: async, backup:3.");
    free(text);
    c->target = 0.1;
    compare_work_out(c);
    text = text_of(compare_put_table, c);
    assert_says(text, "No mode came to the target.");
    free(text);
    destroy_comparison(c);
}

static void a_run_that_was_stopped_is_marked(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->run[1].kept->report.stopped = 1;
    char *text = text_of(compare_put_table, c);
    assert_says(text, "0.32000 *\n");
    assert_says(text, "\n* stopped before its end\n");
    free(text);
    destroy_comparison(c);
}

/* However many modes there are, and however long their names: no sentence ends in the middle of one. */
static void sentences_of_many_long_names_are_whole(void **state) {
    (void)state;
    static const struct made FAR = {"far", {0.9, 0.8, 0.7, 0.6}, 1, 0, 0, NAN};
    static char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    unsigned said = 0;
    struct comparison *c = make_comparison();
    while (c->n < COMPARE_MODES) {
        add_made(c, &FAR);
        memset(c->run[c->n - 1].name, 'x', 47);
        snprintf(c->run[c->n - 1].name + 45, 3, "%02u", c->n);
    }
    compare_letter(c);
    compare_work_out(c);
    const unsigned n = compare_sentences(c, sentence);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(sentence[i][strlen(sentence[i]) - 1], '.');
        said += strstr(sentence[i], "Not reached by: ") && strstr(sentence[i], "xxx16.");
    }
    assert_int_equal(said, 1);
    destroy_comparison(c);
}

/* Who wants the automatic rates gets no winner of them. */
static void without_tuning_there_is_no_verdict(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    c->untuned = true;
    char *text = text_of(compare_put_table, c);
    assert_null(strstr(text, "Fastest"));
    assert_non_null(strstr(text, "No verdict: rates are the automatic ones"));
    free(text);
    destroy_comparison(c);
}

/* Nothing is said that the figures do not say. */
/* The mode that is named first is fastest; the other one needs as many epochs, and no fewer. */
static void of_modes_that_need_as_many_epochs_the_fastest_is_told(void **state) {
    (void)state;
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = 1;
    add_made(c, &MADE_SLOW);
    add_made(c, &MADE_QUICK);
    compare_letter(c);
    compare_work_out(c);
    char *text = text_of(compare_put_table, c);
    assert_tells(text, "Fastest to 0.33330: async, in 1.835 s, and with the fewest epochs (3.67). One seed shows no spread");
    free(text);
    destroy_comparison(c);
}

static void sentences_are_left_out_where_there_is_nothing_to_say(void **state) {
    (void)state;
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    struct comparison *c = make_comparison();
    assert_int_equal(compare_sentences(c, sentence), 5);
    c->run[2].kept->report.dropped = 0;
    assert_int_equal(compare_sentences(c, sentence), 4);
    c->run[1].kept->report.wait_fraction = 0.01;
    c->run[2].kept->report.wait_fraction = 0.01;
    assert_int_equal(compare_sentences(c, sentence), 3);
    for (unsigned i = 0; i < 3; i++) kept_destroy(c->run[i].kept);
    for (unsigned i = 0; i < 3; i++) c->run[i].n_seeds = 0;
    compare_work_out(c);
    assert_int_equal(compare_sentences(c, sentence), 0);
    destroy_comparison(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_target_is_one_percent_above_the_lowest_loss),
        cmocka_unit_test(of_runs_that_overfit_the_best_epoch_counts),
        cmocka_unit_test(a_mode_that_is_asked_for_again_has_a_name_of_its_own),
        cmocka_unit_test(what_ran_in_place_of_a_mode_is_said),
        cmocka_unit_test(waits_and_drops_of_one_run_are_one_sentence),
        cmocka_unit_test(times_that_are_mostly_noise_are_called_so),
        cmocka_unit_test(when_a_run_comes_to_the_target_is_interpolated),
        cmocka_unit_test(without_validation_the_training_losses_count),
        cmocka_unit_test(an_epoch_that_was_stopped_counts_as_far_as_it_came),
        cmocka_unit_test(each_run_has_a_letter_of_its_own),
        cmocka_unit_test(the_table_is_as_it_should_be),
        cmocka_unit_test(whom_a_run_has_waited_for_is_said_when_it_is_one),
        cmocka_unit_test(small_numbers_are_shown),
        cmocka_unit_test(no_line_of_the_table_is_longer_than_80_columns),
        cmocka_unit_test(the_best_of_a_column_has_its_least_time_epochs_or_loss),
        cmocka_unit_test(who_does_not_come_to_the_target_has_a_dash),
        cmocka_unit_test(a_run_that_was_stopped_is_marked),
        cmocka_unit_test(sentences_of_many_long_names_are_whole),
        cmocka_unit_test(without_tuning_there_is_no_verdict),
        cmocka_unit_test(of_modes_that_need_as_many_epochs_the_fastest_is_told),
        cmocka_unit_test(sentences_are_left_out_where_there_is_nothing_to_say),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
