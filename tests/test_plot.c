/* cli: axes, and curves as text: small plots are known character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/plot.h"
#include "cli/compare/plot_range.h"
#include "cli/compare/scale.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- axes ---- */

static void assert_ticks(const struct scale *s, const char *expected) {
    char all[256] = "", words[16];
    for (unsigned i = 0; i < s->n_ticks; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? " " : "", scale_words(s, i, words));
    }
    assert_string_equal(all, expected);
}

static void linear_axes_have_round_numbers(void **state) {
    (void)state;
    static const struct {
        double least, most;
        unsigned ticks;
        const char *expected;
    } CASES[] = {
        {0, 10, 5, "0 2 4 6 8 10"},       {0.288, 0.4, 5, "0.30 0.35 0.40"},
        {1, 6, 5, "1 2 3 4 5 6"},         {-1, 1, 4, "-1.0 -0.5 0.0 0.5 1.0"},
        {0, 123456, 3, "0 50000 100000"}, {1e-7, 5e-7, 4, "1e-07 2e-07 3e-07 4e-07 5e-07"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct scale s;
        scale_linear(&s, CASES[i].least, CASES[i].most, CASES[i].ticks);
        assert_false(s.log);
        assert_ticks(&s, CASES[i].expected);
    }
}

static void logarithmic_axes_have_ones_twos_and_fives(void **state) {
    (void)state;
    struct scale s;
    scale_log(&s, 0.03, 4, 8);
    assert_true(s.log);
    assert_ticks(&s, "0.05 0.1 0.2 0.5 1 2");
    scale_log(&s, 0.001, 1000, 5);
    assert_ticks(&s, "0.01 1 100"); /* every second power of ten */
    scale_log(&s, 3, 5, 4);         /* less than a power of ten: round numbers */
    assert_true(s.log);
    assert_ticks(&s, "3.0 3.5 4.0 4.5 5.0");
}

static void a_place_on_an_axis_is_a_share_of_it(void **state) {
    (void)state;
    struct scale s;
    scale_linear(&s, 2, 4, 4);
    assert_true(fabs(scale_place(&s, 2)) < 1e-12 && fabs(scale_place(&s, 4) - 1) < 1e-12);
    assert_true(fabs(scale_place(&s, 2.5) - 0.25) < 1e-12);
    scale_log(&s, 1, 100, 4);
    assert_true(fabs(scale_place(&s, 10) - 0.5) < 1e-12);
    assert_true(scale_place(&s, 0) < 0); /* nowhere on it */
}

static void a_range_of_one_value_gets_room_around_it(void **state) {
    (void)state;
    struct scale s;
    scale_linear(&s, 0.5, 0.5, 3);
    assert_true(s.from < 0.5 && s.to > 0.5 && s.n_ticks > 0);
    scale_linear(&s, 0, 0, 3);
    assert_true(s.from < 0 && s.to > 0);
    scale_log(&s, 7, 7, 3);
    assert_true(s.from < 7 && s.to > 7);
}

/* ---- plots ---- */

static char *draw(const struct plot *plot, const struct plot_screen *screen, unsigned *lines_out) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    *lines_out = plot_draw(plot, screen, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static unsigned count(const char *text, char letter) {
    unsigned n = 0;
    for (; *text; text++) n += *text == letter;
    return n;
}

static void assert_drawn(const struct plot *plot, const struct plot_screen *screen, const char *expected) {
    unsigned lines, n = 0;
    char *text = draw(plot, screen, &lines);
    assert_string_equal(text, expected);
    for (const char *at = text; (at = strchr(at, '\n')); at++) n++;
    assert_int_equal(lines, n);
    free(text);
}

static const struct plot_point DOWN[] = {{1, 4}, {2, 3}, {3, 2}, {4, 1}};
static const struct plot_point LEVEL[] = {{1, 4}, {2, 2}, {3, 2}, {4, 2}};

static const struct plot_curve TWO[] = {{.name = "async", .mark = 'a', .point = DOWN, .n = 4},
                                        {.name = "sync", .mark = 's', .point = LEVEL, .n = 4}};
static const struct plot_screen SMALL = {.columns = 36, .rows = 12};

static void two_curves_and_a_target_are_drawn_as_they_should_be(void **state) {
    (void)state;
    const struct plot plot = {
        .title = "loss", .x_title = "epochs", .curve = TWO, .n_curves = 2, .target = 1.5, .x_whole = true};
    assert_drawn(&plot, &SMALL,
                 "loss   a async   s sync   - - target\n"
                 "4 +a.\n"
                 "  |  ....\n"
                 "  |    ......\n"
                 "3 +      ..  .a..\n"
                 "  |        ..    .....\n"
                 "2 +          .s.........s..........s\n"
                 "  |                       ....\n"
                 "  |- - - - - - - - - - - - - -.... -\n"
                 "1 +                               .a\n"
                 "  ++----------+---------+----------+\n"
                 "   1          2         3     epochs\n");
}

static void curves_that_coincide_take_turns(void **state) {
    (void)state;
    static const struct plot_point SLOW[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}};
    static const struct plot_curve SAME[] = {{.name = "sync", .mark = 's', .point = SLOW, .n = 7},
                                             {.name = "backup", .mark = 'b', .point = SLOW, .n = 7}};
    const struct plot plot = {.title = "loss", .x_title = "s", .curve = SAME, .n_curves = 2, .target = NAN};
    const struct plot_screen screen = {.columns = 32, .rows = 8};
    unsigned lines;
    char *text = draw(&plot, &screen, &lines);
    assert_true(count(text, 's') > 3 &&
                count(text, 'b') > 3); /* each at more than one of the seven points, but for the words */
    free(text);
}

static void a_wide_range_is_logarithmic_and_the_title_says_so(void **state) {
    (void)state;
    static const struct plot_point FALL[] = {{0.1, 100}, {1, 1}, {2, 0.1}};
    static const struct plot_point LONG[] = {{1, 100}, {100, 0.1}};
    static const struct plot_curve FALLING[] = {{.name = "async", .mark = 'a', .point = FALL, .n = 3},
                                                {.name = "sync", .mark = 's', .point = LONG, .n = 2}};
    struct plot plot = {.title = "loss", .x_title = "seconds", .curve = FALLING, .n_curves = 1, .target = NAN};
    struct scale x, y;
    unsigned lines;
    assert_true(plot_range(&plot, 5, 5, &x, &y));
    assert_true(y.log && !x.log);
    assert_true(x.from == 0);
    char *text = draw(&plot, &SMALL, &lines);
    assert_non_null(strstr(text, "loss, log scale   a async\n"));
    free(text);
    plot.n_curves = 2; /* one takes 50 times as long */
    assert_true(plot_range(&plot, 5, 5, &x, &y));
    assert_true(y.log && x.log);
    text = draw(&plot, &SMALL, &lines);
    assert_non_null(strstr(text, "loss, log scales   a async"));
    free(text);
}

static void what_is_no_number_is_left_out(void **state) {
    (void)state;
    static const struct plot_point HOLES[] = {{1, 2}, {2, NAN}, {3, INFINITY}, {4, 1}};
    static const struct plot_point NOTHING[] = {{1, NAN}};
    const struct plot_curve holes = {.name = "async", .mark = 'a', .point = HOLES, .n = 4},
                            nothing = {.name = "sync", .mark = 's', .point = NOTHING, .n = 1};
    struct plot plot = {.title = "loss", .x_title = "epochs", .curve = &holes, .n_curves = 1, .target = NAN, .x_whole = true};
    unsigned lines;
    char *text = draw(&plot, &SMALL, &lines);
    assert_int_equal(count(text, 'a'), 2 + 2); /* in the legend "a async"; two points */
    free(text);
    plot.curve = &nothing;
    text = draw(&plot, &SMALL, &lines);
    assert_int_equal(lines, 0);
    assert_string_equal(text, "");
    free(text);
}

/* Whatever the screen: no line is longer, and there are no more of them. */
static void plots_fit_their_screen(void **state) {
    (void)state;
    static const char *const NAMES[] = {"async", "sync", "ssp:4", "ssp:16", "backup:6", "local:16", "node:4", "racy"};
    struct plot_point point[8][50];
    struct plot_curve curve[8];
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned k = 0; k < 50; k++) point[i][k] = (struct plot_point){(k + 1) * (i + 1.0), 0.3 + 0.1 * (i + 1) / (k + 1)};
        curve[i] = (struct plot_curve){.name = NAMES[i], .mark = (char)('a' + i), .point = point[i], .n = 50};
    }
    const struct plot plot = {.title = "loss", .x_title = "seconds", .curve = curve, .n_curves = 8, .target = 0.31};
    for (unsigned columns = 32; columns <= 120; columns += 11) {
        for (int blocks = 0; blocks < 2; blocks++) {
            const struct plot_screen screen = {.columns = columns, .rows = 16, .blocks = blocks != 0};
            unsigned lines;
            char *text = draw(&plot, &screen, &lines);
            assert_in_range(lines, 8, 16);
            for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                if (pen_width(line) > columns) fail_msg("%u columns: %s", columns, line);
                for (const char *at = line; !blocks && *at; at++) assert_in_range((unsigned char)*at, ' ', '~');
            }
            free(text);
        }
    }
}

