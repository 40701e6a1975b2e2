/* train: the rate and the momentum of runs that name none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "models/models.h"
#include "train/auto_rate.h"

static float g_l2; /* of the rates that follow */

static double g_spread; /* of labels */

static double g_weight = 1; /* of examples, on average */

/* 100 examples of 9 nonzeros each, whose squares add up to `square` on average; `classes` of them. */
static double rate_of(const struct shmtrain_model *model, enum shmt_rule_kind kind, bool live, uint32_t bias, double square,
                      uint32_t classes, uint32_t features, bool ends_at_0) {
    const struct shmtrain_settings with = {
        .size = sizeof(struct shmtrain_settings), .bias = bias, .group = live ? 4 : 64, .n_classes = classes};
    const struct shmtrain_data data = {.size = sizeof(struct shmtrain_data),
                                       .n_examples = 100,
                                       .n_nonzeros = 900,
                                       .n_features = features,
                                       .mean_square = square};
    const struct shmt_rule rule = {.kind = kind, .l2 = g_l2, .momentum = 0.75f};
    const struct shmt_rate_wish wish = {.model = model,
                                        .with = &with,
                                        .data = &data,
                                        .rule = &rule,
                                        .mean_weight = g_weight,
                                        .label_spread = g_spread,
                                        .ends_at_0 = ends_at_0,
                                        .live = live};
    return (double)shmt_auto_rate(&wish);
}

static double rate_for(const struct shmtrain_model *model, enum shmt_rule_kind kind, bool live, uint32_t bias, double square,
                       uint32_t classes) {
    return rate_of(model, kind, live, bias, square, classes, 9, false);
}

static void near(double got, double want) {
    if (fabs(got / want - 1) > 1e-6) fail_msg("%.9g, not %.9g", got, want);
}

static void the_rate_of_sgd_fits_the_length_of_examples(void **state) {
    const struct shmtrain_model *logistic = &SHMT_MODEL_LOGISTIC, *softmax = &SHMT_MODEL_SOFTMAX;
    (void)state;
    near(rate_for(logistic, SHMT_RULE_SGD, true, 1, 4, 2), 1.0 / 4);
    near(rate_for(logistic, SHMT_RULE_SGD, false, 1, 4, 2), 8.0 / 4);
    near(rate_for(logistic, SHMT_RULE_SGD, true, 1, 0.01, 2), 1); /* a bias has length 1 */
    near(rate_for(logistic, SHMT_RULE_SGD, false, 1, 0.01, 2), 2);
    near(rate_for(logistic, SHMT_RULE_SGD, true, 0, 0.01, 2), 100);
    near(rate_for(&SHMT_MODEL_SVM, SHMT_RULE_SGD, true, 1, 4, 2), 0.25 / 4);
    /* Single squared errors: all of a group is updated after one look. */
    near(rate_for(&SHMT_MODEL_LINEAR, SHMT_RULE_SGD, true, 0, 4, 0), 0.5 / 4 / 4);
    near(rate_for(&SHMT_MODEL_LINEAR, SHMT_RULE_SGD, false, 1, 4, 0), 1.0 / 5);
    /* An item of a dense model is a batch. More classes share the slopes, but those of many are not that flat for long. */
    near(rate_for(softmax, SHMT_RULE_SGD, true, 1, 4, 2), 3 * 2 / 4.0);
    near(rate_for(softmax, SHMT_RULE_SGD, false, 1, 4, 7), 3 * 7 / 4.0);
    near(rate_for(softmax, SHMT_RULE_SGD, false, 1, 4, 100), 8 * 10 / 4.0);
    near(rate_for(softmax, SHMT_RULE_SGD, true, 1, 4, 1024), 8 * 32 / 4.0);
    assert_true(isfinite(rate_for(logistic, SHMT_RULE_SGD, true, 0, 0, 2))); /* no features at all */
    near(rate_for(softmax, SHMT_RULE_MOMENTUM, true, 1, 4, 2), 3 * 2 / 4.0 / 4);
    /* Batches of sparse examples, whose gradients have little in common, if the rate falls to 0. */
    near(rate_of(logistic, SHMT_RULE_SGD, false, 1, 4, 2, 1000, true), 24.0 / 4);
    near(rate_of(logistic, SHMT_RULE_SGD, false, 1, 4, 2, 1000, false), 8.0 / 4);
    near(rate_of(logistic, SHMT_RULE_SGD, false, 1, 4, 2, 9, true), 8.0 / 4);
}

