/* cli: the live display's lines, for screens of all sizes. No terminal: what is drawn is pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/draw.h"
#include "cli/pen.h"

#define MOST_LINES   64
#define MOST_WORKERS 5000

static int deadline(void **state) {
    (void)state;
    alarm(120);
    return 0;
}

/* ---- frames ---- */

static const double LOSSES[] = {0.5, 0.4, 0.35, 0.325};

/* A run in the middle of its fifth epoch, all of whose workers do the same. */
static struct draw_state middle(uint32_t n_workers) {
    static struct draw_worker worker[MOST_WORKERS];
    assert_true(n_workers <= MOST_WORKERS);
    for (uint32_t i = 0; i < n_workers; i++)
        worker[i] = (struct draw_worker){.rank = i, .examples_per_second = 150000, .compute = 0.75, .wait = 0.125};
    return (struct draw_state){.epoch = 5,
                               .epochs = 10,
                               .share = 0.5,
                               .examples_per_second = 1234567,
                               .loss = 0.3125,
                               .seconds_left = 80,
                               .losses_before = LOSSES,
                               .n_before = 4,
                               .worker = worker,
                               .n_workers = n_workers};
}

static const struct draw_screen ASCII_80 = {.columns = 80, .rows = 24};
static const struct draw_screen BLOCKS_80 = {.columns = 80, .rows = 24, .blocks = true};

/* What was drawn, cut into lines. */
struct drawn {
    char *text;
    unsigned n;
    const char *line[MOST_LINES];
};

static struct drawn draw(const struct draw_state *state, const struct draw_screen *screen) {
    struct drawn d = {0};
    size_t bytes;
    FILE *out = open_memstream(&d.text, &bytes);
    assert_non_null(out);
    const unsigned n = draw_frame(state, screen, out);
    fclose(out);
    assert_true(bytes > 0 && d.text[bytes - 1] == '\n');
    for (char *at = d.text, *end; (end = strchr(at, '\n')); at = end + 1) {
        assert_true(d.n < MOST_LINES);
        *end = '\0';
        d.line[d.n++] = at;
    }
    assert_int_equal(d.n, n);
    return d;
}

/* Characters that take a column: no escape sequences, no further bytes of UTF-8. */
static unsigned width(const char *line) {
    unsigned n = 0;
    for (const char *at = line; *at; at++) {
        if (*at == '\033')
            while (*at != 'm') at++;
        else
            n += ((unsigned char)*at & 0xc0) != 0x80;
    }
    return n;
}

