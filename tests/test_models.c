/* models: the linear ones against their objectives. Gradients against finite differences, scores, and what a model says about
 * itself. They run on the plain backend, in ordinary memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "model_help.h"
#include "models/models.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

/* ---- data ---- */

enum { N = 37, FEATURES = 9, MOST_NONZEROS = N * FEATURES };

struct sample {
    struct shmtrain_data data;
    uint64_t start[N + 1];
    uint32_t id[MOST_NONZEROS];
    float value[MOST_NONZEROS], label[N], weight[N];
};

static const float TWO_CLASSES[] = {-3, 2};

/* Two classes; or labels of any size. Weights between 0 and 2, of which some are 0. */
static void make_sample(struct sample *s, bool ones, bool classes, bool weights) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < N; i++) {
        const uint64_t h = shmt_hash64(12, i, 0, 0);
        s->start[i] = n;
        for (uint32_t column = 0; column < FEATURES; column++) {
            const uint64_t g = shmt_hash64(11, i, column, 0);
            if (g & 1) continue;
            s->id[n] = column;
            s->value[n++] = ones ? 1 : (float)shmt_unit(shmt_mix64(g)) * 3 - 1.5f;
        }
        s->label[i] = classes ? TWO_CLASSES[~h & 1] : (float)shmt_unit(h) * 4 - 1;
        s->weight[i] = (float)shmt_below(shmt_hash64(15, i, 0, 0), 5) / 2;
    }
    s->start[N] = n;
    s->data = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                     .n_examples = N,
                                     .n_nonzeros = n,
                                     .n_features = FEATURES,
                                     .n_labels = classes ? 2 : N,
                                     .start = s->start,
                                     .id = s->id,
                                     .value = s->value,
                                     .label = s->label,
                                     .weight = weights ? s->weight : NULL,
                                     .classes = classes ? TWO_CLASSES : NULL};
}

/* ---- the objectives as they stand above the models, in doubles, by libm ---- */

static double log_loss(double dot, double target) { return log1p(exp(-dot * target)); }
static double hinge_loss(double dot, double target) { return fmax(0, 1 - dot * target); }
static double squared_loss(double dot, double target) { return (dot - target) * (dot - target) / 2; }

static const struct linear {
    const struct shmtrain_model *model;
    double (*loss)(double dot, double target);
    bool classes;
} LINEAR[] = {
    {&SHMT_MODEL_LOGISTIC, log_loss, true}, {&SHMT_MODEL_SVM, hinge_loss, true}, {&SHMT_MODEL_LINEAR, squared_loss, false}};
enum { N_LINEAR = sizeof LINEAR / sizeof *LINEAR };

static double dot_of(const struct shmtrain_data *data, const double *w, uint32_t bias, uint64_t i) {
    double dot = bias ? w[data->n_features] : 0;
    for (uint64_t k = data->start[i]; k < data->start[i + 1]; k++)
        dot += w[data->id[k]] * (data->value ? (double)data->value[k] : 1);
    return dot;
}

static double target_of(const struct linear *l, const struct shmtrain_data *data, uint64_t i) {
    return !l->classes ? (double)data->label[i] : data->label[i] == data->classes[1] ? 1 : -1;
}

static double objective(const struct linear *l, const struct shmtrain_data *data, const double *w, uint32_t bias, double l2) {
    double loss = 0, square = 0;
    for (uint64_t i = 0; i < data->n_examples; i++)
        loss += (data->weight ? (double)data->weight[i] : 1) * l->loss(dot_of(data, w, bias, i), target_of(l, data, i));
    for (uint32_t j = 0; j < data->n_features; j++) square += w[j] * w[j];
    return loss / (double)data->n_examples + l2 / 2 * square;
}

