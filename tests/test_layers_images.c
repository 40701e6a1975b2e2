/* Images on their way into a network: texts of --augment, what is drawn for an example, moving and normalising, and the means and
 * deviations of channels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layers/augment.h"
#include "layers/images.h"

/* ---- texts ---- */

static void texts_are_read_in_any_order(void **state) {
    static const struct {
        const char *text;
        struct shmt_augment want;
    } GOOD[] = {{"", {0, 0, false}},
                {"none", {0, 0, false}},
                {"  ", {0, 0, false}},
                {"shift:2 flip crop:4", {2, 4, true}},
                {" crop:1024   shift:1 ", {1, 1024, false}},
                {"flip", {0, 0, true}}};
    char why[200], text[64];
    (void)state;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        struct shmt_augment got, again;
        assert_int_equal(shmt_augment_read(GOOD[i].text, &got, why, sizeof why), 0);
        shmt_augment_write(&got, text, sizeof text);
        assert_int_equal(shmt_augment_read(text, &again, why, sizeof why), 0);
        assert_true(again.shift == got.shift && again.crop == got.crop && again.flips == got.flips);
        assert_int_equal(got.shift, GOOD[i].want.shift);
        assert_int_equal(got.crop, GOOD[i].want.crop);
        assert_int_equal(got.flips, GOOD[i].want.flips);
        assert_int_equal(shmt_augment_is_wanted(&got), got.shift + got.crop + got.flips > 0);
    }
}

static void mistakes_are_named_with_their_column(void **state) {
    static const struct {
        const char *text, *why;
    } BAD[] = {{"shfit:2", "column 1: there is no change \"shfit:2\": write shift:PIXELS, crop:PIXELS or flip"},
               {"flip  turn", "column 7: there is no change \"turn\""},
               {"flip none", "column 6: there is no change \"none\""},
               {"shift", "column 1: shift needs a number of pixels: write shift:2"},
               {"flip shift:", "column 12: shift \"\": expected a whole number of pixels from 1 to 1024"},
               {"shift:0", "column 7: shift \"0\": expected"},
               {"crop:-1", "column 6: crop \"-1\": expected"},
               {"crop:1025", "column 6: crop \"1025\": expected"},
               {"crop:99999999999999999999", "column 6: crop"},
               {"crop:2.5", "column 6: crop \"2.5\": expected"},
               {"shift:2 shift:3", "column 9: shift is given twice: leave one out"},
               {"flip flip", "column 6: flip is given twice: leave one out"},
               {"crop:4 flip:0.5", "column 12: flip takes no number: write flip"}};
    struct shmt_augment got;
    char why[200];
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(shmt_augment_read(BAD[i].text, &got, why, sizeof why), -1);
        if (strncmp(why, BAD[i].why, strlen(BAD[i].why)) != 0) fail_msg("%s: %s", BAD[i].text, why);
    }
}

static void moves_out_of_sight_are_refused(void **state) {
    const struct shmtrain_extent of = {1, 28, 20};
    struct shmt_augment wanted = {.shift = 19};
    char why[200];
    (void)state;
    assert_int_equal(shmt_augment_check(&wanted, &of, why, sizeof why), 0);
    wanted.crop = 1;
    assert_int_equal(shmt_augment_check(&wanted, &of, why, sizeof why), -1);
    assert_string_equal(why,
                        "shift:19 and crop:1 add up and move images of 28 x 20 pixels out of sight: take at most 19 of both");
    wanted.shift = 18;
    assert_int_equal(shmt_augment_check(&wanted, &of, why, sizeof why), 0);
    wanted.crop = 20;
    assert_int_equal(shmt_augment_check(&wanted, &of, why, sizeof why), -1);
    assert_string_equal(why, "crop:20 moves images of 28 x 20 pixels out of sight: take at most 19");
}

/* ---- drawing ---- */

static bool is_same(struct shmt_move a, struct shmt_move b) {
    return a.down == b.down && a.right == b.right && a.flipped == b.flipped;
}

static void draws_follow_from_seed_epoch_and_example_alone(void **state) {
    const struct shmt_augment wanted = {.shift = 2, .crop = 4, .flips = true};
    int differ[3] = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        const struct shmt_move move = shmt_augment_draw(&wanted, 7, 3, i);
        assert_true(is_same(shmt_augment_draw(&wanted, 7, 3, i), move));
        differ[0] += !is_same(shmt_augment_draw(&wanted, 8, 3, i), move);
        differ[1] += !is_same(shmt_augment_draw(&wanted, 7, 4, i), move);
        differ[2] += !is_same(shmt_augment_draw(&wanted, 7, 3, i + 1), move);
    }
    for (int k = 0; k < 3; k++) assert_in_range(differ[k], 950, 1000);
}

