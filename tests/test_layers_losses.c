/* Losses behind a network: values and derivatives, weights, and probabilities for scoring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "layers/losses.h"

enum { N = 3, OUTPUTS = 4 };
static const float OUT[N * OUTPUTS] = {0.5f, -1, 2, 0, 1, 1, 1, 1, -3, 0.25f, 0.75f, 5};
static const uint32_t CLASS[N] = {2, 0, 1};

static double log_loss_of(uint32_t k, const float *out) {
    double sum = 0;
    for (uint32_t c = 0; c < OUTPUTS; c++) sum += exp((double)out[k * OUTPUTS + c]);
    return log(sum) - (double)out[k * OUTPUTS + CLASS[k]];
}

static void log_loss_is_that_of_softmax(void **state) {
    static const float WEIGHT[N] = {1, 0.5f, 3};
    float slope[N * OUTPUTS];
    struct shmt_loss_batch batch = {.n = N, .outputs = OUTPUTS, .out = OUT, .slope = slope};
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        double want = 0;
        batch.weight = weighted ? WEIGHT : NULL;
        for (uint32_t k = 0; k < N; k++) want += (weighted ? (double)WEIGHT[k] : 1) * log_loss_of(k, OUT);
        assert_true(fabs(shmt_loss_classes(&batch, CLASS, false) - want) < 1e-5);
        for (uint32_t i = 0; i < N * OUTPUTS; i++) {
            float moved[N * OUTPUTS];
            memcpy(moved, OUT, sizeof moved);
            moved[i] += 0x1p-10f;
            double difference = log_loss_of(i / OUTPUTS, moved);
            moved[i] -= 0x1p-9f;
            difference = (difference - log_loss_of(i / OUTPUTS, moved)) * 0x1p9;
            if (weighted) difference *= (double)WEIGHT[i / OUTPUTS];
            assert_true(fabs((double)slope[i] - difference) < 1e-5);
        }
    }
}

static void scoring_gives_probabilities(void **state) {
    float p[N * OUTPUTS];
    const struct shmt_loss_batch batch = {.n = N, .outputs = OUTPUTS, .out = OUT, .slope = p};
    (void)state;
    const double loss = shmt_loss_classes(&batch, CLASS, true);
    double sum = 0;
    for (uint32_t k = 0; k < N; k++) {
        double all = 0;
        for (uint32_t c = 0; c < OUTPUTS; c++) all += (double)p[k * OUTPUTS + c];
        assert_true(fabs(all - 1) < 1e-6);
        sum -= log((double)p[k * OUTPUTS + CLASS[k]]);
    }
    assert_true(fabs(loss - sum) < 1e-5);
}

static void squared_loss_is_half_the_squared_error(void **state) {
    static const float TARGET[4] = {1, 2, 3, 4}, GOT[4] = {1.5f, 2, 1, 4.25f}, WEIGHT[2] = {2, 4};
    float slope[4];
    struct shmt_loss_batch batch = {.n = 2, .outputs = 2, .out = GOT, .slope = slope};
    (void)state;
    assert_true(shmt_loss_squared(&batch, TARGET) == 0.125 + 2 + 0.03125);
    assert_true(slope[0] == 0.5f && slope[1] == 0 && slope[2] == -2 && slope[3] == 0.25f);
    batch.weight = WEIGHT;
    assert_true(shmt_loss_squared(&batch, TARGET) == 0.25 + 8 + 0.125);
    assert_true(slope[0] == 1 && slope[1] == 0 && slope[2] == -8 && slope[3] == 1);
}

/* The slope may take the place of the outputs. */
static void losses_work_in_place(void **state) {
    float apart[N * OUTPUTS], together[N * OUTPUTS];
    (void)state;
    memcpy(together, OUT, sizeof together);
    (void)shmt_loss_classes(&(struct shmt_loss_batch){.n = N, .outputs = OUTPUTS, .out = OUT, .slope = apart}, CLASS, false);
    (void)shmt_loss_classes(&(struct shmt_loss_batch){.n = N, .outputs = OUTPUTS, .out = together, .slope = together}, CLASS,
                            false);
    assert_memory_equal(apart, together, sizeof apart);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_loss_is_that_of_softmax),
        cmocka_unit_test(scoring_gives_probabilities),
        cmocka_unit_test(squared_loss_is_half_the_squared_error),
        cmocka_unit_test(losses_work_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
