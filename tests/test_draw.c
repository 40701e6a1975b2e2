/* cli: what the live display's lines say of a run and of its workers. No terminal: what is drawn is pure. Screens of all sizes:
 * test_draw_screens.c. */
#include "draw_help.h"

#include <math.h>

#include "cli/pen.h"

/* ---- contents ---- */

static void ascii_lines_are_these(void **state) {
    (void)state;
    const struct draw_state s = middle(4);
    const struct drawn d = draw(&s, &ASCII_80);
    assert_int_equal(d.n, 5);
    assert_string_equal(d.line[0], "epoch  5/10  50 %  ===================-........................        80 s left");
    assert_string_equal(d.line[1], "1.23 M examples/s   loss 0.31250   by epoch  -0.02500");
    assert_string_equal(d.line[2], "4 workers   # computing 75 %   _ waiting 13 %   . evaluating 12 %    examples/s");
    assert_string_equal(d.line[3], "0 ######################___....  150 k   1 ######################___....  150 k");
    assert_string_equal(d.line[4], "2 ######################___....  150 k   3 ######################___....  150 k");
    free(d.text);
}

static void runs_over_several_hosts_have_a_line_about_the_network(void **state) {
    (void)state;
    const struct draw_screen narrow = {.columns = 40, .rows = 24}, low = {.columns = 80, .rows = 5};
    struct draw_state s = middle(1);
    s.has_network = true;
    s.sent = 12345678;
    s.received = 987;
    s.exchanges = 1234;
    struct drawn d = draw(&s, &ASCII_80);
    assert_int_equal(d.n, 5);
    assert_string_equal(d.line[2], "network   12.3 MB/s sent     987 B/s received   1.23 k exchanges");
    assert_has(d.line[3], "1 worker");
    free(d.text);
    s.received = NAN; /* not known yet */
    d = draw(&s, &narrow);
    assert_string_equal(d.line[2], "net 12.3 MB/s sent     - B/s received");
    free(d.text);
    d = draw(&s, &low);
    assert_int_equal(d.n, 2);
    free(d.text);
    s.has_network = false;
    d = draw(&s, &ASCII_80);
    assert_int_equal(d.n, 4);
    free(d.text);
}

static void the_bar_has_a_segment_for_each_epoch(void **state) {
    (void)state;
    struct draw_state s = middle(0);
    s.epochs = 4;
    s.epoch = 2;
    s.seconds_left = NAN;
    struct drawn d = draw(&s, &ASCII_80);
    /* 61 cells in segments of 15, 14, 14, 15 with gaps of one: one epoch is done, and half of the next one */
    const char *bar = strchr(d.line[0], '=');
    assert_non_null(bar);
    assert_int_equal(strcspn(bar, " "), strspn(bar, "="));
    bar += strspn(bar, "=") + 1;
    const size_t done = strspn(bar, "=-"), all = strcspn(bar, " ");
    assert_in_range(2 * done, all - 1, all + 1);
    for (int e = 2; e < 4; e++) {
        bar += strcspn(bar, " ") + 1;
        assert_true(strspn(bar, ".") >= 8);
    }
    free(d.text);
    s.epochs = 1000;
    d = draw(&s, &ASCII_80);
    assert_int_equal(count(d.line[0], "."), strspn(strchr(d.line[0], '.'), ".")); /* in one piece */
    free(d.text);
}

static void the_bar_is_empty_at_the_beginning_and_full_at_the_end(void **state) {
    (void)state;
    struct draw_state s = middle(0);
    s.epoch = 0;
    s.share = 0;
    struct drawn d = draw(&s, &BLOCKS_80);
    assert_int_equal(count(d.line[0], "━"), 0);
    assert_has(d.line[0], "epoch  0/10   0 %");
    free(d.text);
    s.epoch = 10;
    s.share = 1;
    d = draw(&s, &BLOCKS_80);
    assert_int_equal(count(d.line[0], "─"), 0);
    assert_true(count(d.line[0], "━") > 30);
    assert_has(d.line[0], "epoch 10/10 100 %");
    free(d.text);
}

static void an_epoch_that_is_not_done_never_has_100_percent(void **state) {
    (void)state;
    struct draw_state s = middle(0);
    s.share = 0.99999;
    struct drawn d = draw(&s, &ASCII_80);
    assert_has(d.line[0], " 99 %");
    free(d.text);
    s.share = 0.29;
    d = draw(&s, &ASCII_80);
    assert_has(d.line[0], " 29 %");
    free(d.text);
}

