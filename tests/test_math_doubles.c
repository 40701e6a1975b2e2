/* Tests of the logistic loss in doubles: accuracy against long double libm, limits, and what is no number. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "emulated.h"

#include "base/random.h"
#include "math/logistic_doubles.h"

enum { N = 1000 };

/* How far `got` lies from `want`, in units of the last place of a double near `want`. */
static double error_in_units(double got, long double want) {
    int exponent;
    frexpl(fabsl(want) < (long double)DBL_MIN ? (long double)DBL_MIN : fabsl(want), &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - 53));
}

/* Of sizes from 1e-12 to 700, of both signs. */
static double some_margin(uint64_t i) {
    const double size = 700 * exp(-34 * shmt_unit(shmt_mix64(2 * i)));
    return shmt_mix64(2 * i + 1) % 2 ? size : -size;
}

static void losses_and_their_derivatives_are_accurate(void **state) {
    double margin[N], loss[N], fall[N], bend[N], worst[3] = {0};
    (void)state;
    for (uint64_t round = 0; round < 200 / SPARSE; round++) {
        for (uint64_t k = 0; k < N; k++) margin[k] = some_margin(round * N + k);
        shmt_logistic_doubles(N, margin, loss, fall, bend);
        for (uint64_t k = 0; k < N; k++) {
            const long double m = (long double)margin[k], t = expl(-fabsl(m)), q = 1 / (1 + expl(m));
            worst[0] = fmax(worst[0], error_in_units(loss[k], log1pl(t) + (m < 0 ? -m : 0)));
            worst[1] = fmax(worst[1], error_in_units(fall[k], q));
            worst[2] = fmax(worst[2], error_in_units(bend[k], q / (1 + expl(-m))));
        }
    }
    print_message("units in the last place: loss %.2f, first derivative %.2f, second %.2f\n", worst[0], worst[1], worst[2]);
    for (int i = 0; i < 3; i++) assert_true(worst[i] <= 6);
}

static void entropies_are_accurate(void **state) {
    double q[N], out[N], worst = 0;
    (void)state;
    for (uint64_t round = 0; round < 200 / SPARSE; round++) {
        for (uint64_t k = 0; k < N; k++) {
            const double part = shmt_unit(shmt_mix64(round * N + k));
            q[k] = k % 3 == 0 ? part : k % 3 == 1 ? exp(-600 * part) : 1 - exp(-36 * part);
        }
        shmt_entropy_doubles(N, q, out);
        for (uint64_t k = 0; k < N; k++) {
            const long double of = (long double)q[k];
            if (of > 0 && of < 1) worst = fmax(worst, error_in_units(out[k], of * logl(of) + (1 - of) * log1pl(-of)));
        }
    }
    print_message("units in the last place: entropy %.2f\n", worst);
    assert_true(worst <= 6);
}

static void limits_are_reached_and_what_is_no_number_stays_none(void **state) {
    const double margin[] = {0, 1e300, INFINITY, -1e300, -INFINITY, NAN}, q[] = {0, 1, 0.5, NAN};
    double loss[6], fall[6], bend[6], out[4];
    (void)state;
    shmt_logistic_doubles(6, margin, loss, fall, bend);
    assert_true(fabs(loss[0] - log(2)) < 1e-15 && fall[0] == 0.5 && bend[0] == 0.25);
    for (int i = 1; i <= 2; i++) assert_true(loss[i] < 1e-300 && fall[i] < 1e-300 && bend[i] < 1e-300);
    for (int i = 3; i <= 4; i++) assert_true(loss[i] == -margin[i] && fall[i] == 1 && bend[i] < 1e-300);
    assert_true(isnan(loss[5]) && isnan(fall[5]) && isnan(bend[5]));
    shmt_entropy_doubles(4, q, out);
    assert_true(out[0] == 0 && out[1] == 0 && fabs(out[2] + log(2)) < 1e-15 && isnan(out[3]));
}

/* Vector code, and the rest behind it. */
static void one_at_a_time_has_the_same_bits(void **state) {
    double margin[37], loss[37], fall[37], bend[37], one[3];
    (void)state;
    for (uint64_t k = 0; k < 37; k++) margin[k] = some_margin(k);
    shmt_logistic_doubles(37, margin, loss, fall, bend);
    for (uint64_t k = 0; k < 37; k++) {
        shmt_logistic_doubles(1, &margin[k], &one[0], &one[1], &one[2]);
        assert_true(one[0] == loss[k] && one[1] == fall[k] && one[2] == bend[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_their_derivatives_are_accurate),
        cmocka_unit_test(entropies_are_accurate),
        cmocka_unit_test(limits_are_reached_and_what_is_no_number_stays_none),
        cmocka_unit_test(one_at_a_time_has_the_same_bits),
    };
    return cmocka_run_group_tests_name("math in doubles", tests, NULL, NULL);
}
