/* Layers that are computed in a way of their own against their definitions in double: how far off they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "layers/conv_priv.h"
#include "layers_help.h"

/* ---- functions of one number ---- */

enum { NUMBERS = 4096 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return x * erfc(-x / sqrt(2)) / 2; }

/* Within -20 .. 20; as a share of a number that is above 1. */
static void check_function(const char *text, double (*want)(double)) {
    struct net net;
    net_make(&net, text, (struct shmtrain_extent){NUMBERS, 1, 1}, 1, false);
    for (int i = 0; i < NUMBERS; i++) net.in[i] *= 20;
    const float *out = net_forward(&net);
    for (int i = 0; i < NUMBERS; i++) {
        const double y = want((double)net.in[i]);
        if (!(fabs((double)out[i] - y) < 3e-7 * fmax(1, fabs(y))))
            fail_msg("%s(%g) is %.9g, and should be %.9g", text, (double)net.in[i], (double)out[i], y);
    }
    net_free(&net);
}

static void functions_of_one_number_are_within_3e_7(void **state) {
    (void)state;
    check_function("tanh", tanh);
    check_function("sigmoid", sigmoid);
    check_function("gelu", gelu);
}

/* ---- convolutions ---- */

/* Number (filter, y, x) of example `k` of a convolution of 3 x 3 without padding. */
static double convolved(const struct net *net, uint32_t k, uint32_t filter, uint32_t y, uint32_t x) {
    const struct shmtrain_extent *in = &net->chain.in;
    const float *weight = net->table[0] + (uint64_t)filter * 9 * in->channels,
                *image = net->in + k * shmtrain_extent_numbers(in);
    double sum = (double)net->table[1][filter];
    for (uint32_t row = 0; row < 3; row++)
        for (uint32_t col = 0; col < 3; col++)
            for (uint32_t c = 0; c < in->channels; c++)
                sum += (double)*weight++ * (double)image[((uint64_t)c * in->height + y + row) * in->width + x + col];
    return sum;
}

/* As a share of the largest output. */
static double error_of(const char *text, struct shmtrain_extent in, uint32_t n, bool by_winograd) {
    struct net net;
    double largest = 0, worst = 0;
    net_make(&net, text, in, n, false);
    const struct shmt_conv conv = shmt_conv_of(&net.chain.layer[0]);
    assert_int_equal(conv.way, by_winograd ? SHMT_CONV_WINOGRAD : SHMT_CONV_COLUMNS);
    const float *out = net_forward(&net);
    const struct shmtrain_extent *shape = &net.chain.out;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t y = 0; y < shape->height; y++)
            for (uint32_t x = 0; x < shape->width; x++)
                for (uint32_t f = 0; f < shape->channels; f++) {
                    const double want = convolved(&net, k, f, y, x);
                    largest = fmax(largest, fabs(want));
                    worst = fmax(worst, fabs(want - (double)*out++));
                }
    net_free(&net);
    return worst / largest;
}

static void convolutions_are_within_1e_5_of_the_largest(void **state) {
    (void)state;
    net_need_blas();
    assert_true(error_of("conv:64:3", (struct shmtrain_extent){32, 26, 26}, 2, true) < 1e-5);
    assert_true(error_of("conv:32:3", (struct shmtrain_extent){128, 9, 14}, 3, true) < 1e-5);
    assert_true(error_of("conv:33:3", (struct shmtrain_extent){31, 9, 14}, 3, false) < 1e-6);
}

/* ---- running statistics that nobody can mean ---- */

static float scored_with(float variance) {
    struct net net;
    net_make(&net, "batchnorm", (struct shmtrain_extent){1, 1, 1}, 1, false);
    net.table[3][0] = variance;
    const float out = *net_forward(&net);
    net_free(&net);
    return out;
}

/* Many who race may take it below 0 for a moment. */
static void a_variance_below_0_counts_as_0_and_none_as_none(void **state) {
    (void)state;
    assert_true(isfinite(scored_with(0)));
    assert_true(scored_with(-1) == scored_with(0));
    assert_true(isnan(scored_with(NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_of_one_number_are_within_3e_7),
                                       cmocka_unit_test(convolutions_are_within_1e_5_of_the_largest),
                                       cmocka_unit_test(a_variance_below_0_counts_as_0_and_none_as_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