/* How far the example that is nearest to the hinge's kink is from it. */
static double nearest_kink(const struct shmtrain_data *data, const double *w, uint32_t bias) {
    double nearest = INFINITY;
    for (uint64_t i = 0; i < data->n_examples; i++)
        nearest = fmin(nearest, fabs(1 - dot_of(data, w, bias, i) * target_of(&LINEAR[1], data, i)));
    return nearest;
}

/* ---- gradients ---- */

/* From what one step with rate 1 did: w' = (w - g) / (1 + l2) for the rows that L2 means, and g + l2 w is the objective's
 * gradient. */
static void check_gradient(const struct linear *l, const struct shmtrain_data *data, uint32_t bias, float l2) {
    float w[FEATURES + 1], after[FEATURES + 1];
    double at[FEATURES + 1];
    for (uint32_t j = 0; j <= FEATURES; j++) {
        w[j] = after[j] = (float)shmt_unit(shmt_hash64(13, j, 0, 0)) * 2 - 1;
        at[j] = (double)w[j];
    }
    struct training t = full_batches(l->model, data, bias, 1, l2);
    if (l->loss == hinge_loss) assert_true(nearest_kink(data, at, bias) > 1e-3); /* or there is no gradient */
    train(&t, after);
    assert_true(fabs(t.loss / N - objective(l, data, at, bias, 0)) < 1e-5); /* f32 losses below 40: 37 errors of 2^-20 * 3 */
    for (uint32_t j = 0; j < FEATURES + bias; j++) {
        const double h = 1e-5, d = j < FEATURES ? (double)l2 : 0, here = at[j];
        at[j] = here + h;
        const double above = objective(l, data, at, bias, (double)l2);
        at[j] = here - h;
        const double below = objective(l, data, at, bias, (double)l2);
        at[j] = here;
        const double slope = (above - below) / (2 * h), ours = here - (double)after[j] * (1 + d) + d * here;
        /* f32 weights and gradients of size 4 are rounded by 2^-22; the difference quotient is right to 1e-9. */
        if (fabs(slope - ours) > 2e-6) fail_msg("%s, weight %u: slope %.9f, step %.9f", l->model->name, j, slope, ours);
    }
}

static void the_gradient_is_that_of_the_objective(void **state) {
    struct sample s;
    (void)state;
    for (int m = 0; m < N_LINEAR; m++)
        for (int ones = 0; ones < 2; ones++)
            for (uint32_t bias = 0; bias < 2; bias++)
                for (int more = 0; more < 4; more++) {
                    make_sample(&s, ones, LINEAR[m].classes, more & 2);
                    if (ones) s.data.value = NULL;
                    check_gradient(&LINEAR[m], &s.data, bias, (float)(more & 1) * 0.3f);
                }
}

static void ones_that_are_written_down_and_ones_that_are_not_are_the_same(void **state) {
    struct sample s;
    (void)state;
    for (int m = 0; m < N_LINEAR; m++)
        for (int live = 0; live < 2; live++) {
            float written[FEATURES + 1] = {0}, left_out[FEATURES + 1] = {0};
            make_sample(&s, true, LINEAR[m].classes, false);
            struct training t = full_batches(LINEAR[m].model, &s.data, 1, 0.05f, 0.01f);
            if (live) t.write = SHMT_WRITE_RACY;
            t.with.group = live ? 1 : 8;
            t.batch = 8;
            t.epochs = 3;
            train(&t, written);
            s.data.value = NULL;
            train(&t, left_out);
            assert_memory_equal(written, left_out, sizeof written);
            assert_true(written[0] != 0 && written[FEATURES] != 0);
        }
}

