/* Tests of loading/coupling.h: which rows are told that they move together, on data whose second moments are known. */
#include "loading/coupling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"

#define TOGETHER 2 /* as in coupling.c */

enum { EXAMPLES = 400, MOST_ROWS = 64 };

/* Data under way: a dense table of numbers, of which the zeros are left out. */
static struct {
    uint64_t start[EXAMPLES + 1];
    uint32_t id[EXAMPLES * MOST_ROWS];
    float value[EXAMPLES * MOST_ROWS], weight[EXAMPLES];
} made;

static struct shmtrain_data make(float (*x)(uint32_t example, uint32_t row), uint32_t n_rows) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        for (uint32_t row = 0; row < n_rows; row++) {
            if (x(i, row) == 0) continue;
            made.id[n] = row;
            made.value[n++] = x(i, row);
        }
        made.start[i + 1] = n;
    }
    return (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                  .n_examples = EXAMPLES,
                                  .n_nonzeros = n,
                                  .n_features = n_rows,
                                  .start = made.start,
                                  .id = made.id,
                                  .value = made.value};
}

/* What is added for n_rows features and a bias behind them; `hot` of the first are held by replicas, or all (0). */
static float *added(const struct shmtrain_data *data, uint32_t hot) {
    static float h[MOST_ROWS + 1];
    const uint32_t bias = (uint32_t)data->n_features;
    const struct shmt_spec spec = {.n_examples = data->n_examples, .n_tables = 1, .curvatures = true, .l2_rows = {bias}};
    const struct shmt_rows_of of = {.model = &SHMT_MODEL_LOGISTIC, .data = data, .spec = &spec};
    const struct shmt_cover cover = {hot ? hot : bias + 1, hot ? bias : bias + 1, hot ? hot + 1 : bias + 1};
    struct shmt_error e = {0};
    memset(h, 0, sizeof h);
    if (shmt_coupling_add(&of, &cover, cover.n - 1, h, &e) != 0) fail_msg("%s", e.text);
    return h;
}

static void assert_near(float is, double should) {
    if (!(fabs((double)is - should) <= 0.02 * should + 1e-6)) fail_msg("%g, not %g", (double)is, should);
}

/* ---- who moves together ---- */

static float all_alike(uint32_t example, uint32_t row) {
    (void)example;
    return (float)(row + 1);
}

/* x = (1, 2, 3): the one direction is x itself, of curvature 14, which the third carries most. */
static void examples_that_are_all_alike_move_everything_as_one(void **state) {
    const struct shmtrain_data data = make(all_alike, 3);
    const float *h = added(&data, 0);
    (void)state;
    for (uint32_t row = 0; row < 3; row++) assert_near(h[row], TOGETHER * 14 * (row + 1) * (row + 1) / 9.0);
    assert_near(h[3], TOGETHER * 14 / 9.0); /* the bias is a feature of 1 */
}

static float common_and_rare(uint32_t example, uint32_t row) {
    if (row < 8) return 1;
    return example % 100 == row ? 1 : 0;
}

static void rare_features_hardly_take_part(void **state) {
    const struct shmtrain_data data = make(common_and_rare, 60);
    const float *h = added(&data, 0);
    (void)state;
    for (uint32_t row = 0; row < 8; row++) assert_near(h[row], TOGETHER * 8);
    for (uint32_t row = 8; row < 60; row++) assert_true(h[row] < 0.001F * TOGETHER * 8);
}

static float nothing_in_common(uint32_t example, uint32_t row) { return example % 50 == row ? 1 : 0; }

static void examples_with_nothing_in_common_add_next_to_nothing(void **state) {
    const struct shmtrain_data data = make(nothing_in_common, 50);
    const float *h = added(&data, 0);
    (void)state;
    for (uint32_t row = 0; row <= 50; row++) assert_true(h[row] <= 1.01F * TOGETHER / 50); /* as one of them alone */
}

/* One factor behind all columns, which is as often below 0 as above: their means are 0. */
static float factor(uint32_t example, uint32_t row) {
    const float size = (float)(1 + example / 2 % 5) / 3, sign = (example & 1) ? 1 : -1;
    return row % 3 == 0 ? -size * sign : size * sign;
}

static void signs_and_means_do_not_matter(void **state) {
    const struct shmtrain_data data = make(factor, 30);
    const float *h = added(&data, 0);
    (void)state;
    for (uint32_t row = 0; row < 30; row++) assert_near(h[row], TOGETHER * 30 * (1 + 4 + 9 + 16 + 25) / 5.0 / 9.0);
    assert_true(h[30] < 1e-6F); /* the bias has no part in it */
}

/* ---- of what ---- */

static void weights_of_examples_count(void **state) {
    struct shmtrain_data data = make(all_alike, 3);
    (void)state;
    for (uint32_t i = 0; i < EXAMPLES; i++) made.weight[i] = i % 2 == 0 ? 1 : 5;
    data.weight = made.weight;
    assert_near(added(&data, 0)[2], TOGETHER * 14 * 3);
}

/* Eight common columns, of which replicas hold five. */
static void rows_that_replicas_do_not_hold_are_left_out(void **state) {
    const struct shmtrain_data data = make(common_and_rare, 8);
    const float *h = added(&data, 5);
    (void)state;
    for (uint32_t held = 0; held <= 5; held++) assert_near(h[held], TOGETHER * 5);
    assert_true(h[6] == 0 && h[7] == 0);
}

static float nothing(uint32_t example, uint32_t row) {
    (void)example;
    (void)row;
    return 0;
}

static float beyond_numbers(uint32_t example, uint32_t row) {
    (void)example;
    (void)row;
    return 1e38F;
}

static void data_without_a_direction_adds_nothing_and_no_data_breaks_it(void **state) {
    const struct shmtrain_data none = make(nothing, 10);
    const float *h = added(&none, 0);
    (void)state;
    for (uint32_t row = 0; row <= 10; row++) assert_true(h[row] == 0);
    const struct shmtrain_data huge = make(beyond_numbers, 3);
    h = added(&huge, 0);
    for (uint32_t row = 0; row <= 3; row++) assert_false(isnan(h[row]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_that_are_all_alike_move_everything_as_one),
        cmocka_unit_test(rare_features_hardly_take_part),
        cmocka_unit_test(examples_with_nothing_in_common_add_next_to_nothing),
        cmocka_unit_test(signs_and_means_do_not_matter),
        cmocka_unit_test(weights_of_examples_count),
        cmocka_unit_test(rows_that_replicas_do_not_hold_are_left_out),
        cmocka_unit_test(data_without_a_direction_adds_nothing_and_no_data_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