/* Every place within the bounds comes up about equally often, and none beyond. */
static void shifts_stay_within_their_bounds(void **state) {
    enum { MOST = 3, N = 70000, PLACES = 2 * MOST + 1 };
    const struct shmt_augment shift = {.shift = MOST, .flips = true}, crop = {.crop = MOST};
    int down[PLACES] = {0}, right[PLACES] = {0}, flipped = 0;
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const struct shmt_move move = shmt_augment_draw(&shift, 1, i % 7, i), cropped = shmt_augment_draw(&crop, 1, i % 7, i);
        assert_in_range(move.down + MOST, 0, PLACES - 1);
        assert_in_range(move.right + MOST, 0, PLACES - 1);
        assert_in_range(cropped.down + MOST, 0, PLACES - 1);
        assert_in_range(cropped.right + MOST, 0, PLACES - 1);
        assert_false(cropped.flipped);
        down[move.down + MOST]++;
        right[move.right + MOST]++;
        flipped += move.flipped;
    }
    for (int k = 0; k < PLACES; k++) {
        assert_in_range(down[k], N / PLACES * 0.95, N / PLACES * 1.05);
        assert_in_range(right[k], N / PLACES * 0.95, N / PLACES * 1.05);
    }
    assert_in_range(flipped, N * 0.49, N * 0.51);
}

/* ---- moving and normalising ---- */

enum { HEIGHT = 7, WIDTH = 5, CHANNELS = 3, PIXELS = CHANNELS * HEIGHT * WIDTH };

static void fill(float *image) {
    for (int i = 0; i < PIXELS; i++) image[i] = (float)(i * 37 % 101) / 8 + 1;
}

/* The pixel of a moved image, by the book. */
static float moved_pixel(const float *image, struct shmt_move move, int channel, int y, int x) {
    const int row = y - move.down, column = x - move.right;
    if (row < 0 || row >= HEIGHT || column < 0 || column >= WIDTH) return 0;
    return image[(channel * HEIGHT + row) * WIDTH + (move.flipped ? WIDTH - 1 - column : column)];
}

static void images_are_moved_with_zeros_at_their_edges(void **state) {
    static const float NORMAL[2 * CHANNELS] = {0.5f, 2, 10, 4, -3, 1};
    float image[PIXELS], out[PIXELS];
    struct shmt_images how = {.of = {CHANNELS, HEIGHT, WIDTH}};
    (void)state;
    fill(image);
    for (int normal = 0; normal < 2; normal++)
        for (int last = 0; last < 2; last++)
            for (int at = 0; at < 2 * 19 * 15; at++) {
                const struct shmt_move move = {.down = at / 2 / 15 - 9, .right = at / 2 % 15 - 7, .flipped = at % 2};
                how.normal = normal ? NORMAL : NULL;
                how.last = last;
                for (int i = 0; i < PIXELS; i++) out[i] = NAN;
                shmt_images_put(&how, move, image, out);
                for (int i = 0; i < PIXELS; i++) {
                    const int c = i / (HEIGHT * WIDTH), y = i / WIDTH % HEIGHT, x = i % WIDTH;
                    const float pixel = moved_pixel(image, move, c, y, x);
                    const float want = normal ? (pixel - NORMAL[2 * c]) / NORMAL[2 * c + 1] : pixel;
                    const float got = out[last ? (y * WIDTH + x) * CHANNELS + c : i];
                    if (!(fabsf(got - want) <= 1e-4f)) fail_msg("move %d, pixel %d: %g, not %g", at, i, got, want);
                }
            }
}

static void to_flip_twice_changes_nothing(void **state) {
    const struct shmt_images how = {.of = {CHANNELS, HEIGHT, WIDTH}};
    const struct shmt_move flip = {.flipped = true};
    float image[PIXELS], once[PIXELS], twice[PIXELS];
    (void)state;
    fill(image);
    shmt_images_put(&how, flip, image, once);
    shmt_images_put(&how, flip, once, twice);
    assert_memory_not_equal(image, once, sizeof image);
    assert_memory_equal(image, twice, sizeof image);
}

/* ---- means and deviations ---- */