static void colours_are_said_once_for_neighbours(void **state) {
    (void)state;
    const struct plot plot = {
        .title = "loss", .x_title = "epochs", .curve = TWO, .n_curves = 1, .target = NAN, .x_whole = true};
    const struct plot_screen screen = {.columns = 36, .rows = 12, .blocks = true, .colours = true};
    unsigned lines;
    char *text = draw(&plot, &screen, &lines);
    assert_non_null(strstr(text, "\033[36ma\033[0m async"));
    assert_non_null(strstr(text, "\033[2m└┴──────────┴"));
    assert_null(strstr(text, "·\033[0m\033[36m·"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_axes_have_round_numbers),
        cmocka_unit_test(logarithmic_axes_have_ones_twos_and_fives),
        cmocka_unit_test(a_place_on_an_axis_is_a_share_of_it),
        cmocka_unit_test(a_range_of_one_value_gets_room_around_it),
        cmocka_unit_test(two_curves_and_a_target_are_drawn_as_they_should_be),
        cmocka_unit_test(curves_that_coincide_take_turns),
        cmocka_unit_test(a_wide_range_is_logarithmic_and_the_title_says_so),
        cmocka_unit_test(what_is_no_number_is_left_out),
        cmocka_unit_test(plots_fit_their_screen),
        cmocka_unit_test(colours_are_said_once_for_neighbours),
    };
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
