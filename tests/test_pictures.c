/* Images as text (cli/pictures.h): shades, halves of characters and greys; several side by side within the columns; what is said below
 * each; brightness of colours; images that are wider than the screen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pictures.h"

static FILE *file;
static char *text;
static size_t bytes;

static struct pictures *open_pictures(unsigned columns, enum pictures_ink ink, bool colours) {
    file = open_memstream(&text, &bytes);
    const struct pictures_wish wish = {.out = file, .columns = columns, .ink = ink, .colours = colours};
    assert_non_null(file);
    struct pictures *pictures = pictures_open(&wish);
    assert_non_null(pictures);
    return pictures;
}

static void add(struct pictures *pictures, const struct shmtrain_image *image, const char *predicted, const char *label) {
    assert_int_equal(pictures_add(pictures, image, predicted, label), 0);
}

static void expect(struct pictures *pictures, const char *want) {
    pictures_close(pictures);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, want);
    free(text);
}

static struct shmtrain_image image_of(uint32_t height, uint32_t width, const float *pixel) {
    return (struct shmtrain_image){.size = sizeof(struct shmtrain_image),
                                   .channels = 1,
                                   .height = height,
                                   .width = width,
                                   .pixel = pixel,
                                   .probability = NAN,
                                   .label = NAN};
}

/* A line is two rows of pixels. */
static void shades_are_means_of_two_rows(void **state) {
    static const float PIXEL[] = {0, 1, 1, 0.2f, 0, 1, 0, 0.2f, 1, 0, 0, 0};
    const struct shmtrain_image image = image_of(3, 4, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_ASCII, false);
    (void)state;
    add(pictures, &image, "7", NULL);
    expect(pictures, " @+:\n+\n1: 7\n");
}

static void halves_of_characters_are_light_or_dark(void **state) {
    static const float PIXEL[] = {0, 1, 1, 0, 0, 1, 0, 0.6f};
    const struct shmtrain_image image = image_of(2, 4, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_BLOCKS, false);
    (void)state;
    add(pictures, &image, "7", NULL);
    expect(pictures, " █▀▄\n1: 7\n");
}

static void greys_are_said_where_they_change(void **state) {
    static const float PIXEL[] = {0, 0, 1, 0, 0, 0.5f};
    const struct shmtrain_image image = image_of(2, 3, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_GREYS, true);
    (void)state;
    add(pictures, &image, "7", NULL);
    expect(pictures, "\033[38;5;232;48;5;232m▀▀\033[38;5;255;48;5;244m▀\033[0m\n1: 7\n");
}

/* Its label is known, it is right or wrong; the last line counts. */
static void what_was_predicted_and_what_it_is_stand_below(void **state) {
    static const float PIXEL[] = {1, 1};
    struct shmtrain_image image = image_of(1, 2, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_ASCII, false);
    (void)state;
    image.example = 16;
    image.predicted = image.label = 7;
    image.probability = 0.998f;
    add(pictures, &image, "7", "7");
    image.example = 17;
    image.label = 9;
    image.probability = 0.6123f;
    add(pictures, &image, "7", "9");
    expect(pictures,
           "++                          ++\n"
           "  17: 7 (99.8 %), is 7      x 18: 7 (61.2 %), is 9\n"
           "1 of 2 right (50.00 %)\n");
}

/* Is near, and never right. */
static void numbers_are_off_by_something(void **state) {
    static const float PIXEL[] = {1, 1};
    struct shmtrain_image image = image_of(1, 2, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_ASCII, false);
    (void)state;
    image.is_number = 1;
    image.predicted = 3.25f;
    image.label = 3.5f;
    add(pictures, &image, "3.25", "3.5");
    image.example = 1;
    image.predicted = 4;
    add(pictures, &image, "4", "3.5");
    expect(pictures,
           "++                          ++\n"
           "1: 3.25, is 3.5 (-0.25)     2: 4, is 3.5 (+0.5)\n"
           "off by 0.375 on average of 2\n");
}

static void what_is_wrong_is_red_in_colours(void **state) {
    static const float PIXEL[] = {1, 1};
    struct shmtrain_image image = image_of(1, 2, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_BLOCKS, true);
    (void)state;
    image.predicted = 7;
    image.label = 9;
    add(pictures, &image, "7", "9");
    expect(pictures, "▀▀\n\033[31m✗ 1: 7, is 9\033[0m\n0 of 1 right (0.00 %)\n");
}