static void channels_get_mean_0_and_deviation_1(void **state) {
    enum { N = 50 };
    struct shmt_images how = {.of = {1, HEIGHT, WIDTH}};
    struct shmt_spread before = {0}, after = {0};
    float image[PIXELS], out[PIXELS], normal[2], again[2];
    (void)state;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < HEIGHT * WIDTH; i++) image[i] = 100 + (float)(k * 31 + i * i) * 0.25f;
        shmt_images_add(&before, image, HEIGHT * WIDTH);
    }
    shmt_images_normal(&before, normal);
    how.normal = normal;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < HEIGHT * WIDTH; i++) image[i] = 100 + (float)(k * 31 + i * i) * 0.25f;
        shmt_images_put(&how, (struct shmt_move){0}, image, out);
        shmt_images_add(&after, out, HEIGHT * WIDTH);
    }
    shmt_images_normal(&after, again);
    assert_true(fabsf(again[0]) < 1e-5f && fabsf(again[1] - 1) < 1e-5f);
}

static void a_channel_of_one_value_is_only_centred(void **state) {
    static const float VALUES[] = {0, 1, 0.1f, -12345.678f, 1e30f};
    float plane[HEIGHT * WIDTH], normal[2];
    (void)state;
    for (size_t k = 0; k < sizeof VALUES / sizeof *VALUES; k++) {
        struct shmt_spread sums = {0};
        for (int i = 0; i < HEIGHT * WIDTH; i++) plane[i] = VALUES[k];
        shmt_images_add(&sums, plane, HEIGHT * WIDTH);
        shmt_images_normal(&sums, normal);
        assert_true(fabsf(normal[0] - VALUES[k]) <= 1e-6f * fabsf(VALUES[k]));
        assert_true(normal[1] == 1);
    }
}

/* Kelvin: black would be 150 deviations away. */
static void what_comes_in_at_an_edge_is_like_the_image(void **state) {
    static const float FAR[] = {300, 2, 300, 2, 300, 2}, NEAR[] = {1, 2, 1, 2, 1, 2};
    const struct shmt_move right = {.right = 1};
    struct shmt_images how = {.of = {CHANNELS, HEIGHT, WIDTH}, .normal = FAR};
    float image[PIXELS], out[PIXELS];
    (void)state;
    for (int i = 0; i < PIXELS; i++) image[i] = 301;
    shmt_images_put(&how, right, image, out);
    assert_true(out[0] == 0 && out[1] == 0.5f);
    how.normal = NEAR;
    shmt_images_put(&how, right, image, out);
    assert_true(out[0] == -0.5f && out[1] == 150);
}

static void tiny_deviations_make_no_infinite_numbers(void **state) {
    static const float VALUES[] = {1e-40f, 2e-40f, 3e-40f};
    struct shmt_spread spread = {0};
    float normal[2];
    (void)state;
    shmt_images_add(&spread, VALUES, 3);
    shmt_images_normal(&spread, normal);
    assert_true(isfinite(1 / normal[1]));
}

/* As bytes are, divided by 255: they are as large as networks want them. */
static void a_channel_from_0_to_1_is_only_centred(void **state) {
    float plane[HEIGHT * WIDTH], normal[2];
    struct shmt_spread sums = {0};
    (void)state;
    for (int i = 0; i < HEIGHT * WIDTH; i++) plane[i] = (float)(i % 3) / 2;
    shmt_images_add(&sums, plane, HEIGHT * WIDTH - 2); /* whole turns */
    shmt_images_normal(&sums, normal);
    assert_true(fabsf(normal[0] - 0.5f) < 1e-6f);
    assert_true(normal[1] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_read_in_any_order),
                                       cmocka_unit_test(mistakes_are_named_with_their_column),
                                       cmocka_unit_test(moves_out_of_sight_are_refused),
                                       cmocka_unit_test(draws_follow_from_seed_epoch_and_example_alone),
                                       cmocka_unit_test(shifts_stay_within_their_bounds),
                                       cmocka_unit_test(images_are_moved_with_zeros_at_their_edges),
                                       cmocka_unit_test(to_flip_twice_changes_nothing),
                                       cmocka_unit_test(channels_get_mean_0_and_deviation_1),
                                       cmocka_unit_test(a_channel_of_one_value_is_only_centred),
                                       cmocka_unit_test(a_channel_from_0_to_1_is_only_centred),
                                       cmocka_unit_test(what_comes_in_at_an_edge_is_like_the_image),
                                       cmocka_unit_test(tiny_deviations_make_no_infinite_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
