/* builtin:dense: what its values and labels are, and that its model can be learned. That it is the same everywhere, and for any
 * number of parts, is in test_generators.c. */
#include "data_load.h"

#include <math.h>

static void assert_loads(struct loaded *l, const char *name, uint64_t seed, bool held_out, uint32_t n_parts) {
    const int status = load_name(l, name, seed, held_out, n_parts);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
}

static void dense_values_are_about_normal_and_every_one_is_there(void **state) {
    (void)state;
    struct loaded l;
    assert_loads(&l, "builtin:dense", 4, false, 2);
    const uint64_t n = l.totals.n_examples, m = l.totals.n_nonzeros;
    assert_int_equal(n, 20000);
    assert_int_equal(m, n * 64);
    double moment[5] = {0};
    for (uint64_t i = 0; i < m; i++) {
        const double x = l.arrays.value[i];
        assert_true(x != 0 && fabs(x) < 4.91 && l.arrays.id[i] == i % 64);
        for (int k = 1; k <= 4; k++) moment[k] += pow(x, k) / (double)m;
    }
    /* 1.28 million numbers: a moment's deviation is about sqrt(its variance / m), below 0.01. Of the sum of eight uniform
     * numbers the fourth moment is 3 - 1.2 / 8 = 2.85. */
    assert_true(fabs(moment[1]) < 0.01 && fabs(moment[2] - 1) < 0.01 && fabs(moment[3]) < 0.03);
    assert_true(fabs(moment[4] - 2.85) < 0.05);
    assert_true(fabs(l.totals.mean_square - 64) < 0.1);
    load_free(&l);
}

/* The values do not depend on the noise; without it, labels are the likeliest ones. */
static void labels_are_drawn_from_the_planted_model(void **state) {
    (void)state;
    static const struct {
        const char *noisy, *sure;
        uint32_t classes;
        double best_low, best_high, right_low, right_high;
    } cases[] = {{"builtin:dense", "builtin:dense:noise=0", 10, 0.5, 0.65, 0.76, 0.84},
                 {"builtin:dense:classes=2", "builtin:dense:classes=2,noise=0", 2, 0.15, 0.22, 0.9, 0.95},
                 {"builtin:dense:noise=0.5", "builtin:dense:noise=0", 10, 0.24, 0.33, 0.86, 0.93}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct loaded noisy, sure;
        assert_loads(&noisy, cases[c].noisy, 2, false, 2);
        assert_loads(&sure, cases[c].sure, 2, false, 2);
        uint64_t count[10] = {0}, right = 0;
        assert_memory_equal(noisy.arrays.value, sure.arrays.value, noisy.totals.n_nonzeros * sizeof(float));
        for (uint64_t i = 0; i < 20000; i++) {
            count[(int)noisy.arrays.label[i]]++;
            right += noisy.arrays.label[i] == sure.arrays.label[i];
        }
        for (uint32_t k = 0; k < cases[c].classes; k++) assert_true(count[k] > 20000 / cases[c].classes / 4);
        const double best = shmt_parts_best_loss(noisy.part, 2), share = (double)right / 20000;
        if (best < cases[c].best_low || best > cases[c].best_high || share < cases[c].right_low || share > cases[c].right_high)
            print_error("%s: best loss %g, %g likeliest\n", cases[c].noisy, best, share);
        assert_true(best > cases[c].best_low && best < cases[c].best_high);
        assert_true(share > cases[c].right_low && share < cases[c].right_high);
        assert_true(shmt_parts_best_loss(sure.part, 2) == 0);
        assert_int_equal(noisy.totals.labels.n, cases[c].classes);
        assert_true(noisy.totals.label_low == 0 && noisy.totals.label_high == (float)(cases[c].classes - 1));
        load_free(&noisy);
        load_free(&sure);
    }
}

enum { CLASSES = 10, FEATURES = 64 };

/* The mean loss of a softmax model over all examples; with a rate, it learns from each (plain SGD). */
static double softmax_epoch(const struct loaded *l, double rate, double weight[CLASSES][FEATURES + 1]) {
    double loss = 0;
    for (uint64_t i = 0; i < l->totals.n_examples; i++) {
        const float *x = l->arrays.value + i * FEATURES;
        const int label = (int)l->arrays.label[i];
        double z[CLASSES], sum = 0, most = -INFINITY;
        for (int c = 0; c < CLASSES; c++) {
            z[c] = weight[c][FEATURES];
            for (int j = 0; j < FEATURES; j++) z[c] += weight[c][j] * x[j];
            most = fmax(most, z[c]);
        }
        for (int c = 0; c < CLASSES; c++) sum += exp(z[c] - most);
        loss += log(sum) + most - z[label];
        for (int c = 0; c < CLASSES && rate > 0; c++) {
            const double step = rate * ((c == label) - exp(z[c] - most) / sum);
            for (int j = 0; j < FEATURES; j++) weight[c][j] += step * x[j];
            weight[c][FEATURES] += step;
        }
    }
    return loss / (double)l->totals.n_examples;
}

static void plain_sgd_comes_close_to_the_best_loss_of_dense_examples(void **state) {
    (void)state;
    static double weight[CLASSES][FEATURES + 1];
    struct loaded train, valid;
    assert_loads(&train, "builtin:dense", 1, false, 2);
    assert_loads(&valid, "builtin:dense:valid=5000", 1, true, 2);
    assert_int_equal(valid.totals.n_examples, 5000);
    for (uint32_t epoch = 0; epoch < 8; epoch++) softmax_epoch(&train, 0.03 / (1 + epoch), weight);
    const double excess = softmax_epoch(&valid, 0, weight) - shmt_parts_best_loss(valid.part, 2);
    if (excess < -0.01 || excess > 0.04) print_error("%g above the best loss\n", excess);
    assert_true(excess > -0.01 && excess < 0.04);
    load_free(&train);
    load_free(&valid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_values_are_about_normal_and_every_one_is_there),
        cmocka_unit_test(labels_are_drawn_from_the_planted_model),
        cmocka_unit_test(plain_sgd_comes_close_to_the_best_loss_of_dense_examples),
    };
    return cmocka_run_group_tests_name("dense examples", tests, NULL, NULL);
}