/* Plain gradient descent does not get below the objective of its own figures by more than rounding. */
static void steps_go_downhill(void **state) {
    struct sample s;
    (void)state;
    for (int m = 0; m < N_LINEAR; m++) {
        double last = INFINITY;
        float w[FEATURES + 1] = {0};
        make_sample(&s, false, LINEAR[m].classes, true);
        for (int i = 0; i < 20; i++) {
            double at[FEATURES + 1];
            struct training t = full_batches(LINEAR[m].model, &s.data, 1, 0.02f, 0.01f);
            train(&t, w);
            for (int j = 0; j <= FEATURES; j++) at[j] = (double)w[j];
            const double now = objective(&LINEAR[m], &s.data, at, 1, 0.01);
            assert_true(now < last);
            last = now;
        }
    }
}

/* In the live modes each example is an update of its own, of `weight` times the size. */
static void weights_of_examples_scale_their_updates(void **state) {
    struct sample s;
    (void)state;
    for (int m = 0; m < N_LINEAR; m++) {
        float w[FEATURES + 1] = {0}, plain[FEATURES + 1] = {0};
        make_sample(&s, false, LINEAR[m].classes, false);
        s.data.n_examples = 1;
        struct training t = full_batches(LINEAR[m].model, &s.data, 1, 0.25f, 0);
        t.write = SHMT_WRITE_RACY;
        train(&t, plain);
        const double loss = t.loss;
        s.weight[0] = 3;
        s.data.weight = s.weight;
        train(&t, w);
        assert_true(w[FEATURES] != 0 && fabs(t.loss - 3 * loss) < 1e-6);
        for (int j = 0; j <= FEATURES; j++) assert_true(fabsf(w[j] - 3 * plain[j]) < 1e-6f);
        s.weight[0] = 0;
        memset(w, 0, sizeof w);
        train(&t, w);
        assert_true(t.loss == 0);
        for (int j = 0; j <= FEATURES; j++) assert_true(w[j] == 0);
    }
}

/* ---- scores ---- */

static void scores_are_dot_products_and_losses_those_of_the_objective(void **state) {
    struct sample s;
    float w[FEATURES + 1], kept[FEATURES + 1], score[N], picked[N];
    uint32_t backwards[N];
    double at[FEATURES + 1], loss, again;
    (void)state;
    for (uint32_t j = 0; j <= FEATURES; j++) at[j] = (double)(w[j] = (float)shmt_unit(shmt_hash64(14, j, 0, 0)) - 0.5f);
    for (uint32_t i = 0; i < N; i++) backwards[i] = N - 1 - i;
    memcpy(kept, w, sizeof w);
    for (int m = 0; m < N_LINEAR; m++)
        for (uint32_t more = 0; more < 4; more++) {
            const uint32_t bias = more & 1;
            make_sample(&s, false, LINEAR[m].classes, more & 2);
            struct training t = full_batches(LINEAR[m].model, &s.data, bias, 1, 0);
            score_all(&t, w, N, 64, score, &loss);
            assert_true(fabs(loss / N - objective(&LINEAR[m], &s.data, at, bias, 0)) < 1e-6);
            for (uint32_t i = 0; i < N; i++) assert_true(fabs(dot_of(&s.data, at, bias, i) - (double)score[i]) < 1e-5);
            t.example = backwards;
            score_all(&t, w, N, 64, picked, &again);
            for (uint32_t i = 0; i < N; i++) assert_true(picked[i] == score[N - 1 - i]);
            assert_true(fabs(again - loss) < 1e-9);
            assert_memory_equal(w, kept, sizeof w); /* scoring pushes nothing */
        }
    assert_true(SHMT_MODEL_LOGISTIC.threshold == 0 && SHMT_MODEL_SVM.threshold == 0);
}

/* Validation data may lack a class: which label is the larger one is said by the classes of the training data. */
static void the_larger_label_is_that_of_the_training_data(void **state) {
    struct sample s;
    float w[FEATURES + 1] = {0}, score[N];
    double loss;
    (void)state;
    make_sample(&s, false, true, false);
    for (uint32_t i = 0; i < N; i++) s.label[i] = TWO_CLASSES[0];
    s.data.n_labels = 1;
    w[FEATURES] = -9; /* every dot product but for rounding: the smaller label, without doubt */
    struct training t = full_batches(LINEAR[0].model, &s.data, 1, 1, 0);
    t.with.n_classes = 2;
    t.with.classes = TWO_CLASSES;
    score_all(&t, w, N, 64, score, &loss);
    assert_true(loss / N < 0.001);
}