static void the_time_left_is_said_in_units_that_fit(void **state) {
    (void)state;
    const double seconds[] = {0, 0.4, 99, 100, 3599, 3600, 86399, 86400, 864000};
    const char *const words[] = {"  0 s left",        "  1 s left",        "  99 s left",
                                 "  1 min 40 s left", " 59 min 59 s left", "1 h 00 min left",
                                 "23 h 59 min left",  "1 d 00 h left",     "10 d 00 h left"};
    const char *const coarse[] = {"0 s left",    "1 s left",  "99 s left", "1 min left", "59 min left",
                                  "60 min left", "23 h left", "24 h left", "10 d left"};
    for
        EACH(i, seconds) {
            struct draw_state s = middle(0);
            const struct draw_screen narrow = {.columns = 40, .rows = 24};
            s.seconds_left = seconds[i];
            struct drawn d = draw(&s, &ASCII_80);
            assert_has(d.line[0], words[i]);
            free(d.text);
            d = draw(&s, &narrow);
            assert_has(d.line[0], coarse[i]);
            free(d.text);
        }
}

static void a_loss_that_falls_is_told_from_one_that_rises(void **state) {
    (void)state;
    const double losses[][2] = {{0.5, 0.4}, {0.4, 0.5}, {0.4, 0.400001}};
    const char *const blocks[] = {"↓ 0.10000", "↑ 0.10000", "→ 0.00000"}, *const ascii[] = {"-0.10000", "+0.10000", "=0.00000"};
    struct draw_state s = middle(0);
    for
        EACH(i, blocks) {
            s.losses_before = losses[i];
            s.n_before = 2;
            struct drawn d = draw(&s, &BLOCKS_80);
            assert_has(d.line[1], "loss 0.31250   by epoch ");
            assert_has(d.line[1], blocks[i]);
            free(d.text);
            d = draw(&s, &ASCII_80);
            assert_has(d.line[1], ascii[i]);
            free(d.text);
        }
}

static void the_losses_of_all_epochs_are_a_line_of_blocks(void **state) {
    (void)state;
    struct draw_state s = middle(0);
    struct drawn d = draw(&s, &BLOCKS_80);
    assert_has(d.line[1], "by epoch █▄▂▁ ↓ 0.02500"); /* 0.5, 0.4, 0.35, 0.325 */
    free(d.text);
    const double same[] = {0.25, NAN, 0.25};
    s.losses_before = same;
    s.n_before = 3;
    d = draw(&s, &BLOCKS_80);
    assert_has(d.line[1], "by epoch ▅▅ → 0.00000"); /* the one that nobody knows is left out */
    free(d.text);
}

/* A mean over a few examples differs from one over all of them by chance; later, by more than epochs differ. */
static void the_epoch_that_goes_on_is_compared_only_with_the_first_one(void **state) {
    (void)state;
    struct draw_state s = middle(0);
    s.n_before = 0;
    struct drawn d = draw(&s, &BLOCKS_80);
    assert_string_equal(d.line[1], "1.23 M examples/s   loss 0.31250");
    free(d.text);
    s.n_before = 1;
    d = draw(&s, &BLOCKS_80);
    assert_has(d.line[1], "loss 0.31250   by epoch █▁ ↓ 0.18750");
    free(d.text);
    s.loss = NAN;
    d = draw(&s, &BLOCKS_80);
    assert_string_equal(d.line[1], "1.23 M examples/s   loss -      ");
    free(d.text);
    s.loss = 100;
    s.n_before = 2;
    d = draw(&s, &BLOCKS_80);
    assert_has(d.line[1], "by epoch █▁ ↓ 0.10000");
    free(d.text);
}

static void only_the_last_losses_are_shown_when_there_are_many(void **state) {
    (void)state;
    double losses[1000];
    const struct draw_screen narrow = {.columns = 40, .rows = 24, .blocks = true};
    struct draw_state s = middle(0);
    for (int i = 0; i < 1000; i++) losses[i] = i < 900 ? 1e6 : 1; /* the early ones would flatten it */
    losses[998] = 2;
    s.losses_before = losses;
    s.n_before = 1000;
    struct drawn d = draw(&s, &BLOCKS_80);
    assert_has(d.line[1], "by epoch ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█▁ ↓ 1.00000");
    free(d.text);
    d = draw(&s, &narrow);
    assert_string_equal(d.line[1], "1.23 M/s  loss 0.31250 ▁▁▁▁█▁ ↓ 1.00000");
    free(d.text);
}

/* ---- workers ---- */

static void a_worker_has_a_bar_of_what_it_does(void **state) {
    (void)state;
    const struct draw_state s = middle(1);
    const struct drawn d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "1 worker   # computing 75 %   _ waiting 13 %   . evaluating 12 %");
    assert_int_equal(count(d.line[3], "#"), 53); /* of 71 cells */
    assert_int_equal(count(d.line[3], "_"), 9);  /* 62 for both */
    assert_int_equal(count(d.line[3], "."), 9);
    assert_has(d.line[3], "  150 k");
    free(d.text);
}

