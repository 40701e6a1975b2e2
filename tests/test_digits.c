/* builtin:digits: pictures of ten digits in 256 levels, of the shape that they have, that can be told apart, but not by the first rule
 * that comes to mind. */
#include "data_load.h"

#include <math.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };

static void load(struct loaded *l, const char *name, bool held_out) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_source_open(name, 1, held_out ? SHMT_SOURCE_HELD_OUT : 0, &source, &l->error), 0);
    const struct shmt_example_shape shape = shmt_source_shape(source);
    assert_true(shape.channels == 1 && shape.height == SIDE && shape.width == SIDE);
    assert_int_equal(load_count(l, source, 3, COLUMNS(0, PIXELS)), 0);
    load_allocate_dense(l, COLUMNS(0, PIXELS));
    assert_int_equal(load_fill(l, source, 3), 0);
    shmt_source_close(source);
}

static const float *picture(const struct loaded *l, uint64_t i) { return l->arrays.dense + i * PIXELS; }

static void values_are_levels_of_grey_and_labels_are_digits(void **state) {
    uint32_t of[CLASSES] = {0}, corners = 0;
    struct loaded l;
    (void)state;
    load(&l, "builtin:digits:examples=3000,noise=0", false);
    assert_int_equal(l.totals.labels.n, CLASSES);
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t inked = 0, dark = 0;
        assert_true(l.arrays.label[i] >= 0 && l.arrays.label[i] < CLASSES && l.arrays.label[i] == floorf(l.arrays.label[i]));
        of[(uint32_t)l.arrays.label[i]]++;
        for (uint32_t j = 0; j < PIXELS; j++) {
            const float level = picture(&l, i)[j] * 255;
            assert_true(level >= 0 && level <= 255 && fabsf(level - roundf(level)) < 1e-4f);
            inked += level > 0;
            dark += level > 150;
        }
        if (inked < 25 || inked > PIXELS / 2 || dark < 5)
            fail_msg("picture %d has %u pixels, %u dark ones", (int)i, inked, dark);
        corners += picture(&l, i)[0] > 0 || picture(&l, i)[PIXELS - 1] > 0;
    }
    for (uint32_t c = 0; c < CLASSES; c++) assert_in_range(of[c], 220, 380);
    assert_true(corners < 30); /* they are in the middle */
    load_free(&l);
}

static void no_two_pictures_are_the_same(void **state) {
    struct loaded train, held_out;
    (void)state;
    load(&train, "builtin:digits:examples=400,valid=400,noise=0", false);
    load(&held_out, "builtin:digits:examples=400,valid=400,noise=0", true);
    for (uint64_t i = 0; i < 400; i++) {
        for (uint64_t k = 0; k < 400; k++) assert_memory_not_equal(picture(&train, i), picture(&held_out, k), PIXELS * 4);
        for (uint64_t k = 0; k < i; k++) assert_memory_not_equal(picture(&train, i), picture(&train, k), PIXELS * 4);
    }
    load_free(&train);
    load_free(&held_out);
}

static void noise_changes_pixels_and_no_digit(void **state) {
    struct loaded clean, noisy;
    double by = 0;
    (void)state;
    load(&clean, "builtin:digits:examples=300,noise=0", false);
    load(&noisy, "builtin:digits:examples=300", false);
    assert_memory_equal(clean.arrays.label, noisy.arrays.label, 300 * sizeof(float));
    for (uint32_t j = 0; j < 300 * PIXELS; j++) by += fabs((double)(clean.arrays.dense[j] - noisy.arrays.dense[j])) / 300;
    assert_true(by > 1 && by < 15); /* of some 80 pixels' ink in each */
    load_free(&clean);
    load_free(&noisy);
}

/* ---- how hard it is ---- */

static double distance(const float *a, const double *b) {
    double sum = 0;
    for (uint32_t j = 0; j < PIXELS; j++) sum += ((double)a[j] - b[j]) * ((double)a[j] - b[j]);
    return sum;
}

/* By the nearest mean of a class. MNIST's share is 82 %. */
static void the_mean_of_a_digit_says_something_and_not_all(void **state) {
    enum { TRAIN = 3000, HELD_OUT = 1000 };
    static double mean[CLASSES][PIXELS];
    double of[CLASSES] = {0};
    struct loaded train, held_out;
    uint32_t right = 0;
    (void)state;
    load(&train, "builtin:digits:examples=3000,valid=1000", false);
    load(&held_out, "builtin:digits:examples=3000,valid=1000", true);
    for (uint64_t i = 0; i < TRAIN; i++) of[(uint32_t)train.arrays.label[i]]++;
    for (uint64_t i = 0; i < TRAIN; i++)
        for (uint32_t j = 0, c = (uint32_t)train.arrays.label[i]; j < PIXELS; j++)
            mean[c][j] += (double)picture(&train, i)[j] / of[c];
    for (uint64_t i = 0; i < HELD_OUT; i++) {
        uint32_t nearest = 0;
        for (uint32_t c = 1; c < CLASSES; c++)
            if (distance(picture(&held_out, i), mean[c]) < distance(picture(&held_out, i), mean[nearest])) nearest = c;
        right += nearest == (uint32_t)held_out.arrays.label[i];
    }
    print_message("  %u of %d by the nearest mean\n", right, HELD_OUT);
    assert_in_range(right, 600, 900);
    load_free(&train);
    load_free(&held_out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_levels_of_grey_and_labels_are_digits),
        cmocka_unit_test(no_two_pictures_are_the_same),
        cmocka_unit_test(noise_changes_pixels_and_no_digit),
        cmocka_unit_test(the_mean_of_a_digit_says_something_and_not_all),
    };
    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
