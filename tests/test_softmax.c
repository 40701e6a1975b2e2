/* softmax: slopes against finite differences, its optimum against that of two-class logistic regression, tiles and threads
 * against one another bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "math/blas.h"
#include "model_help.h"
#include "models/models.h"

static int deadline(void **state) {
    (void)state;
    alarm(120);
    return 0;
}

static int need_blas(void **state) {
    struct shmt_error e = {0};
    (void)deadline(state);
    if (shmt_blas_open(&e) == 0) return 0;
    print_message("softmax is not tested: %s\n", e.text);
    return -1;
}

/* ---- data ---- */

/* n examples of `features` columns in `classes` classes; the labels are 3, 5, 7 ..., so that none is the number of its class.
 * */
struct sample {
    struct shmtrain_data data;
    float *dense, *label, *weight, *classes;
};

static void make_sample(struct sample *s, uint32_t n, uint32_t features, uint32_t classes, bool weights) {
    const uint64_t floats = (uint64_t)n * features;
    *s = (struct sample){.dense = malloc((floats + 1) * sizeof(float)),
                         .label = malloc(n * sizeof(float)),
                         .weight = malloc(n * sizeof(float)),
                         .classes = malloc(classes * sizeof(float))};
    assert_true(s->dense && s->label && s->weight && s->classes);
    for (uint64_t i = 0; i < floats; i++) s->dense[i] = (float)shmt_unit(shmt_hash64(21, i, 0, 0)) * 2 - 1;
    for (uint32_t c = 0; c < classes; c++) s->classes[c] = (float)(2 * c + 3);
    for (uint32_t i = 0; i < n; i++) {
        s->label[i] = s->classes[shmt_below(shmt_hash64(22, i, 0, 0), classes)];
        s->weight[i] = (float)shmt_below(shmt_hash64(23, i, 0, 0), 5) / 2;
    }
    s->data = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                     .n_examples = n,
                                     .n_features = features,
                                     .n_labels = classes,
                                     .dense = s->dense,
                                     .label = s->label,
                                     .weight = weights ? s->weight : NULL,
                                     .classes = s->classes};
}

static void free_sample(struct sample *s) {
    free(s->dense);
    free(s->label);
    free(s->weight);
    free(s->classes);
}

static float *make_weights(uint64_t n) {
    float *w = malloc(n * sizeof *w);
    assert_non_null(w);
    for (uint64_t i = 0; i < n; i++) w[i] = (float)shmt_unit(shmt_hash64(24, i, 0, 0)) - 0.5f;
    return w;
}

static struct training of_all(const struct shmtrain_data *data, uint32_t bias, float rate, float l2) {
    struct training t = full_batches(&SHMT_MODEL_SOFTMAX, data, bias, rate, l2);
    t.with.threads = 1;
    return t;
}

/* The objective as it stands above softmax.c, in doubles, by libm. w: the weights, then the bias. */
static double objective(const struct shmtrain_data *data, const double *w, uint32_t bias, double l2) {
    const uint32_t classes = data->n_labels, features = data->n_features;
    double loss = 0, square = 0;
    for (uint64_t i = 0; i < data->n_examples; i++) {
        double sum = 0, own = 0;
        for (uint32_t c = 0; c < classes; c++) {
            double z = bias ? w[classes * features + c] : 0;
            for (uint32_t j = 0; j < features; j++) z += w[c * features + j] * (double)data->dense[i * features + j];
            sum += exp(z);
            if (data->classes[c] == data->label[i]) own = z;
        }
        loss += (data->weight ? (double)data->weight[i] : 1) * (log(sum) - own);
    }
    for (uint32_t j = 0; j < classes * features; j++) square += w[j] * w[j];
    return loss / (double)data->n_examples + l2 / 2 * square;
}

/* ---- gradients ---- */