static void without_evaluation_nothing_is_said_of_it(void **state) {
    (void)state;
    struct draw_state s = middle(4);
    s.evaluates = false;
    const struct drawn d = draw(&s, &ASCII_80);
    assert_string_equal(d.line[2], "4 workers   # computing 75 %   _ waiting 13 %                        examples/s");
    free(d.text);
}

static void few_workers_stand_in_a_grid(void **state) {
    (void)state;
    const struct draw_state s = middle(8);
    const struct drawn d = draw(&s, &ASCII_80);
    assert_int_equal(d.n, 3 + 4);
    for (unsigned row = 0; row < 4; row++) {
        char first[8], second[8];
        snprintf(first, sizeof first, "%u #", 2 * row);
        snprintf(second, sizeof second, " %u #", 2 * row + 1);
        assert_memory_equal(d.line[3 + row], first, 3);
        assert_has(d.line[3 + row], second);
        assert_int_equal(count(d.line[3 + row], "150 k"), 2);
    }
    free(d.text);
}

static void too_many_workers_are_summed_up_and_shown_as_one_character_each(void **state) {
    (void)state;
    struct draw_worker worker[64];
    struct draw_state s = middle(64);
    memcpy(worker, s.worker, sizeof worker);
    s.worker = worker;
    worker[7].examples_per_second = 90000;
    worker[7].wait = 0.5;
    worker[7].compute = 0;
    worker[40].examples_per_second = 160000;
    worker[41].wait = 0;
    const struct drawn d = draw(&s, &BLOCKS_80);
    assert_int_equal(d.n, 2 + 5);
    assert_string_equal(d.line[3], "examples/s  least 90.0 k (worker 7)  median  150 k  most  160 k (worker 40)");
    assert_string_equal(d.line[4], "waiting     least    0 % (worker 41)  median   12 %  most   50 % (worker 7)");
    assert_int_equal(width(d.line[6]), 2 + 8 * 9);
    assert_int_equal(count(d.line[6], "▆"), 63);
    assert_int_equal(count(d.line[6], "▁"), 1);
    free(d.text);
}

static void workers_that_joined_are_counted(void **state) {
    (void)state;
    struct draw_worker worker[3];
    struct draw_state s = middle(3);
    memcpy(worker, s.worker, sizeof worker);
    worker[1].joined = worker[2].joined = true;
    worker[2].rank = 6; /* places between are free */
    s.worker = worker;
    const struct drawn d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "3 workers (2 joined)");
    assert_has(d.line[4], "6 #");
    free(d.text);
}

static void a_worker_that_stands_still_is_seen(void **state) {
    (void)state;
    struct draw_worker worker[2];
    struct draw_state s = middle(2);
    memcpy(worker, s.worker, sizeof worker);
    worker[1].stalled = true;
    s.worker = worker;
    const struct drawn d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "2 workers   ! 1 standing still   # computing 75 %");
    assert_has(d.line[3], "0 ###");
    assert_has(d.line[3], "1 !!!!!!!!!!!!!!!!!!!!!!!!!!!!");
    assert_int_equal(count(d.line[3], "!"), 29); /* all of its bar */
    free(d.text);
    s = middle(100); /* too many for bars */
    struct draw_worker many[100];
    memcpy(many, s.worker, sizeof many);
    many[7].stalled = true;
    s.worker = many;
    const struct drawn crowd = draw(&s, &BLOCKS_80);
    assert_int_equal(count(crowd.line[6], "!"), 1);
    free(crowd.text);
}

static void merging_has_a_part_of_the_bar(void **state) {
    (void)state;
    struct draw_worker worker[1];
    struct draw_state s = middle(1);
    memcpy(worker, s.worker, sizeof worker);
    worker[0].compute = 0.5;
    worker[0].merge = 0.25;
    s.worker = worker;
    s.merges = true;
    s.evaluates = false;
    struct drawn d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "1 worker   # computing 50 %   _ waiting 13 %   + merging 25 %");
    assert_int_equal(count(d.line[3], "#"), 36); /* of 71 cells */
    assert_int_equal(count(d.line[3], "+"), 17); /* 53 for both */
    assert_int_equal(count(d.line[3], "_"), 9);
    free(d.text);
    d = draw(&s, &BLOCKS_80);
    assert_int_equal(count(d.line[3], "▄"), 17);
    free(d.text);
}