static const enum shmt_rule_kind OF_REACH[] = {SHMT_RULE_ADAGRAD, SHMT_RULE_ADAM, SHMT_RULE_FTRL, SHMT_RULE_RMSPROP,
                                               SHMT_RULE_ADAMW};
enum { N_OF_REACH = sizeof OF_REACH / sizeof *OF_REACH };

static void of_a_regression_the_reach_follows_the_labels(void **state) {
    (void)state;
    for (int i = 0; i <= N_OF_REACH; i++) {
        const enum shmt_rule_kind kind = i < N_OF_REACH ? OF_REACH[i] : SHMT_RULE_ADADELTA;
        const double usual = rate_for(&SHMT_MODEL_LINEAR, kind, false, 1, 4, 0);
        g_spread = 3e5;
        near(rate_for(&SHMT_MODEL_LINEAR, kind, false, 1, 4, 0), 1e5 * usual);
        const double classes = rate_for(&SHMT_MODEL_LOGISTIC, kind, false, 1, 4, 2);
        g_spread = 0;
        near(rate_for(&SHMT_MODEL_LOGISTIC, kind, false, 1, 4, 2), classes);
    }
}

static void rules_that_scale_by_themselves_take_a_rate_by_the_reach_of_a_step(void **state) {
    (void)state;
    for (int i = 0; i < N_OF_REACH; i++) {
        const enum shmt_rule_kind kind = OF_REACH[i];
        const double rate = rate_for(&SHMT_MODEL_LOGISTIC, kind, true, 0, 1, 2);
        near(rate_for(&SHMT_MODEL_LOGISTIC, kind, true, 0, 100, 2), rate / 10); /* by length, not its square */
        near(rate_for(&SHMT_MODEL_LINEAR, kind, true, 0, 1, 0), shmt_rule_scales(kind) ? rate / 4 : rate);
        assert_true(isfinite(rate_for(&SHMT_MODEL_LOGISTIC, kind, true, 0, 0, 2)) && rate > 0);
    }
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADAGRAD, true, 0, 1, 2), 1.7 / 3);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_FTRL, true, 0, 1, 2), 2.5 / 3);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_FTRL, false, 1, 0.6, 2), 16.0 / 4);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADAM, true, 0, 1, 2), 0.3 / 3);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADAMW, true, 0, 1, 2), 0.3 / 3);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_RMSPROP, true, 0, 1, 2), 0.15 / 3);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_NESTEROV, true, 1, 4, 2), 1.0 / 4 / 4);
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADADELTA, true, 0, 100, 2), 3); /* by no data */
    near(rate_for(&SHMT_MODEL_LOGISTIC, SHMT_RULE_LAMB, false, 0, 100, 2), 0.02); /* of a table's own norm */
    near(rate_of(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADADELTA, false, 0, 1, 2, 1000, false), 30);
    near(rate_of(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADADELTA, false, 0, 1, 2, 9, false), 3);
    near(rate_of(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADAGRAD, false, 0, 1, 2, 1000, false), 1.7 / 3);
    near(rate_of(&SHMT_MODEL_LOGISTIC, SHMT_RULE_ADAGRAD, false, 0, 1, 2, 1000, true), 3.4 / 3);
    near(rate_of(&SHMT_MODEL_SOFTMAX, SHMT_RULE_ADAGRAD, true, 0, 1, 2, 1000, true), 3.4 / 3); /* its items are batches */
    near(rate_of(&SHMT_MODEL_SOFTMAX, SHMT_RULE_ADAGRAD, true, 0, 1, 2, 9, true), 16.0 / 3);
}