/* From what one step with rate 1 did; see test_models.c. */
static void check_gradient(const struct shmtrain_data *data, uint32_t bias, float l2) {
    const uint32_t n_weights = data->n_labels * data->n_features, n = n_weights + bias * data->n_labels;
    float *w = make_weights(n);
    double *at = malloc(n * sizeof *at);
    assert_non_null(at);
    for (uint32_t j = 0; j < n; j++) at[j] = (double)w[j];
    struct training t = of_all(data, bias, 1, l2);
    train(&t, w);
    assert_true(fabs(t.loss / (double)data->n_examples - objective(data, at, bias, 0)) < 1e-6);
    for (uint32_t j = 0; j < n; j++) {
        const double h = 1e-5, d = j < n_weights ? (double)l2 : 0, here = at[j];
        at[j] = here + h;
        const double above = objective(data, at, bias, (double)l2);
        at[j] = here - h;
        const double below = objective(data, at, bias, (double)l2);
        at[j] = here;
        const double slope = (above - below) / (2 * h), ours = here - (double)w[j] * (1 + d) + d * here;
        /* f32 weights of size 1 are rounded by 2^-24; the difference quotient is right to 1e-9. */
        if (fabs(slope - ours) > 1e-6) fail_msg("weight %u: slope %.9f, step %.9f", j, slope, ours);
    }
    free(at);
    free(w);
}

static void the_gradient_is_that_of_the_objective(void **state) {
    (void)state;
    for (uint32_t bias = 0; bias < 2; bias++)
        for (int more = 0; more < 4; more++)
            for (uint32_t classes = 2; classes <= 5; classes += 3) {
                struct sample s;
                make_sample(&s, 150, 6, classes, more & 2); /* three tiles, the last one short */
                check_gradient(&s.data, bias, (float)(more & 1) * 0.3f);
                free_sample(&s);
            }
}

/* More classes than a block has, and more features. */
static void wide_models_have_the_same_gradient_as_the_plain_loop(void **state) {
    enum { N = 70, FEATURES = 300, CLASSES = 150 };
    struct sample s;
    (void)state;
    make_sample(&s, N, FEATURES, CLASSES, true);
    float *w = make_weights((uint64_t)CLASSES * (FEATURES + 1)), *before = make_weights((uint64_t)CLASSES * (FEATURES + 1));
    double *want = calloc((uint64_t)CLASSES * (FEATURES + 1), sizeof *want), z[CLASSES];
    assert_non_null(want);
    for (uint32_t i = 0; i < N; i++) {
        double sum = 0;
        for (uint32_t c = 0; c < CLASSES; c++) {
            z[c] = (double)before[CLASSES * FEATURES + c];
            for (uint32_t j = 0; j < FEATURES; j++)
                z[c] += (double)before[c * FEATURES + j] * (double)s.dense[i * FEATURES + j];
            sum += z[c] = exp(z[c]);
        }
        for (uint32_t c = 0; c < CLASSES; c++) {
            const double g = (double)s.weight[i] * (z[c] / sum - (s.classes[c] == s.label[i]));
            for (uint32_t j = 0; j < FEATURES; j++) want[c * FEATURES + j] += g * (double)s.dense[i * FEATURES + j] / N;
            want[CLASSES * FEATURES + c] += g / N;
        }
    }
    struct training t = of_all(&s.data, 1, 1, 0);
    train(&t, w);
    for (uint32_t j = 0; j < CLASSES * (FEATURES + 1); j++)
        if (fabs((double)before[j] - want[j] - (double)w[j]) > 1e-6)
            fail_msg("parameter %u: %.8f, not %.8f", j, (double)w[j], (double)before[j] - want[j]);
    free(want);
    free(before);
    free(w);
    free_sample(&s);
}

/* ---- bits ---- */

static void threads_change_no_bit(void **state) {
    static const struct {
        uint32_t n, features, classes, batch;
    } SHAPES[] = {{600, 784, 40, 600}, {130, 40, 3, 130}, {200, 600, 150, 200}, {9, 1, 2, 8}}; /* two are worth threads */
    (void)state;
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const uint64_t floats = (uint64_t)SHAPES[i].classes * (SHAPES[i].features + 1);
        float *first = make_weights(floats), *again = make_weights(floats), *untouched = make_weights(floats);
        struct sample s;
        make_sample(&s, SHAPES[i].n, SHAPES[i].features, SHAPES[i].classes, true);
        struct training t = of_all(&s.data, 1, 0.1f, 0.01f);
        t.batch = SHAPES[i].batch;
        train(&t, first);
        assert_memory_not_equal(first, untouched, floats * sizeof *first);
        for (uint32_t threads = 2; threads <= 5; threads++) {
            memcpy(again, untouched, floats * sizeof *again);
            t.with.threads = threads;
            train(&t, again);
            assert_memory_equal(again, first, floats * sizeof *first);
        }
        free_sample(&s);
        free(first);
        free(again);
        free(untouched);
    }
}

