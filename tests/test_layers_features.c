/* Features of tables on their way into a network: dense ones get mean 0 and deviation 1, those that are mostly 0 keep their zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "layers/features.h"

enum { N = 400, FEATURES = 6 };
enum { DENSE, RARE, CONSTANT, NOTHING, LARGE, TIME };

static void row_of(int k, float *row) {
    row[DENSE] = 1000 + (float)(k * 37 % 101);
    row[RARE] = k % 50 == 0 ? 3.0f : 0.0f;
    row[CONSTANT] = 7.25f;
    row[NOTHING] = 0;
    row[TIME] = 1.6e9f + (float)(k / 100) * 128; /* seconds, as floats have them */
    row[LARGE] = k % 2 ? 1e30f : -1e30f;
}

static void normal_of(float *normal) {
    struct shmt_feature_sums sums[FEATURES] = {0};
    float row[FEATURES];
    for (int k = 0; k < N; k++) {
        row_of(k, row);
        shmt_features_add(sums, row, FEATURES);
    }
    shmt_features_normal(sums, FEATURES, normal);
}

/* Of feature i as it goes into a network. */
static void moments_of(int i, double *mean, double *variance) {
    float normal[2 * FEATURES], row[FEATURES], out[FEATURES];
    double sum = 0, square = 0;
    normal_of(normal);
    for (int k = 0; k < N; k++) {
        row_of(k, row);
        shmt_features_put(normal, FEATURES, row, out);
        sum += (double)out[i];
        square += (double)out[i] * (double)out[i];
    }
    *mean = sum / N;
    *variance = square / N;
}

static void dense_features_get_mean_0_and_deviation_1(void **state) {
    double mean, variance;
    (void)state;
    moments_of(DENSE, &mean, &variance);
    assert_true(fabs(mean) < 1e-4);
    assert_true(fabs(variance - 1) < 1e-4);
}

static void features_that_are_mostly_0_stay_0_there(void **state) {
    float normal[2 * FEATURES], row[FEATURES];
    (void)state;
    normal_of(normal);
    row_of(1, row);
    shmt_features_put(normal, FEATURES, row, row); /* in place */
    assert_true(row[RARE] == 0);
    row_of(50, row);
    shmt_features_put(normal, FEATURES, row, row);
    assert_true(fabsf(row[RARE] - 1) < 1e-6f);
}

static void what_does_not_vary_is_not_divided(void **state) {
    float normal[2 * FEATURES];
    (void)state;
    normal_of(normal);
    assert_true(normal[2 * CONSTANT] == 7.25f && normal[2 * CONSTANT + 1] == 1);
    assert_true(normal[2 * NOTHING] == 0 && normal[2 * NOTHING + 1] == 1);
}

/* Squares of floats fit in doubles. */
static void large_numbers_have_a_finite_scale(void **state) {
    float normal[2 * FEATURES];
    (void)state;
    normal_of(normal);
    assert_true(fabsf(normal[2 * LARGE + 1] / 1e30f - 1) < 1e-6f);
}

/* Sums of squares of such numbers would have lost what they differ by. */
static void numbers_far_from_0_get_deviation_1(void **state) {
    double mean, variance;
    (void)state;
    moments_of(TIME, &mean, &variance);
    assert_true(fabs(mean) < 0.5); /* the mean itself is a float */
    assert_true(variance > 0.5 && variance < 1.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_features_get_mean_0_and_deviation_1), cmocka_unit_test(features_that_are_mostly_0_stay_0_there),
        cmocka_unit_test(what_does_not_vary_is_not_divided), cmocka_unit_test(large_numbers_have_a_finite_scale),
        cmocka_unit_test(numbers_far_from_0_get_deviation_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
