/* cli: the live display's lines fit screens of all sizes and kinds, whatever the numbers are. What they say: test_draw.c. */
#include "draw_help.h"

#include <math.h>

/* ---- sizes ---- */

static const unsigned WIDTHS[] = {1, 5, 12, 20, 40, 59, 60, 71, 72, 79, 80, 100, 139, 140, 199, 200, 400};
static const unsigned HEIGHTS[] = {1, 2, 3, 4, 5, 6, 9, 12, 24, 50};
static const uint32_t CROWDS[] = {0, 1, 2, 3, 8, 16, 33, 64, 300, MOST_WORKERS};

static void assert_fits(const struct draw_state *state, const struct draw_screen *screen) {
    const struct drawn d = draw(state, screen);
    for (unsigned i = 0; i < d.n; i++)
        if (width(d.line[i]) > screen->columns)
            fail_msg("%u columns, %u workers: a line of %u: %s", screen->columns, state->n_workers, width(d.line[i]),
                     d.line[i]);
    if (d.n > 1 && d.n > screen->rows - 1) fail_msg("%u lines on a screen of %u", d.n, screen->rows);
    if (d.n > 2 + state->has_network + screen->rows / 3)
        fail_msg("%u lines for %u workers on a screen of %u", d.n, state->n_workers, screen->rows);
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
                struct draw_state s = middle(CROWDS[c]);
                s.has_network = look > 1;
                s.sent = s.received = 123456;
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
                const struct draw_worker worker[2] = {
                    {.rank = 4095, .examples_per_second = x, .compute = x, .wait = x, .merge = x},
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
                                             .merges = true,
                                             .delay = x,
                                             .dropped = x,
                                             .folded = x,
                                             .has_network = true,
                                             .sent = x,
                                             .received = x,
                                             .exchanges = UINT64_MAX,
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_fit_every_screen),
        cmocka_unit_test(the_strangest_numbers_fit),
        cmocka_unit_test(the_first_line_and_the_grid_fill_the_width),
        cmocka_unit_test(wide_screens_have_speed_beside_the_bar),
        cmocka_unit_test(small_screens_have_fewer_lines),
        cmocka_unit_test(without_blocks_everything_is_ascii),
        cmocka_unit_test(colours_end_before_their_line_does),
    };
    return cmocka_run_group_tests_name("draw_screens", tests, deadline, NULL);
}
