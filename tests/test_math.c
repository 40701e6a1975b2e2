/* Tests of the numeric kernels: accuracy against long double libm, exactness against counting by hand. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "emulated.h"

#include "base/random.h"
#include "math/auc.h"
#include "math/finite.h"
#include "math/logistic.h"
#include "math/parallel.h"
#include "math/softmax.h"
#include "math/tree.h"

/* How far `got` lies from `want`, in units of the last place of a float near `want`. */
static double error_in_units(float got, long double want) {
    int exponent;
    frexpl(fabsl(want) < (long double)FLT_MIN ? (long double)FLT_MIN : fabsl(want), &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - 24));
}

struct errors {
    double exp_minus, loss, slope, sigmoid;
};

static void measure(float margin, struct errors *worst) {
    const long double m = (long double)margin, t = expl(-fabsl(m));
    float loss;
    const float slope = shmt_logistic(margin, &loss);
    worst->exp_minus = fmax(worst->exp_minus, error_in_units(shmt_exp_minus(fabsf(margin)), t));
    worst->loss = fmax(worst->loss, error_in_units(loss, log1pl(t) + (m < 0 ? -m : 0)));
    worst->slope = fmax(worst->slope, error_in_units(slope, -1 / (1 + expl(m))));
    worst->sigmoid = fmax(worst->sigmoid, error_in_units(shmt_sigmoid(margin), 1 / (1 + expl(-m))));
}

/* Every 7919th float of both signs: about 540,000 margins of every size. The bounds are those that logistic.h states. */
static void logistic_is_accurate_for_floats_of_every_size(void **state) {
    (void)state;
    struct errors worst = {0};
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 7919 * SPARSE) {
        measure(shmt_float_of_bits(bits), &worst);
        measure(-shmt_float_of_bits(bits), &worst);
    }
    print_message("units in the last place: exp %.2f, loss %.2f, slope %.2f, sigmoid %.2f\n", worst.exp_minus, worst.loss,
                  worst.slope, worst.sigmoid);
    assert_true(worst.exp_minus <= 1.0);
    assert_true(worst.loss <= 3.0);
    assert_true(worst.slope <= 3.0);
    assert_true(worst.sigmoid <= 3.0);
}

static void logistic_goes_to_its_limits(void **state) {
    (void)state;
    const float huge[] = {200.0f, 1e10f, FLT_MAX, INFINITY};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        float loss;
        assert_true(shmt_logistic(huge[i], &loss) == 0.0f);
        assert_true(loss == 0.0f);
        assert_true(shmt_logistic(-huge[i], &loss) == -1.0f);
        assert_true(loss == huge[i]);
        assert_true(shmt_sigmoid(huge[i]) == 1.0f);
        assert_true(shmt_sigmoid(-huge[i]) == 0.0f);
    }
    assert_true(shmt_sigmoid(0.0f) == 0.5f);
    assert_true(shmt_sigmoid(-0.0f) == 0.5f);
    assert_true(shmt_logistic_loss(0.0f) == (float)M_LN2);
}

static void logistic_of_nan_is_nan(void **state) {
    (void)state;
    const float nans[] = {NAN, -NAN};
    for (int i = 0; i < 2; i++) {
        float loss;
        assert_true(isnan(shmt_logistic(nans[i], &loss)));
        assert_true(isnan(loss));
        assert_true(isnan(shmt_sigmoid(nans[i])));
    }
    assert_true(isnan(shmt_exp_minus(NAN)));
}

static void logistic_slope_is_the_derivative_of_the_loss(void **state) {
    (void)state;
    for (float m = -8; m <= 8; m += 0.37f) {
        const float h = 1.0f / 64; /* central difference: error h^2 / 6 at most, and 2 roundings of 8 ulp / (2 h) */
        float loss;
        const float slope = shmt_logistic(m, &loss);
        const float difference = (shmt_logistic_loss(m + h) - shmt_logistic_loss(m - h)) / (2 * h);
        assert_true(fabsf(difference - slope) < 1e-4f);
    }
}

static void many_margins_at_once_give_the_same_bits(void **state) {
    (void)state;
    float margin[70], slope[70], loss[70];
    for (uint32_t k = 0; k < 70; k++) margin[k] = (float)(40 * (shmt_unit(shmt_hash64(1, k, 0, 0)) - 0.5));
    margin[3] = -INFINITY, margin[5] = 1e30f, margin[6] = NAN, margin[9] = -95.0f, margin[10] = 95.0f;
    for (uint32_t n = 0; n <= 64; n++) {
        for (uint32_t k = 0; k < 70; k++) slope[k] = k < n ? margin[k] : 77, loss[k] = 77;
        shmt_logistic_many(n, slope, loss);
        for (uint32_t k = 0; k < n; k++) {
            float one_loss, one_slope = shmt_logistic(margin[k], &one_loss);
            assert_true(memcmp(&one_slope, &slope[k], sizeof slope[k]) == 0 || (isnan(one_slope) && isnan(slope[k])));
            assert_true(memcmp(&one_loss, &loss[k], sizeof loss[k]) == 0 || (isnan(one_loss) && isnan(loss[k])));
        }
        for (uint32_t k = n; k < 70; k++) assert_true(slope[k] == 77 && loss[k] == 77);
    }
}