static void delays_and_late_gradients_stand_where_there_is_room(void **state) {
    (void)state;
    struct draw_state s = middle(4);
    s.delay = 7031;
    struct drawn d = draw(&s, &ASCII_80);
    assert_string_equal(d.line[2], "4 workers   # computing 75 %   _ waiting 13 %   . evaluating 12 %   delay 7.03 k");
    free(d.text);
    s.evaluates = false;
    s.dropped = 0.124;
    d = draw(&s, &ASCII_80);
    assert_string_equal(d.line[2], "4 workers   # computing 75 %   _ waiting 13 %   dropped 12 %   delay 7.03 k");
    free(d.text);
    s.dropped = 0;
    s.folded = 0.031;
    d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "waiting 13 %   folded 3.1 %   delay 7.03 k");
    free(d.text);
    s.delay = 0; /* of everybody who waits for all others: nothing to say */
    s.folded = 0;
    d = draw(&s, &ASCII_80);
    assert_has(d.line[2], "waiting 13 %          ");
    free(d.text);
}

/* ---- pieces ---- */

static void short_numbers_have_six_columns(void **state) {
    (void)state;
    const double numbers[] = {0,     0.4,   1,     987,    999.4,  999.5, 1234, 9994, 9996,
                              12345, 99949, 99951, 999499, 999500, 1e9,   8e14, 1e15, NAN};
    const char *const words[] = {"     0", "     0", "     1", "   987", "   999", "1.00 k", "1.23 k", "9.99 k", "10.0 k",
                                 "12.3 k", "99.9 k", " 100 k", " 999 k", "1.00 M", "1.00 G", " 800 T", "     -", "     -"};
    for
        EACH(i, numbers) {
            char text[16];
            assert_string_equal(pen_short(numbers[i], text), words[i]);
        }
}

static void a_pen_cuts_between_characters(void **state) {
    (void)state;
    char *text;
    size_t bytes;
    struct pen pen = {.out = open_memstream(&text, &bytes), .columns = 5};
    pen_text(&pen, PEN_PLAIN, "a↓b");
    pen_text(&pen, PEN_RED, "↑↑↑"); /* two of them fit */
    pen_text(&pen, PEN_PLAIN, "c");
    fclose(pen.out);
    assert_string_equal(text, "a↓b↑↑");
    free(text);
}

static void words_say_the_same_in_one_line(void **state) {
    (void)state;
    char text[128];
    struct draw_state s = middle(4);
    draw_words(&s, text, sizeof text);
    assert_string_equal(text, "epoch 5 of 10: 50 %, 1.23 M examples/s, loss 0.31250, 80 s left");
    s.has_network = true;
    s.sent = 123456;
    draw_words(&s, text, sizeof text);
    assert_string_equal(text, "epoch 5 of 10: 50 %, 1.23 M examples/s, loss 0.31250, 80 s left, 123 kB/s sent");
    s.has_network = false;
    s.seconds_left = NAN;
    draw_words(&s, text, sizeof text);
    assert_string_equal(text, "epoch 5 of 10: 50 %, 1.23 M examples/s, loss 0.31250");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascii_lines_are_these),
        cmocka_unit_test(runs_over_several_hosts_have_a_line_about_the_network),
        cmocka_unit_test(the_bar_has_a_segment_for_each_epoch),
        cmocka_unit_test(the_bar_is_empty_at_the_beginning_and_full_at_the_end),
        cmocka_unit_test(an_epoch_that_is_not_done_never_has_100_percent),
        cmocka_unit_test(the_time_left_is_said_in_units_that_fit),
        cmocka_unit_test(a_loss_that_falls_is_told_from_one_that_rises),
        cmocka_unit_test(the_losses_of_all_epochs_are_a_line_of_blocks),
        cmocka_unit_test(the_epoch_that_goes_on_is_compared_only_with_the_first_one),
        cmocka_unit_test(only_the_last_losses_are_shown_when_there_are_many),
        cmocka_unit_test(a_worker_has_a_bar_of_what_it_does),
        cmocka_unit_test(without_evaluation_nothing_is_said_of_it),
        cmocka_unit_test(few_workers_stand_in_a_grid),
        cmocka_unit_test(too_many_workers_are_summed_up_and_shown_as_one_character_each),
        cmocka_unit_test(workers_that_joined_are_counted),
        cmocka_unit_test(a_worker_that_stands_still_is_seen),
        cmocka_unit_test(merging_has_a_part_of_the_bar),
        cmocka_unit_test(delays_and_late_gradients_stand_where_there_is_room),
        cmocka_unit_test(short_numbers_have_six_columns),
        cmocka_unit_test(a_pen_cuts_between_characters),
        cmocka_unit_test(words_say_the_same_in_one_line),
    };
    return cmocka_run_group_tests_name("draw", tests, deadline, NULL);
}