/* Of networks alone: where a curvature is known, its rates leave room for delay. */
static void networks_trained_live_take_less_momentum_and_shorter_steps_by_the_workers_at_a_copy(void **state) {
    static const struct shmtrain_settings WITH = {.size = sizeof WITH, .n_classes = 10};
    static const struct shmtrain_data DATA_OF = {.size = sizeof DATA_OF, .n_examples = 100, .n_nonzeros = 900, .n_features = 9};
    struct shmt_rule rule = {.kind = SHMT_RULE_MOMENTUM, .momentum = 0.9f};
    struct shmt_rate_wish wish = {
        .model = &SHMT_MODEL_CNN, .with = &WITH, .data = &DATA_OF, .rule = &rule, .mean_weight = 1, .live = true, .sharers = 1};
    (void)state;
    const double one = (double)SHMT_MODEL_CNN.traits.rate, adaptive = (double)SHMT_MODEL_CNN.traits.adaptive_rate;
    assert_true(shmt_auto_momentum(&wish, 0.9f) == 0.9f);
    near((double)shmt_auto_rate(&wish), one / 10);
    wish.sharers = 9; /* what it adds up is 9 updates old on average, and then 1 */
    rule.momentum = shmt_auto_momentum(&wish, 0.9f);
    near((double)rule.momentum, 0.5);
    near((double)shmt_auto_rate(&wish), one * 0.5 / (1 + 0.3 * 8));
    rule.kind = SHMT_RULE_SGD;
    near((double)shmt_auto_rate(&wish), one / (1 + 0.3 * 8));
    rule.kind = SHMT_RULE_ADAM; /* divides by the gradients' size */
    near((double)shmt_auto_rate(&wish), adaptive);
    rule.kind = SHMT_RULE_MOMENTUM;
    wish.live = false; /* all gradients of an update are of the same parameters */
    assert_true(shmt_auto_momentum(&wish, 0.9f) == 0.9f);
    near((double)shmt_auto_rate(&wish), one * 0.5);
    wish.live = true;
    wish.model = &SHMT_MODEL_SOFTMAX;
    assert_true(shmt_auto_momentum(&wish, 0.9f) == 0.9f);
}

/* Of networks alone, too. A gradient is as long as the weights of examples make it. */
static void long_gradients_of_networks_are_clipped_and_late_ones_begin_small(void **state) {
    static const struct shmtrain_settings WITH = {.size = sizeof WITH, .n_classes = 10};
    static const struct shmtrain_data DATA_OF = {.size = sizeof DATA_OF, .n_examples = 20000, .n_features = 9};
    const struct shmt_rate cosine = {.kind = SHMT_RATE_COSINE}, one_cycle = {.kind = SHMT_RATE_ONE_CYCLE};
    struct shmt_rule rule = {.kind = SHMT_RULE_MOMENTUM, .momentum = 0.9f};
    struct shmt_rate_wish wish = {.model = &SHMT_MODEL_CNN,
                                  .with = &WITH,
                                  .data = &DATA_OF,
                                  .rule = &rule,
                                  .mean_weight = 3,
                                  .live = true,
                                  .n_trained = 20000,
                                  .item = 10,
                                  .sharers = 1};
    (void)state;
    const double norm = (double)SHMT_MODEL_CNN.traits.clip_norm;
    near((double)shmt_auto_clip_norm(&wish), 3 * norm);
    assert_true(shmt_auto_warmup(&wish, &cosine) == 0); /* nobody is late */
    wish.sharers = 2;
    near(shmt_auto_warmup(&wish, &cosine), 0.25); /* 500 updates of 10 */
    assert_true(shmt_auto_warmup(&wish, &one_cycle) == 0);
    wish.item = 64;
    near(shmt_auto_warmup(&wish, &cosine), 0.5);
    rule.clip = 1; /* elements are limited */
    assert_true(shmt_auto_clip_norm(&wish) == 0);
    rule = (struct shmt_rule){.kind = SHMT_RULE_ADAM, .momentum = 0.9f};
    assert_true(shmt_auto_clip_norm(&wish) == 0 && shmt_auto_warmup(&wish, &cosine) == 0);
    rule.kind = SHMT_RULE_NESTEROV;
    wish.live = false; /* the norm is of all tables */
    near((double)shmt_auto_clip_norm(&wish), 6 * norm);
    assert_true(shmt_auto_warmup(&wish, &cosine) == 0);
    wish.model = &SHMT_MODEL_SOFTMAX;
    assert_true(shmt_auto_clip_norm(&wish) == 0);
}