/* Every 997th float from 1 to the largest: 1,075,000 of them. */
static void the_logarithm_above_one_is_accurate(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t bits = shmt_bits_of_float(1); bits < 0x7f800000u; bits += 997 * SPARSE) {
        const float x = shmt_float_of_bits(bits);
        worst = fmax(worst, error_in_units(shmt_log_above_one(x), logl((long double)x)));
    }
    print_message("units in the last place: log %.2f\n", worst);
    assert_true(worst <= 3.0);
    assert_true(shmt_log_above_one(1) == 0);
    assert_true(isnan(shmt_log_above_one(NAN)));
}

static void softmax_is_accurate_for_every_number_of_classes(void **state) {
    (void)state;
    double worst_loss = 0, worst_share = 0;
    for (uint32_t n = 1; n <= 1024; n += n < 20 ? 1 : 67)
        for (uint64_t round = 0; round<40; round += SPARSE> 1 ? 9 : 1) {
            float z[1024] = {0}, p[1024];
            long double rest = 0, most;
            uint32_t largest = 0;
            const double size = pow(10, (double)(round % 5) - 2);
            for (uint32_t c = 0; c < n; c++) p[c] = z[c] = (float)(size * (shmt_unit(shmt_hash64(4, round, n, c)) - 0.5));
            for (uint32_t c = 0; c < n; c++)
                if (z[c] > z[largest]) largest = c;
            most = (long double)z[largest];
            for (uint32_t c = 0; c < n; c++) rest += c == largest ? 0 : expl((long double)z[c] - most);
            const uint32_t y = (uint32_t)shmt_below(shmt_hash64(5, round, n, 0), n);
            const long double want = log1pl(rest) + (most - (long double)z[y]);
            /* A difference d of scores is rounded by 2^-24 d, and so is e^-d, relatively: d units more. */
            worst_loss = fmax(worst_loss, error_in_units(shmt_softmax(n, p, y), want) / (1 + size));
            for (uint32_t c = 0; c < n; c++)
                worst_share = fmax(worst_share, error_in_units(p[c], expl((long double)z[c] - most) / (1 + rest)) / (1 + size));
        }
    print_message("units in the last place: loss %.2f, probabilities %.2f\n", worst_loss, worst_share);
    assert_true(worst_loss <= 4.0);
    assert_true(worst_share <= 4.0);
}

static void softmax_goes_to_its_limits_and_shows_what_is_no_number(void **state) {
    (void)state;
    float sure[] = {-500, 3000, -INFINITY}, wrong[] = {0, 200}, infinite[] = {0, INFINITY}, none[] = {0, NAN, 1};
    float first[] = {NAN, 0};
    assert_true(shmt_softmax(3, sure, 1) == 0);
    assert_true(sure[0] == 0 && sure[1] == 1 && sure[2] == 0);
    assert_true(shmt_softmax(2, wrong, 0) == 200);
    assert_false(isfinite(shmt_softmax(2, infinite, 0)));
    assert_true(isnan(shmt_softmax(3, none, 0)));
    assert_true(isnan(shmt_softmax(2, first, 1)));
}

/* ---- parallel ---- */

struct visits {
    uint32_t n[1000];
};
static void visit(void *arg, uint64_t i) { ((struct visits *)arg)->n[i]++; }

static void every_tile_is_visited_once_by_any_number_of_threads(void **state) {
    (void)state;
    for (uint32_t threads = 0; threads <= 9; threads++)
        for (uint64_t n = 0; n <= 1000; n += n < 12 ? 1 : 247) {
            struct visits v = {{0}};
            shmt_parallel(threads, n, visit, &v);
            for (uint64_t i = 0; i < 1000; i++) assert_int_equal(v.n[i], i < n);
        }
}

static void short_loops_wake_nobody(void **state) {
    (void)state;
    assert_int_equal(shmt_parallel_worth(8, 0), 1);
    assert_int_equal(shmt_parallel_worth(8, 90e3), 1);
    assert_int_equal(shmt_parallel_worth(8, 170e3), 3);
    assert_int_equal(shmt_parallel_worth(8, 1e9), 8);
    assert_int_equal(shmt_parallel_worth(1, 1e9), 1);
}

/* The definition, by recursion. */
static double sum_by_definition(const double *x, uint64_t n) {
    if (n == 0) return 0;
    if (n == 1) return x[0];
    uint64_t left = 1;
    while (2 * left < n) left *= 2;
    return sum_by_definition(x, left) + sum_by_definition(x + left, n - left);
}

static void tree_sum_follows_the_tree(void **state) {
    (void)state;
    double x[600];
    for (uint64_t i = 0; i < 600; i++) x[i] = shmt_unit(shmt_hash64(2, i, 0, 0)) * (double)(1u << shmt_hash64(2, i, 1, 0) % 30);
    for (uint64_t n = 0; n <= 600; n++) assert_true(shmt_tree_sum(x, n) == sum_by_definition(x, n));
    double in_line = 0;
    for (int i = 0; i < 600; i++) in_line += x[i];
    assert_true(shmt_tree_sum(x, 600) != in_line); /* these numbers do show the order of additions */
}