/* In their order examples are used where they stand; in any other they are gathered first. */
static void gathered_examples_give_the_same_bits(void **state) {
    enum { N = 150, FEATURES = 20, CLASSES = 4, FLOATS = CLASSES * (FEATURES + 1) };
    uint32_t order[N], upside_down[N];
    struct sample s, other;
    (void)state;
    make_sample(&s, N, FEATURES, CLASSES, true);
    make_sample(&other, N, FEATURES, CLASSES, true);
    for (uint32_t i = 0; i < N; i++) {
        order[i] = i;
        upside_down[i] = N - 1 - i;
        memcpy(other.dense + (N - 1 - i) * FEATURES, s.dense + i * FEATURES, FEATURES * sizeof(float));
        other.label[N - 1 - i] = s.label[i];
        other.weight[N - 1 - i] = s.weight[i];
    }
    for (int live = 0; live < 2; live++) {
        float *in_place = make_weights(FLOATS), *gathered = make_weights(FLOATS), *turned = make_weights(FLOATS);
        struct training t = of_all(&s.data, 1, 0.1f, 0);
        if (live) t.write = SHMT_WRITE_RACY;
        train(&t, in_place);
        t.example = order;
        train(&t, gathered);
        t.data = &other.data;
        t.example = upside_down;
        train(&t, turned);
        assert_memory_equal(gathered, in_place, FLOATS * sizeof(float));
        assert_memory_equal(turned, in_place, FLOATS * sizeof(float));
        free(in_place);
        free(gathered);
        free(turned);
    }
    free_sample(&s);
    free_sample(&other);
}

/* ---- sparse rows ---- */

/* Most values become 0, all of row 3; the rest as nonzeros: `ones`, all are 1. */
static struct shmtrain_data thin(struct sample *s, bool ones) {
    const uint64_t n = s->data.n_examples, features = s->data.n_features;
    uint64_t *start = malloc((n + 1) * sizeof *start);
    uint32_t *id = malloc(n * features * sizeof *id);
    float *value = malloc(n * features * sizeof *value);
    assert_true(start && id && value);
    start[0] = 0;
    for (uint64_t i = 0; i < n; i++) {
        start[i + 1] = start[i];
        for (uint64_t j = 0; j < features; j++) {
            float *at = &s->dense[i * features + j];
            if (i == 3 || shmt_below(shmt_hash64(25, i, j, 0), 9) > 0) *at = 0;
            if (*at == 0) continue;
            if (ones) *at = 1;
            id[start[i + 1]] = (uint32_t)j;
            value[start[i + 1]++] = *at;
        }
    }
    struct shmtrain_data sparse = s->data;
    sparse.dense = NULL;
    sparse.start = start;
    sparse.id = id;
    sparse.value = ones ? NULL : value;
    sparse.n_nonzeros = start[n];
    if (ones) free(value);
    return sparse;
}

static void free_thin(const struct shmtrain_data *sparse) {
    free((void *)(uintptr_t)sparse->start);
    free((void *)(uintptr_t)sparse->id);
    free((void *)(uintptr_t)sparse->value);
}

static void rows_of_either_layout_teach_the_same(void **state) {
    enum { N = 600, FEATURES = 300, CLASSES = 7, FLOATS = CLASSES * (FEATURES + 1) };
    (void)state;
    for (int ones = 0; ones < 2; ones++) {
        struct sample s;
        make_sample(&s, N, FEATURES, CLASSES, true);
        struct shmtrain_data sparse = thin(&s, ones);
        float *of_dense = make_weights(FLOATS), *of_sparse = make_weights(FLOATS);
        struct training t = of_all(&s.data, 1, 1, 0.1f);
        train(&t, of_dense);
        const double loss = t.loss;
        t.data = &sparse;
        train(&t, of_sparse);
        assert_true(fabs(t.loss - loss) < 1e-6 * loss);
        for (uint32_t j = 0; j < FLOATS; j++)
            if (fabsf(of_sparse[j] - of_dense[j]) > 1e-6f)
                fail_msg("parameter %u: %.8f, not %.8f", j, (double)of_sparse[j], (double)of_dense[j]);
        free(of_dense);
        free(of_sparse);
        free_thin(&sparse);
        free_sample(&s);
    }
}

