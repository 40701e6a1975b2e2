/* models: gradients against finite differences, optima against LIBLINEAR, single steps against figures by hand. The model runs
 * on the plain backend, in ordinary memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/plain.h"
#include "base/random.h"
#include "consistency/chunks.h"
#include "models/models.h"
#include "ps/session.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

/* ---- running a model ---- */

struct training {
    const struct shmtrain_data *data;
    enum shmt_write write;
    uint32_t bias, group, batch, epochs;
    float rate, l2;
    double loss; /* out: the reported losses of the last epoch, summed */
};

static int train_items(shmtrain_session *s, struct training *t) {
    const struct shmtrain_settings with = {.bias = t->bias, .group = t->group};
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const struct shmtrain_batch batch = {.data = t->data, .first = w.first, .n = (uint32_t)w.n};
        double loss;
        if ((rc = SHMT_MODEL_LOGISTIC.step(s, &batch, &with, &loss)) < 0) return rc;
        if (w.epoch + 1 == t->epochs) t->loss += loss;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* One worker from the weights in w, which it changes. */
static void train(struct training *t, float *w) {
    const struct shmt_backend_ops *ops = &SHMT_BACKEND_PLAIN;
    const struct shmtrain_settings with = {.bias = t->bias, .group = t->group};
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    struct shmt_spec spec = {.n_seats = 1,
                             .n_workers = 1,
                             .n_examples = t->data->n_examples,
                             .epochs = t->epochs,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {t->write, t->write == SHMT_WRITE_RACY ? SHMT_STALENESS_INF : 0},
                             .batch = t->batch,
                             .n_chunks = shmt_chunks_of_batch(t->batch),
                             .item = t->batch,
                             .order = {.n_examples = t->data->n_examples},
                             .rate = {.base = t->rate, .kind = SHMT_RATE_CONSTANT},
                             .rule = {.l2 = t->l2}};
    struct shmt_store *store;
    struct shmt_error e = {0};
    shmtrain_session s;
    spec.n_tables = SHMT_MODEL_LOGISTIC.tables(t->data, &with, shape);
    assert_int_equal(spec.n_tables, 1);
    strcpy(spec.table[0].name, shape[0].name);
    spec.table[0].rows = shape[0].rows;
    spec.table[0].width = (uint32_t)shape[0].width;
    spec.l2_rows[0] = shape[0].l2_rows;
    if (ops->create(&spec, NULL, &store, &e) != 0) fail_msg("%s", e.text);
    ops->write(store, 0, 0, shape[0].rows, w);
    assert_int_equal(shmt_session_enter(&s, ops, store, &spec, 0, 0, &e), 0);
    t->loss = 0;
    if (train_items(&s, t) != 0) fail_msg("%s", s.error.text);
    shmt_session_leave(&s);
    ops->read(store, 0, 0, shape[0].rows, w);
    ops->destroy(store);
}

/* ---- data ---- */

enum { N = 37, FEATURES = 9, MOST_NONZEROS = N * FEATURES };

struct sample {
    struct shmtrain_data data;
    uint64_t start[N + 1];
    uint32_t id[MOST_NONZEROS];
    float value[MOST_NONZEROS], label[N];
};

static void make_sample(struct sample *s, bool ones) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < N; i++) {
        s->start[i] = n;
        for (uint32_t column = 0; column < FEATURES; column++) {
            const uint64_t h = shmt_hash64(11, i, column, 0);
            if (h & 1) continue;
            s->id[n] = column;
            s->value[n++] = ones ? 1 : (float)shmt_unit(shmt_mix64(h)) * 3 - 1.5f;
        }
        s->label[i] = shmt_hash64(12, i, 0, 0) & 1 ? 2 : -3;
    }
    s->start[N] = n;
    s->data = (struct shmtrain_data){.n_examples = N,
                                     .n_nonzeros = n,
                                     .n_features = FEATURES,
                                     .n_labels = 2,
                                     .start = s->start,
                                     .id = s->id,
                                     .value = s->value,
                                     .label = s->label,
                                     .label_low = -3,
                                     .label_high = 2};
}