static void tree_sum_is_the_same_from_subtrees(void **state) {
    (void)state;
    double x[1000], part[16];
    for (uint64_t i = 0; i < 1000; i++) x[i] = shmt_unit(shmt_hash64(3, i, 0, 0));
    uint64_t n_parts = 0;
    for (uint64_t at = 0; at < 1000; at += 64) part[n_parts++] = shmt_tree_sum(x + at, at + 64 <= 1000 ? 64 : 1000 - at);
    assert_true(shmt_tree_sum(part, n_parts) == shmt_tree_sum(x, 1000));
}

static void finite_check_finds_one_bad_number_anywhere(void **state) {
    (void)state;
    float x[200];
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 200; i++) x[i] = i % 3 ? FLT_MAX : -FLT_MIN / 4;
    for (uint64_t n = 0; n <= 200; n++) assert_true(shmt_all_finite(x, n));
    for (uint64_t at = 0; at < 200; at++) {
        const float good = x[at];
        x[at] = bad[at % 4];
        assert_false(shmt_all_finite(x, 200));
        assert_true(shmt_all_finite(x, at));
        x[at] = good;
    }
}

static double auc_by_pairs(const float *score, const float *label, float threshold, uint64_t n) {
    double wins = 0, pairs = 0;
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < n; j++)
            if (label[i] >= threshold && label[j] < threshold) {
                pairs++;
                wins += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
            }
    return wins / pairs;
}

static double auc_of(const float *score, const float *label, float threshold, uint64_t n) {
    void *scratch = malloc(shmt_auc_scratch_bytes(n) + 1);
    const double auc = shmt_auc(score, label, threshold, n, scratch);
    free(scratch);
    return auc;
}

static void auc_equals_counting_pairs(void **state) {
    (void)state;
    float score[300], label[300];
    for (uint32_t n = 2; n <= 300; n = n * 3 / 2 + 1) {
        for (uint32_t spread = 1; spread <= 1000; spread *= 10) { /* from all tied to nearly none */
            for (uint32_t i = 0; i < n; i++) {
                score[i] = ((float)(shmt_hash64(n, spread, i, 0) % spread) - (float)spread / 2) * 1e-3f;
                label[i] = i == 0 ? 2 : i == 1 ? 1 : 1 + (float)(shmt_hash64(n, spread, i, 1) % 2);
            }
            assert_true(auc_of(score, label, 2, n) == auc_by_pairs(score, label, 2, n));
        }
    }
}

static void auc_takes_scores_of_every_size(void **state) {
    (void)state;
    const float score[] = {-INFINITY, -FLT_MAX, -1, -FLT_MIN / 2, -0.0f, 0.0f, FLT_MIN / 2, 1, FLT_MAX, INFINITY};
    const float label[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    assert_true(auc_of(score, label, 1, 10) == 24.5 / 25); /* -0 and 0 tie */
}

static void auc_has_no_value_without_two_classes_or_with_nan(void **state) {
    (void)state;
    const float label[] = {0, 0, 1, 1}, same[] = {1, 1, 1, 1}, score[] = {1, 2, 3, 4}, broken[] = {1, NAN, 3, 4};
    assert_true(auc_of(score, label, 1, 4) == 1);
    assert_true(isnan(auc_of(score, same, 1, 4)));
    assert_true(isnan(auc_of(score, same, 2, 4)));
    assert_true(isnan(auc_of(broken, label, 1, 4)));
    assert_true(isnan(auc_of(score, label, 1, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_is_accurate_for_floats_of_every_size),
        cmocka_unit_test(logistic_goes_to_its_limits),
        cmocka_unit_test(logistic_of_nan_is_nan),
        cmocka_unit_test(logistic_slope_is_the_derivative_of_the_loss),
        cmocka_unit_test(many_margins_at_once_give_the_same_bits),
        cmocka_unit_test(the_logarithm_above_one_is_accurate),
        cmocka_unit_test(softmax_is_accurate_for_every_number_of_classes),
        cmocka_unit_test(softmax_goes_to_its_limits_and_shows_what_is_no_number),
        cmocka_unit_test(every_tile_is_visited_once_by_any_number_of_threads),
        cmocka_unit_test(short_loops_wake_nobody),
        cmocka_unit_test(tree_sum_follows_the_tree),
        cmocka_unit_test(tree_sum_is_the_same_from_subtrees),
        cmocka_unit_test(finite_check_finds_one_bad_number_anywhere),
        cmocka_unit_test(auc_equals_counting_pairs),
        cmocka_unit_test(auc_takes_scores_of_every_size),
        cmocka_unit_test(auc_has_no_value_without_two_classes_or_with_nan),
    };
    return cmocka_run_group_tests_name("math", tests, NULL, NULL);
}