static void threads_change_no_bit_of_sparse_rows(void **state) {
    enum { N = 1000, FEATURES = 900, CLASSES = 60, FLOATS = CLASSES * (FEATURES + 1) }; /* worth threads */
    struct sample s;
    (void)state;
    make_sample(&s, N, FEATURES, CLASSES, false);
    struct shmtrain_data sparse = thin(&s, false);
    float *first = make_weights(FLOATS);
    struct training t = of_all(&sparse, 1, 0.1f, 0);
    train(&t, first);
    for (uint32_t threads = 2; threads <= 5; threads++) {
        float *again = make_weights(FLOATS);
        t.with.threads = threads;
        train(&t, again);
        assert_memory_equal(again, first, FLOATS * sizeof *first);
        free(again);
    }
    free(first);
    free_thin(&sparse);
    free_sample(&s);
}

/* ---- learning ---- */

/* Two classes: the difference of the two rows of W is what logistic regression learns, with half of its l2, because the sum of
 * the rows stays 0 and |w_1|^2 + |w_0|^2 = |w_1 - w_0|^2 / 2. */
static void of_two_classes_it_is_logistic_regression(void **state) {
    enum { N = 60, FEATURES = 4 };
    uint64_t start[N + 1];
    uint32_t id[N * FEATURES];
    float two[2 * (FEATURES + 1)] = {0}, one[FEATURES + 1] = {0};
    struct sample s;
    (void)state;
    make_sample(&s, N, FEATURES, 2, true);
    for (uint32_t i = 0; i <= N; i++) start[i] = i * FEATURES;
    for (uint32_t j = 0; j < N * FEATURES; j++) id[j] = j % FEATURES;
    struct shmtrain_data sparse = s.data;
    sparse.dense = NULL;
    sparse.start = start;
    sparse.id = id;
    sparse.value = s.dense;
    struct training t = of_all(&s.data, 1, 1, 0.02f);
    t.epochs = 3000;
    train(&t, two);
    t.model = &SHMT_MODEL_LOGISTIC;
    t.data = &sparse;
    t.l2 = 0.01f;
    train(&t, one);
    for (uint32_t j = 0; j <= FEATURES; j++) {
        const float difference = j < FEATURES ? two[FEATURES + j] - two[j] : two[2 * FEATURES + 1] - two[2 * FEATURES];
        assert_true(fabsf(difference - one[j]) < 1e-4f && fabsf(one[j]) > 0.01f);
    }
    free_sample(&s);
}

static void without_features_it_learns_how_frequent_classes_are(void **state) {
    enum { N = 100 };
    struct sample s;
    float w[3 + 3] = {0}, p[3];
    uint32_t count[3] = {0};
    (void)state;
    make_sample(&s, N, 0, 3, false);
    s.data.dense = NULL;
    for (uint32_t i = 0; i < N; i++) count[(uint32_t)(s.label[i] - 3) / 2]++;
    struct training t = of_all(&s.data, 1, 1, 0);
    t.epochs = 300;
    train(&t, w);
    for (int c = 0; c < 3; c++) p[c] = w[3 + c];
    SHMT_MODEL_SOFTMAX.probabilities(1, 3, p);
    for (int c = 0; c < 3; c++) assert_true(w[c] == 0 && fabsf(p[c] - (float)count[c] / N) < 1e-5f);
    free_sample(&s);
}

/* ---- scores ---- */

static void scores_are_those_of_the_plain_loop_for_any_group(void **state) {
    enum { N = 130, FEATURES = 30, CLASSES = 7 };
    struct sample s;
    (void)state;
    make_sample(&s, N, FEATURES, CLASSES, true);
    float *w = make_weights(CLASSES * (FEATURES + 1)), *kept = make_weights(CLASSES * (FEATURES + 1));
    double at[CLASSES * (FEATURES + 1)], loss;
    float score[N * CLASSES], one[N * CLASSES];
    for (uint32_t j = 0; j < CLASSES * (FEATURES + 1); j++) at[j] = (double)w[j];
    struct training t = of_all(&s.data, 1, 1, 0);
    score_all(&t, w, N, 64, score, &loss);
    assert_true(fabs(loss / N - objective(&s.data, at, 1, 0)) < 1e-6);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t c = 0; c < CLASSES; c++) {
            double z = at[CLASSES * FEATURES + c];
            for (uint32_t j = 0; j < FEATURES; j++) z += at[c * FEATURES + j] * (double)s.dense[i * FEATURES + j];
            assert_true(fabs(z - (double)score[i * CLASSES + c]) < 1e-5);
        }
    score_all(&t, w, N, 1, one, &loss);
    for (uint32_t i = 0; i < N * CLASSES; i++) assert_true(fabsf(one[i] - score[i]) < 1e-5f);
    assert_memory_equal(w, kept, CLASSES * (FEATURES + 1) * sizeof *w); /* scoring pushes nothing */
    free(w);
    free(kept);
    free_sample(&s);
}