/* The objective as it stands above logistic.c, in doubles, by libm. */
static double objective(const struct shmtrain_data *data, const double *w, uint32_t bias, double l2) {
    double loss = 0, square = 0;
    for (uint64_t i = 0; i < data->n_examples; i++) {
        double dot = bias ? w[data->n_features] : 0;
        for (uint64_t k = data->start[i]; k < data->start[i + 1]; k++)
            dot += w[data->id[k]] * (data->value ? (double)data->value[k] : 1);
        loss += log1p(exp(data->label[i] == data->label_high ? -dot : dot));
    }
    for (uint32_t j = 0; j < data->n_features; j++) square += w[j] * w[j];
    return loss / (double)data->n_examples + l2 / 2 * square;
}

/* ---- gradients ---- */

/* From what one step with rate 1 did: w' = (w - g) / (1 + l2) for the rows that L2 means, and g + l2 w is the objective's
 * gradient. */
static void check_gradient(const struct shmtrain_data *data, uint32_t bias, float l2) {
    float w[FEATURES + 1], after[FEATURES + 1];
    double at[FEATURES + 1];
    for (uint32_t j = 0; j <= FEATURES; j++) {
        w[j] = after[j] = (float)shmt_unit(shmt_hash64(13, j, 0, 0)) * 2 - 1;
        at[j] = (double)w[j];
    }
    struct training t = {data, SHMT_WRITE_AGGREGATE, bias, 64, N, 1, 1, l2, 0};
    train(&t, after);
    assert_true(fabs(t.loss / N - objective(data, at, bias, 0)) < 1e-6); /* f32 losses below 4: 37 errors of 2^-23 * 3 */
    for (uint32_t j = 0; j < FEATURES + bias; j++) {
        const double h = 1e-5, d = j < FEATURES ? (double)l2 : 0, here = at[j];
        at[j] = here + h;
        const double above = objective(data, at, bias, (double)l2);
        at[j] = here - h;
        const double below = objective(data, at, bias, (double)l2);
        at[j] = here;
        const double slope = (above - below) / (2 * h), ours = here - (double)after[j] * (1 + d) + d * here;
        /* f32 weights of size 1 are rounded by 2^-24; the difference quotient is right to 1e-9. */
        if (fabs(slope - ours) > 1e-6) fail_msg("weight %u: slope %.9f, step %.9f", j, slope, ours);
    }
}

static void the_gradient_is_that_of_the_objective(void **state) {
    struct sample s;
    (void)state;
    for (int ones = 0; ones < 2; ones++)
        for (uint32_t bias = 0; bias < 2; bias++)
            for (int l2 = 0; l2 < 2; l2++) {
                make_sample(&s, ones);
                if (ones) s.data.value = NULL;
                check_gradient(&s.data, bias, (float)l2 * 0.3f);
            }
}