/* No line is longer than the screen, and rows are filled. */
static void as_many_as_fit_stand_side_by_side(void **state) {
    enum { SIDE = 28, N = 5 };
    static float pixel[SIDE * SIDE];
    const struct shmtrain_image image = image_of(SIDE, SIDE, pixel);
    (void)state;
    for (int i = 0; i < SIDE * SIDE; i++) pixel[i] = 1;
    for (unsigned columns = 1; columns < 200; columns++) {
        struct pictures *pictures = open_pictures(columns, PICTURES_ASCII, false);
        for (int k = 0; k < N; k++) add(pictures, &image, "a label of many letters, more than fit", NULL);
        pictures_close(pictures);
        assert_int_equal(fclose(file), 0);
        unsigned lines = 0, longest = 0;
        for (const char *at = text; *at; at = strchr(at, '\n') + 1, lines++) {
            const unsigned length = (unsigned)strcspn(at, "\n");
            longest = length > longest ? length : longest;
        }
        const unsigned fit = (columns + 2) / 30, across = columns < 28 ? 1 : fit > N ? N : fit;
        assert_in_range(longest, 1, columns);
        if (columns >= 28) assert_int_equal(lines, (N + across - 1) / across * 15);
        free(text);
    }
}

/* Green is brighter than blue, and other numbers of channels count alike. */
static void colours_are_as_bright_as_to_the_eye(void **state) {
    static const float COLOURS[] = {0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1}, TWO[] = {1, 0, 1, 1};
    struct shmtrain_image image = {
        .size = sizeof image, .channels = 3, .height = 1, .width = 4, .pixel = COLOURS, .probability = NAN};
    struct pictures *pictures = open_pictures(80, PICTURES_BLOCKS, false);
    (void)state;
    add(pictures, &image, "7", NULL);
    expect(pictures, "▀  ▀\n1: 7\n");
    image.channels = 2;
    image.width = 2;
    image.pixel = TWO;
    pictures = open_pictures(80, PICTURES_ASCII, false);
    add(pictures, &image, "7", NULL);
    expect(pictures, "+:\n1: 7\n");
}

/* Numbers that are no bytes: black is the least, white the most. */
static void other_numbers_have_a_range_of_their_own(void **state) {
    static const float PIXEL[] = {-10, 300, -10, 300}, ALIKE[] = {5, 5};
    struct shmtrain_image image = image_of(2, 2, PIXEL);
    struct pictures *pictures = open_pictures(80, PICTURES_ASCII, false);
    (void)state;
    add(pictures, &image, "7", NULL);
    expect(pictures, " @\n1: 7\n");
    image = image_of(1, 2, ALIKE);
    pictures = open_pictures(80, PICTURES_ASCII, false);
    add(pictures, &image, "7", NULL);
    expect(pictures, "\n1: 7\n");
}

static void wide_images_are_made_smaller(void **state) {
    enum { WIDTH = 150, HEIGHT = 4 };
    static float pixel[HEIGHT * WIDTH];
    const struct shmtrain_image image = image_of(HEIGHT, WIDTH, pixel);
    struct pictures *pictures = open_pictures(80, PICTURES_BLOCKS, false);
    char want[80 * 3 + 16] = "";
    (void)state;
    for (int i = 0; i < HEIGHT * WIDTH; i++) pixel[i] = 1;
    size_t used = 0;
    for (int i = 0; i < WIDTH / 2; i++) used += (size_t)snprintf(want + used, sizeof want - used, "█");
    snprintf(want + used, sizeof want - used, "\n1: 7\n");
    add(pictures, &image, "7", NULL);
    expect(pictures, want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shades_are_means_of_two_rows),
                                       cmocka_unit_test(halves_of_characters_are_light_or_dark),
                                       cmocka_unit_test(greys_are_said_where_they_change),
                                       cmocka_unit_test(what_was_predicted_and_what_it_is_stand_below),
                                       cmocka_unit_test(numbers_are_off_by_something),
                                       cmocka_unit_test(what_is_wrong_is_red_in_colours),
                                       cmocka_unit_test(as_many_as_fit_stand_side_by_side),
                                       cmocka_unit_test(colours_are_as_bright_as_to_the_eye),
                                       cmocka_unit_test(other_numbers_have_a_range_of_their_own),
                                       cmocka_unit_test(wide_images_are_made_smaller)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
