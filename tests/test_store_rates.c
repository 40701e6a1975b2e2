/* Tests of learning rates: schedules against their closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "update/rate.h"

static void rates_fall_as_their_power_says(void **state) {
    (void)state;
    const struct shmt_rate constant = {.base = 0.3f, .kind = SHMT_RATE_CONSTANT, .power = 5};
    assert_true(shmt_rate_at(&constant, 1e9) == 0.3f);
    const float powers[] = {0, 0.25f, 0.5f, 0.75f, 1, 1.5f, 2, 3, 0.1f, 1.0f / 3, 1e-6f, SHMT_RATE_MAX_POWER};
    for (size_t p = 0; p < sizeof powers / sizeof *powers; p++) {
        const struct shmt_rate rate = {.base = 0.7f, .kind = SHMT_RATE_INVERSE, .power = powers[p], .every = 1};
        assert_true(shmt_rate_at(&rate, 0) == 0.7f);
        for (double t = 0.01; t < 1e4; t *= 1.9) { /* libm's pow in double is off by far less than half a unit of a float */
            const float want = (float)((double)0.7f / pow(1 + t, (double)powers[p]));
            assert_true(fabsf(shmt_rate_at(&rate, t) - want) <= want * 0x1p-23f);
        }
    }
    const struct shmt_rate slow = {.base = 0.7f, .kind = SHMT_RATE_INVERSE, .power = 2, .every = 25};
    assert_true(shmt_rate_at(&slow, 25) == 0.7f / 4 && shmt_rate_at(&slow, 75) == 0.7f / 16);
    const struct shmt_rate root = {.base = 1, .kind = SHMT_RATE_INVERSE, .power = 0.5f, .every = 1};
    assert_true(shmt_rate_at(&root, 3) == 0.5f);
    assert_true(shmt_rate_at(&root, 1) == (float)(1 / sqrt(2)));
}

/* libm computes in double, and is off by far less than half a unit of a float. */
static void close_to(const struct shmt_rate *rate, double t, double want) {
    const float got = shmt_rate_at(rate, t);
    if (!(fabs((double)got - want) <= fabs(want) * 0x1p-23 + 1e-17))
        fail_msg("%s after %g epochs: %.9g, and not %.9g", shmt_rate_name(rate), t, (double)got, want);
}

static void steps_multiply_the_rate_every_so_many_epochs(void **state) {
    (void)state;
    const struct shmt_rate rate = {.base = 0.8f, .kind = SHMT_RATE_STEP, .every = 2.5, .factor = 0.3};
    for (int i = 0; i < 300; i++) {
        const double t = 0.1 * (double)i + 0.01;
        close_to(&rate, t, (double)0.8f * pow(0.3, floor(t / 2.5)));
    }
    assert_true(shmt_rate_at(&rate, 0) == 0.8f && shmt_rate_at(&rate, 2.4999) == 0.8f);
    close_to(&rate, 2.5, (double)0.8f * 0.3);
    const struct shmt_rate never = {.base = 0.8f, .kind = SHMT_RATE_STEP, .every = 1, .factor = 1};
    assert_true(shmt_rate_at(&never, 1e6) == 0.8f);
}

static void a_cosine_falls_to_zero_at_the_end_of_the_run(void **state) {
    (void)state;
    const double pi = 3.14159265358979323846;
    const struct shmt_rate rate = {.base = 0.6f, .kind = SHMT_RATE_COSINE, .epochs = 7};
    for (int i = 0; i <= 700; i++) {
        const double t = 0.01 * (double)i;
        /* 1 + cos(pi x) cancels near the end: both are exact to 2^-52 of 1 there. */
        assert_true(fabs((double)shmt_rate_at(&rate, t) - (double)0.6f * (1 + cos(pi * t / 7)) / 2) <= 0.6 * 0x1p-24);
        assert_true(i == 0 || shmt_rate_at(&rate, t) <= shmt_rate_at(&rate, t - 0.01));
    }
    assert_true(shmt_rate_at(&rate, 0) == 0.6f);
    close_to(&rate, 3.5, (double)0.6f / 2);
    assert_true(fabsf(shmt_rate_at(&rate, 7)) < 1e-16f && shmt_rate_at(&rate, 7) >= 0);
    assert_true(shmt_rate_at(&rate, 8) == shmt_rate_at(&rate, 7)); /* beyond the end it stays there */
}

static void a_warm_up_grows_from_zero_and_ends_in_the_schedule(void **state) {
    (void)state;
    static const int KINDS[] = {SHMT_RATE_CONSTANT, SHMT_RATE_INVERSE, SHMT_RATE_STEP, SHMT_RATE_COSINE, SHMT_RATE_ONE_CYCLE};
    for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++) {
        struct shmt_rate rate = {
            .base = 0.5f, .kind = KINDS[kind], .power = 0.5f, .every = 2, .factor = 0.5, .warmup = 1.5, .epochs = 10};
        struct shmt_rate without = rate;
        without.warmup = 0;
        assert_true(shmt_rate_at(&rate, 0) == 0);
        for (int i = 1; i < 60; i++) {
            const double t = 0.05 * (double)i;
            /* `without` is rounded to a float before it is multiplied here */
            if (t < 1.5)
                assert_true(fabs((double)shmt_rate_at(&rate, t) - (double)shmt_rate_at(&without, t) * t / 1.5) <= 0x1p-24);
            else
                assert_true(shmt_rate_at(&rate, t) == shmt_rate_at(&without, t));
        }
    }
}

static void schedules_have_names(void **state) {
    (void)state;
    static const char *const NAMES[] = {"constant", "inverse", "step", "cosine", "one-cycle"};
    for (int kind = SHMT_RATE_CONSTANT; kind <= SHMT_RATE_ONE_CYCLE; kind++)
        assert_string_equal(shmt_rate_name(&(struct shmt_rate){.kind = kind}), NAMES[kind]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_fall_as_their_power_says),
        cmocka_unit_test(steps_multiply_the_rate_every_so_many_epochs),
        cmocka_unit_test(a_cosine_falls_to_zero_at_the_end_of_the_run),
        cmocka_unit_test(a_warm_up_grows_from_zero_and_ends_in_the_schedule),
        cmocka_unit_test(schedules_have_names),
    };
    return cmocka_run_group_tests_name("store_rates", tests, NULL, NULL);
}