static void ones_that_are_written_down_and_ones_that_are_not_are_the_same(void **state) {
    struct sample s;
    (void)state;
    make_sample(&s, true);
    for (int write = 0; write < 2; write++) {
        float written[FEATURES + 1] = {0}, left_out[FEATURES + 1] = {0};
        struct training t = {
            &s.data, write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 1, 1 + 7 * (uint32_t)write, 8, 3, 0.5f, 0.01f, 0};
        s.data.value = s.value;
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
    double last = INFINITY;
    float w[FEATURES + 1] = {0};
    (void)state;
    make_sample(&s, false);
    for (int i = 0; i < 20; i++) {
        double at[FEATURES + 1];
        struct training t = {&s.data, SHMT_WRITE_AGGREGATE, 1, 64, N, 1, 0.3f, 0.01f, 0};
        train(&t, w);
        for (int j = 0; j <= FEATURES; j++) at[j] = (double)w[j];
        const double now = objective(&s.data, at, 1, 0.01);
        assert_true(now < last);
        last = now;
    }
}

/* ---- one step by hand ---- */

static const uint64_t HAND_START[] = {0, 2, 3};
static const uint32_t HAND_ID[] = {0, 2, 0};
static const float HAND_VALUE[] = {2, -1, 4}, HAND_LABEL[] = {7, 5};
static const struct shmtrain_data HAND = {.n_examples = 2,
                                          .n_nonzeros = 3,
                                          .n_features = 3,
                                          .n_labels = 2,
                                          .start = HAND_START,
                                          .id = HAND_ID,
                                          .value = HAND_VALUE,
                                          .label = HAND_LABEL,
                                          .label_low = 5,
                                          .label_high = 7};

/* At w = 0 every slope is -y / 2. Batch of both: the gradient's mean is ((-2/2 + 4/2) / 2, 0, (1/2) / 2, 0) = (0.5, 0, 0.25,
 * 0). */
static void one_update_of_sync_by_hand(void **state) {
    float w[4] = {0};
    struct training t = {&HAND, SHMT_WRITE_AGGREGATE, 1, 64, 2, 1, 0.5f, 0, 0};
    (void)state;
    train(&t, w);
    assert_true(w[0] == -0.25f && w[1] == 0 && w[2] == -0.125f && w[3] == 0);
    assert_true(fabs(t.loss - 2 * log(2)) < 1e-7);
}

/* The first example: w = (0.5, 0, -0.25), bias 0.25. The second has dot 0.5 * 4 + 0.25 = 2.25, y = -1, slope 1 / (1 + e^-2.25)
 * = 0.904650536: w[0] -= 0.5 * 0.904650536 * 4, bias -= 0.5 * 0.904650536. */
static void two_updates_of_async_by_hand(void **state) {
    float w[4] = {0};
    struct training t = {&HAND, SHMT_WRITE_RACY, 1, 1, 2, 1, 0.5f, 0, 0};
    (void)state;
    train(&t, w);
    assert_true(w[1] == 0 && w[2] == -0.25f);
    assert_true(fabs((double)w[0] - (0.5 - 1.809301072)) < 1e-6);
    assert_true(fabs((double)w[3] - (0.25 - 0.452325268)) < 1e-6);
    assert_true(fabs(t.loss - (log(2) + log1p(exp(2.25)))) < 1e-6);
}

/* In a group of two both dot products are taken at w = 0. */
static void a_group_sees_the_weights_before_any_of_it(void **state) {
    float w[4] = {0};
    struct training t = {&HAND, SHMT_WRITE_RACY, 1, 2, 2, 1, 0.5f, 0, 0};
    (void)state;
    train(&t, w);
    assert_true(w[0] == 0.5f - 1 && w[1] == 0 && w[2] == -0.25f && w[3] == 0);
}

/* L2 in the live modes, share 1: with d = rate * l2 = 0.5 * 0.5, the touched weights of example 0 are (1 + 0.25) / 1.25 = 1
 * (slope near 0: the dot is 2 * 1 - 1 * -20 + 100) and -20 / 1.25; the untouched one and the bias stay. */
static void l2_in_async_draws_what_an_example_touches(void **state) {
    float w[4] = {1.25f, 3, -20, 100};
    struct shmtrain_data first = HAND;
    struct training t = {&first, SHMT_WRITE_RACY, 1, 1, 1, 1, 0.5f, 0.5f, 0};
    (void)state;
    first.n_examples = 1;
    train(&t, w);
    assert_true(fabsf(w[0] - 1) < 1e-6f && w[1] == 3 && fabsf(w[2] + 16) < 1e-5f && w[3] == 100);
}

/* ---- LIBLINEAR ---- */

static const struct {
    int y;
    uint32_t id[3];
    float value[3];
} GOLDEN[] = {
    {1, {0, 2, 4}, {-1, 0.25f, -1}},           {-1, {0, 1, 2}, {1, 0.5f, -1.75f}},   {1, {0, 2, 4}, {1.75f, -2, 0.5f}},
    {1, {0, 1, 2}, {-0.75f, 0.5f, 1}},         {1, {0, 2, 4}, {-0.75f, -0.5f, -1}},  {1, {0, 2, 4}, {1.25f, -2, -0.75f}},
    {-1, {1, 2, 3}, {-0.25f, -0.75f, -0.25f}}, {-1, {0, 2, 3}, {-1.75f, 0.5f, -1}},  {1, {0, 2, 3}, {2, -1.25f, -0.25f}},
    {1, {0, 2, 3}, {-0.5f, 1, -0.75f}},        {1, {0, 2, 3}, {0.75f, -1, 0.25f}},   {-1, {0, 2, 4}, {-0.75f, -2, -0.5f}},
    {1, {0, 2, 4}, {-0.75f, -0.75f, -1.5f}},   {1, {0, 1, 4}, {0.5f, 1.5f, -0.75f}}, {1, {1, 3, 4}, {0.25f, -0.5f, -0.25f}},
    {-1, {2, 3, 4}, {-1.5f, 2, -0.25f}},       {-1, {0, 3, 4}, {1, 0.5f, 2}},        {1, {2, 3, 4}, {-1, 2, -1.5f}},
    {-1, {1, 3, 4}, {-1.25f, -0.25f, 0.5f}},   {-1, {1, 2, 3}, {1.5f, 1.25f, 0.5f}},
};
enum { GOLDEN_N = sizeof GOLDEN / sizeof *GOLDEN };

/* The objective of LIBLINEAR is C times the summed loss + |w|^2 / 2, ours divided by C n: the optimum is the same for
 * l2 = 1 / (C n). `constant`: a column of ones behind the others, as its option -B 1 adds (and regularises) it. */
static void reaches(double c, bool constant, const double *optimum) {
    uint64_t start[GOLDEN_N + 1];
    uint32_t id[GOLDEN_N * 4];
    float value[GOLDEN_N * 4], label[GOLDEN_N], w[6] = {0};
    uint64_t n = 0;
    for (uint32_t i = 0; i < GOLDEN_N; i++) {
        start[i] = n;
        for (int k = 0; k < 3; k++) {
            id[n] = GOLDEN[i].id[k];
            value[n++] = GOLDEN[i].value[k];
        }
        if (constant) {
            id[n] = 5;
            value[n++] = 1;
        }
        label[i] = (float)GOLDEN[i].y;
    }
    start[GOLDEN_N] = n;
    const struct shmtrain_data data = {.n_examples = GOLDEN_N,
                                       .n_nonzeros = n,
                                       .n_features = constant ? 6 : 5,
                                       .n_labels = 2,
                                       .start = start,
                                       .id = id,
                                       .value = value,
                                       .label = label,
                                       .label_low = -1,
                                       .label_high = 1};
    /* Batches of all examples. The slope of the loss changes by less than |x|^2 / 4 < 2.5 per unit, so a rate of 0.4 converges,
     * at least by a factor 1 / (1 + 0.4 l2) per epoch: 2,000 epochs are e^-8 for the smallest l2 here, and much more in fact.
     */
    struct training t = {&data, SHMT_WRITE_AGGREGATE, 0, 64, GOLDEN_N, 2000, 0.4f, (float)(1 / (c * GOLDEN_N)), 0};
    train(&t, w);
    for (uint32_t j = 0; j < data.n_features; j++)
        if (fabs((double)w[j] - optimum[j]) > 1e-4) fail_msg("C %g, weight %u: %.6f, not %.6f", c, j, (double)w[j], optimum[j]);
}

/* LIBLINEAR (Debian 2.3.0+dfsg-5) on these 20 examples, written as lines like "+1 1:-1 3:0.25 5:-1":
 *     liblinear-train -s 0 -c 1 -e 1e-9 golden.svm m; sed 1,6d m */
static void the_optimum_is_liblinears(void **state) {
    static const double C1[] = {0.76328985342523104, 0.049102914724115716, 0.27366857586406113, -0.39357947960590378,
                                -1.4656684175083554};
    /* -c 5 */
    static const double C5[] = {1.6925903583055388, -0.33496225251911022, 0.79676480012243389, -0.87575639358516888,
                                -3.0070376428979717};
    /* -c 1 -B 1 */
    static const double B1[] = {0.78809826915737735,  -0.011443693906123337, 0.35382789917858942,
                                -0.38173387369333905, -1.4259384529849843,   0.22467414032277816};
    (void)state;
    reaches(1, false, C1);
    reaches(5, false, C5);
    reaches(1, true, B1);
}

/* ---- scores ---- */

static int score_all(const struct shmtrain_data *data, const float *w, uint32_t bias, const uint32_t *example, float *score,
                     double *loss) {
    const struct shmt_backend_ops *ops = &SHMT_BACKEND_PLAIN;
    const struct shmtrain_settings with = {.bias = bias, .group = 1};
    struct shmt_spec spec = {.n_seats = 1,
                             .n_workers = 1,
                             .n_examples = data->n_examples,
                             .epochs = 1,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {SHMT_WRITE_RACY, SHMT_STALENESS_INF},
                             .batch = 1,
                             .n_chunks = 1,
                             .item = 1,
                             .n_tables = 1,
                             .table = {{.name = "weight", .rows = data->n_features + bias, .width = 1}}};
    const struct shmtrain_batch batch = {.data = data, .example = example, .n = (uint32_t)data->n_examples};
    struct shmt_store *store;
    shmtrain_session s;
    assert_int_equal(ops->create(&spec, NULL, &store, NULL), 0);
    ops->write(store, 0, 0, spec.table[0].rows, w);
    assert_int_equal(shmt_session_enter(&s, ops, store, &spec, 0, 0, NULL), 0);
    const int rc = SHMT_MODEL_LOGISTIC.score(&s, &batch, &with, score, loss);
    float after[FEATURES + 1];
    ops->read(store, 0, 0, spec.table[0].rows, after);
    assert_memory_equal(after, w, spec.table[0].rows * sizeof *w); /* scoring pushes nothing */
    shmt_session_leave(&s);
    ops->destroy(store);
    return rc;
}

static void scores_are_dot_products_and_losses_those_of_the_objective(void **state) {
    struct sample s;
    float w[FEATURES + 1], score[N], picked[N];
    uint32_t backwards[N];
    double at[FEATURES + 1], loss, again;
    (void)state;
    make_sample(&s, false);
    for (uint32_t j = 0; j <= FEATURES; j++) at[j] = (double)(w[j] = (float)shmt_unit(shmt_hash64(14, j, 0, 0)) - 0.5f);
    for (uint32_t i = 0; i < N; i++) backwards[i] = N - 1 - i;
    for (uint32_t bias = 0; bias < 2; bias++) {
        assert_int_equal(score_all(&s.data, w, bias, NULL, score, &loss), 0);
        assert_true(fabs(loss / N - objective(&s.data, at, bias, 0)) < 1e-6);
        for (uint32_t i = 0; i < N; i++) {
            double dot = bias ? at[FEATURES] : 0;
            for (uint64_t k = s.start[i]; k < s.start[i + 1]; k++) dot += at[s.id[k]] * (double)s.value[k];
            assert_true(fabs(dot - (double)score[i]) < 1e-5);
        }
        assert_int_equal(score_all(&s.data, w, bias, backwards, picked, &again), 0);
        for (uint32_t i = 0; i < N; i++) assert_true(picked[i] == score[N - 1 - i]);
        assert_true(fabs(again - loss) < 1e-9);
    }
    assert_true(SHMT_MODEL_LOGISTIC.threshold == 0);
}

/* ---- what a model says about itself ---- */

static void data_needs_two_labels(void **state) {
    struct shmtrain_data data = HAND;
    (void)state;
    assert_null(SHMT_MODEL_LOGISTIC.check(&data));
    data.n_labels = 1;
    assert_non_null(strstr(SHMT_MODEL_LOGISTIC.check(&data), "one label only"));
    data.n_labels = 3;
    assert_non_null(strstr(SHMT_MODEL_LOGISTIC.check(&data), "more than two labels"));
}

static void the_bias_is_a_row_behind_those_that_l2_means(void **state) {
    const struct shmtrain_settings with = {.bias = 1}, without = {.bias = 0};
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    (void)state;
    assert_int_equal(SHMT_MODEL_LOGISTIC.tables(&HAND, &with, shape), 1);
    assert_string_equal(shape[0].name, "weight");
    assert_true(shape[0].rows == 4 && shape[0].width == 1 && shape[0].l2_rows == 3);
    assert_int_equal(SHMT_MODEL_LOGISTIC.tables(&HAND, &without, shape), 1);
    assert_true(shape[0].rows == 3 && shape[0].l2_rows == 3);
}

static void the_list_of_models_ends_and_names_each_once(void **state) {
    size_t n = 0;
    (void)state;
    for (; shmt_model_at(n); n++) {
        const struct shmtrain_model *model = shmt_model_at(n);
        assert_true(model->name[0] && model->about[0] && model->tables && model->step && model->score);
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
        TEST(one_update_of_sync_by_hand),
        TEST(two_updates_of_async_by_hand),
        TEST(a_group_sees_the_weights_before_any_of_it),
        TEST(l2_in_async_draws_what_an_example_touches),
        TEST(the_optimum_is_liblinears),
        TEST(scores_are_dot_products_and_losses_those_of_the_objective),
        TEST(data_needs_two_labels),
        TEST(the_bias_is_a_row_behind_those_that_l2_means),
        TEST(the_list_of_models_ends_and_names_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