static void probabilities_are_those_of_the_larger_label(void **state) {
    float p[] = {0, 2, -2, 1000, -1000};
    (void)state;
    SHMT_MODEL_LOGISTIC.probabilities(5, 1, p);
    assert_true(p[0] == 0.5f && p[3] == 1 && p[4] == 0);
    assert_true(fabs((double)p[1] - 1 / (1 + exp(-2))) < 1e-6 && fabs((double)p[2] - 1 / (1 + exp(2))) < 1e-6);
    assert_null(SHMT_MODEL_SVM.probabilities);
    assert_null(SHMT_MODEL_LINEAR.probabilities);
}

/* ---- what a model says about itself ---- */

static void two_classes_need_two_labels(void **state) {
    (void)state;
    for (int m = 0; m < N_LINEAR; m++) {
        const struct shmtrain_model *model = LINEAR[m].model;
        struct sample s;
        assert_int_equal(model->task, LINEAR[m].classes ? SHMTRAIN_BINARY : SHMTRAIN_REGRESSION);
        if (!LINEAR[m].classes) {
            assert_null(model->check);
            continue;
        }
        make_sample(&s, false, true, false);
        assert_null(model->check(&s.data));
        s.data.n_labels = 1;
        assert_non_null(strstr(model->check(&s.data), "only one label"));
        s.data.n_labels = 3;
        assert_non_null(strstr(model->check(&s.data), "more than two labels"));
    }
}

static void the_bias_is_a_row_behind_those_that_l2_means(void **state) {
    const struct shmtrain_settings with = {.size = sizeof(struct shmtrain_settings), .bias = 1}, without = {.bias = 0};
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    struct sample s;
    (void)state;
    for (int m = 0; m < N_LINEAR; m++) {
        make_sample(&s, false, LINEAR[m].classes, false);
        assert_int_equal(LINEAR[m].model->tables(&s.data, &with, NULL, shape), 1);
        assert_string_equal(shape[0].name, "weight");
        assert_true(shape[0].rows == FEATURES + 1 && shape[0].width == 1 && shape[0].l2_rows == FEATURES);
        assert_int_equal(LINEAR[m].model->tables(&s.data, &without, NULL, shape), 1);
        assert_true(shape[0].rows == FEATURES && shape[0].l2_rows == FEATURES);
    }
}

static void the_list_of_models_ends_and_names_each_once(void **state) {
    size_t n = 0;
    (void)state;
    for (; shmt_model_at(n); n++) {
        const struct shmtrain_model *model = shmt_model_at(n);
        assert_true(model->name[0] && model->about[0] && model->loss[0] && model->tables && model->step && model->score);
        assert_true(model->traits.curvature > 0 || (model->traits.rate > 0 && model->traits.adaptive_rate > 0));
        for (size_t i = 0; i < n; i++) assert_string_not_equal(shmt_model_at(i)->name, model->name);
    }
    assert_true(n > 0);
    assert_null(shmt_model_at(n + 100));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_gradient_is_that_of_the_objective),
        TEST(ones_that_are_written_down_and_ones_that_are_not_are_the_same),
        TEST(steps_go_downhill),
        TEST(weights_of_examples_scale_their_updates),
        TEST(scores_are_dot_products_and_losses_those_of_the_objective),
        TEST(the_larger_label_is_that_of_the_training_data),
        TEST(probabilities_are_those_of_the_larger_label),
        TEST(two_classes_need_two_labels),
        TEST(the_bias_is_a_row_behind_those_that_l2_means),
        TEST(the_list_of_models_ends_and_names_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