static unsigned count(const char *text, const char *what) {
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static void assert_has(const char *line, const char *words) {
    if (!strstr(line, words)) fail_msg("\"%s\" is not in \"%s\"", words, line);
}

/* ---- sizes ---- */

static const unsigned WIDTHS[] = {1, 5, 12, 20, 40, 59, 60, 71, 72, 79, 80, 100, 139, 140, 199, 200, 400};
static const unsigned HEIGHTS[] = {1, 2, 3, 4, 5, 6, 9, 12, 24, 50};
static const uint32_t CROWDS[] = {0, 1, 2, 3, 8, 16, 33, 64, 300, MOST_WORKERS};
#define EACH(i, list) (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)

static void assert_fits(const struct draw_state *state, const struct draw_screen *screen) {
    const struct drawn d = draw(state, screen);
    for (unsigned i = 0; i < d.n; i++)
        if (width(d.line[i]) > screen->columns)
            fail_msg("%u columns, %u workers: a line of %u: %s", screen->columns, state->n_workers, width(d.line[i]),
                     d.line[i]);
    if (d.n > 1 && d.n > screen->rows - 1) fail_msg("%u lines on a screen of %u", d.n, screen->rows);
    if (d.n > 2 + screen->rows / 3) fail_msg("%u lines for %u workers on a screen of %u", d.n, state->n_workers, screen->rows);
    free(d.text);
}

static void frames_fit_every_screen(void **state) {
    (void)state;
    for
        EACH(w, WIDTHS)
        for
            EACH(h, HEIGHTS)
            for
                EACH(c, CROWDS)
            for (unsigned look = 0; look < 4; look++) {
                const struct draw_state s = middle(CROWDS[c]);
                const struct draw_screen screen = {
                    .columns = WIDTHS[w], .rows = HEIGHTS[h], .blocks = look & 1, .colours = look & 2};
                assert_fits(&s, &screen);
            }
}

static void the_strangest_numbers_fit(void **state) {
    (void)state;
    const double numbers[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e-300, 999.4999, 999.5, 9.995e5, 1e15, 1e300};
    for
        EACH(w, WIDTHS)
        for
            EACH(i, numbers) {
                const double x = numbers[i];
                const struct draw_worker worker[2] = {{.rank = 4095, .examples_per_second = x, .compute = x, .wait = x},
                                                      {.rank = 4096, .examples_per_second = 1, .compute = 1, .wait = x}};
                const double losses[2] = {x, 1};
                const struct draw_state s = {.epoch = 1000000,
                                             .epochs = 1000000,
                                             .share = x,
                                             .examples_per_second = x,
                                             .loss = x,
                                             .seconds_left = x,
                                             .losses_before = losses,
                                             .n_before = 2,
                                             .worker = worker,
                                             .n_workers = 2};
                const struct draw_screen screen = {.columns = WIDTHS[w], .rows = 24, .blocks = true};
                char words[128];
                assert_fits(&s, &screen);
                draw_words(&s, words, sizeof words);
                assert_in_range(strlen(words), 20, 96);
            }
}

static void the_first_line_and_the_grid_fill_the_width(void **state) {
    (void)state;
    const unsigned widths[] = {40, 79, 80, 139};
    for
        EACH(w, widths) {
            const struct draw_state s = middle(1);
            const struct draw_screen screen = {.columns = widths[w], .rows = 24, .blocks = true, .colours = true};
            const struct drawn d = draw(&s, &screen);
            assert_int_equal(d.n, 4);
            assert_int_equal(width(d.line[0]), widths[w]);
            assert_int_equal(width(d.line[3]), widths[w]);
            free(d.text);
        }
}

static void wide_screens_have_speed_beside_the_bar(void **state) {
    (void)state;
    const struct draw_state s = middle(8);
    const struct draw_screen screen = {.columns = 200, .rows = 50, .blocks = true};
    const struct drawn d = draw(&s, &screen);
    assert_int_equal(d.n, 4); /* bar and speed, heading, 2 times 4 workers */
    assert_has(d.line[0], "epoch  5/10");
    assert_has(d.line[0], "examples/s");
    assert_in_range(width(d.line[0]), 160, 200);
    assert_int_equal(width(d.line[2]), 197); /* 4 equal cells of 47, gaps of 3 */
    free(d.text);
}

static void small_screens_have_fewer_lines(void **state) {
    (void)state;
    const unsigned rows[] = {1, 3, 4, 6, 24}, lines[] = {1, 1, 2, 4, 5};
    for
        EACH(i, rows) {
            const struct draw_state s = middle(4);
            const struct draw_screen screen = {.columns = 80, .rows = rows[i]};
            const struct drawn d = draw(&s, &screen);
            if (d.n != lines[i]) fail_msg("%u lines on %u rows", d.n, rows[i]);
            free(d.text);
        }
}

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

/* ---- how it looks ---- */

static void without_blocks_everything_is_ascii(void **state) {
    (void)state;
    for
        EACH(c, CROWDS) {
            const struct draw_state s = middle(CROWDS[c]);
            const struct drawn d = draw(&s, &ASCII_80);
            for (unsigned i = 0; i < d.n; i++)
                for (const char *at = d.line[i]; *at; at++) assert_in_range((unsigned char)*at, ' ', '~');
            free(d.text);
        }
}

static void colours_end_before_their_line_does(void **state) {
    (void)state;
    const struct draw_state s = middle(64);
    for
        EACH(w, WIDTHS) {
            const struct draw_screen screen = {.columns = WIDTHS[w], .rows = 24, .blocks = true, .colours = true};
            const struct drawn d = draw(&s, &screen);
            for (unsigned i = 0; i < d.n; i++) {
                const unsigned ends = count(d.line[i], "\033[0m");
                assert_int_equal(2 * ends, count(d.line[i], "\033["));
                if (ends == 0) continue;
                const char *last = d.line[i];
                for (const char *at = last; (at = strstr(at, "\033[")); at++) last = at;
                assert_memory_equal(last, "\033[0m", 4);
            }
            free(d.text);
        }
}

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
    s.seconds_left = NAN;
    draw_words(&s, text, sizeof text);
    assert_string_equal(text, "epoch 5 of 10: 50 %, 1.23 M examples/s, loss 0.31250");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_fit_every_screen),
        cmocka_unit_test(the_strangest_numbers_fit),
        cmocka_unit_test(the_first_line_and_the_grid_fill_the_width),
        cmocka_unit_test(wide_screens_have_speed_beside_the_bar),
        cmocka_unit_test(small_screens_have_fewer_lines),
        cmocka_unit_test(ascii_lines_are_these),
        cmocka_unit_test(the_bar_has_a_segment_for_each_epoch),
        cmocka_unit_test(the_bar_is_empty_at_the_beginning_and_full_at_the_end),
        cmocka_unit_test(an_epoch_that_is_not_done_never_has_100_percent),
        cmocka_unit_test(the_time_left_is_said_in_units_that_fit),
        cmocka_unit_test(a_loss_that_falls_is_told_from_one_that_rises),
        cmocka_unit_test(the_losses_of_all_epochs_are_a_line_of_blocks),
        cmocka_unit_test(the_epoch_that_goes_on_is_compared_only_with_the_first_one),
        cmocka_unit_test(only_the_last_losses_are_shown_when_there_are_many),
        cmocka_unit_test(a_worker_has_a_bar_of_what_it_does),
        cmocka_unit_test(few_workers_stand_in_a_grid),
        cmocka_unit_test(too_many_workers_are_summed_up_and_shown_as_one_character_each),
        cmocka_unit_test(workers_that_joined_are_counted),
        cmocka_unit_test(without_blocks_everything_is_ascii),
        cmocka_unit_test(colours_end_before_their_line_does),
        cmocka_unit_test(short_numbers_have_six_columns),
        cmocka_unit_test(a_pen_cuts_between_characters),
        cmocka_unit_test(words_say_the_same_in_one_line),
    };
    return cmocka_run_group_tests_name("draw", tests, deadline, NULL);
}