static void probabilities_add_up_to_one(void **state) {
    float p[] = {1, 2, 3, 0, 0, 0};
    (void)state;
    SHMT_MODEL_SOFTMAX.probabilities(2, 3, p);
    assert_true(fabsf(p[0] + p[1] + p[2] - 1) < 1e-6f && fabsf(p[1] / p[0] - 2.7182818f) < 1e-5f);
    for (int c = 3; c < 6; c++) assert_true(fabsf(p[c] - 1.0f / 3) < 1e-7f);
}

/* ---- what is refused ---- */

static void a_label_that_training_does_not_know_is_refused(void **state) {
    struct sample s;
    struct shmt_error e = {0};
    float w[9] = {0};
    (void)state;
    make_sample(&s, 10, 2, 3, false);
    s.label[7] = 4;
    struct training t = of_all(&s.data, 1, 1, 0);
    assert_int_equal(try_to_train(&t, w, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "label 4 is not one of the 3 labels of the training data");
    free_sample(&s);
}

static void weights_that_are_no_numbers_show_in_the_loss(void **state) {
    struct sample s;
    float w[9] = {0};
    (void)state;
    make_sample(&s, 10, 2, 3, false);
    w[3] = NAN;
    struct training t = of_all(&s.data, 1, 1, 0);
    train(&t, w);
    assert_true(isnan(t.loss));
    free_sample(&s);
}

static void it_needs_two_labels_and_takes_1024(void **state) {
    struct shmtrain_data data = {.size = sizeof(struct shmtrain_data), .n_labels = 1};
    (void)state;
    assert_non_null(strstr(SHMT_MODEL_SOFTMAX.check(&data), "only one label"));
    data.n_labels = 2;
    assert_null(SHMT_MODEL_SOFTMAX.check(&data));
    data.n_labels = SHMTRAIN_MAX_CLASSES;
    assert_null(SHMT_MODEL_SOFTMAX.check(&data));
    data.n_labels++;
    assert_non_null(strstr(SHMT_MODEL_SOFTMAX.check(&data), "more than 1024 labels"));
}

static void its_tables_have_a_row_for_each_class(void **state) {
    const struct shmtrain_data data = {.size = sizeof(struct shmtrain_data), .n_features = 5, .n_labels = 3};
    const struct shmtrain_settings with = {.size = sizeof(struct shmtrain_settings), .bias = 1, .n_classes = 3},
                                   without = {.bias = 0, .n_classes = 3};
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    (void)state;
    assert_int_equal(SHMT_MODEL_SOFTMAX.tables(&data, &with, NULL, shape), 2);
    assert_string_equal(shape[0].name, "weight");
    assert_true(shape[0].rows == 3 && shape[0].width == 5 && shape[0].l2_rows == 3);
    assert_string_equal(shape[1].name, "bias");
    assert_true(shape[1].rows == 3 && shape[1].width == 1 && shape[1].l2_rows == 0);
    assert_int_equal(SHMT_MODEL_SOFTMAX.tables(&data, &without, NULL, shape), 1);
    assert_int_equal(shmtrain_model_outputs(&SHMT_MODEL_SOFTMAX, &with), 3);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_gradient_is_that_of_the_objective),
        TEST(wide_models_have_the_same_gradient_as_the_plain_loop),
        TEST(threads_change_no_bit),
        TEST(gathered_examples_give_the_same_bits),
        TEST(rows_of_either_layout_teach_the_same),
        TEST(threads_change_no_bit_of_sparse_rows),
        TEST(of_two_classes_it_is_logistic_regression),
        TEST(without_features_it_learns_how_frequent_classes_are),
        TEST(scores_are_those_of_the_plain_loop_for_any_group),
        TEST(probabilities_add_up_to_one),
        TEST(a_label_that_training_does_not_know_is_refused),
        TEST(weights_that_are_no_numbers_show_in_the_loss),
        TEST(it_needs_two_labels_and_takes_1024),
        TEST(its_tables_have_a_row_for_each_class),
    };
    return cmocka_run_group_tests(tests, need_blas, NULL);
}