/* Where L1 or L2 says how much is learned nothing has to stop early. */
static void with_l2_rates_come_sooner_to_where_it_ends(void **state) {
    static const struct {
        enum shmt_rule_kind kind;
        bool live;
        uint32_t features;
        double sooner;
    } CASES[] = {{SHMT_RULE_SGD, true, 9, 2},      {SHMT_RULE_SGD, false, 9, 1.5},   {SHMT_RULE_MOMENTUM, true, 9, 2},
                 {SHMT_RULE_ADAGRAD, true, 9, 2},  {SHMT_RULE_ADAM, false, 1000, 2}, {SHMT_RULE_FTRL, true, 9, 3},
                 {SHMT_RULE_FTRL, false, 1000, 3}, {SHMT_RULE_FTRL, false, 9, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const double rate = rate_of(&SHMT_MODEL_LOGISTIC, CASES[i].kind, CASES[i].live, 1, 4, 2, CASES[i].features, true);
        g_l2 = 1e-4f;
        near(rate_of(&SHMT_MODEL_LOGISTIC, CASES[i].kind, CASES[i].live, 1, 4, 2, CASES[i].features, true),
             CASES[i].sooner * rate);
        near(rate_for(&SHMT_MODEL_LINEAR, SHMT_RULE_SGD, false, 1, 4, 0), 1.0 / 5); /* whose slopes have no bound */
        g_l2 = 0;
    }
}

/* Where no curvature is known. Weights that are all the same change no step of rules that divide by the gradients' size. */
static void a_models_own_rates_suit_every_rule(void **state) {
    static const struct {
        enum shmt_rule_kind kind;
        double rate, weighted; /* with weights of 100 */
    } WANTED[] = {{SHMT_RULE_SGD, 0.5, 0.005},   {SHMT_RULE_MOMENTUM, 0.125, 0.00125}, {SHMT_RULE_NESTEROV, 0.125, 0.00125},
                  {SHMT_RULE_ADAM, 0.01, 0.01},  {SHMT_RULE_ADAMW, 0.01, 0.01},        {SHMT_RULE_RMSPROP, 0.01, 0.01},
                  {SHMT_RULE_ADAGRAD, 0.1, 0.1}, {SHMT_RULE_FTRL, 0.3, 0.3},           {SHMT_RULE_ADADELTA, 1, 1}};
    const struct shmtrain_model model = {.size = sizeof model, .traits = {.rate = 0.5f, .adaptive_rate = 0.01f}};
    (void)state;
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++) {
        near(rate_of(&model, WANTED[i].kind, false, 0, 1, 2, 9, true), WANTED[i].rate);
        g_weight = 100;
        near(rate_of(&model, WANTED[i].kind, false, 0, 1, 2, 9, true), WANTED[i].weighted);
        g_weight = 1;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_of_sgd_fits_the_length_of_examples),
        cmocka_unit_test(of_a_regression_the_reach_follows_the_labels),
        cmocka_unit_test(rules_that_scale_by_themselves_take_a_rate_by_the_reach_of_a_step),
        cmocka_unit_test(long_gradients_of_networks_are_clipped_and_late_ones_begin_small),
        cmocka_unit_test(networks_trained_live_take_less_momentum_and_shorter_steps_by_the_workers_at_a_copy),
        cmocka_unit_test(with_l2_rates_come_sooner_to_where_it_ends),
        cmocka_unit_test(a_models_own_rates_suit_every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
