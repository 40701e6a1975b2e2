/* models: the linear ones against figures from elsewhere. Single steps by hand, optima against LIBLINEAR and the normal
 * equations. They run on the plain backend, in ordinary memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "model_help.h"
#include "models/models.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

/* ---- one step by hand ---- */

static const uint64_t HAND_START[] = {0, 2, 3};
static const uint32_t HAND_ID[] = {0, 2, 0};
static const float HAND_VALUE[] = {2, -1, 4}, HAND_LABEL[] = {7, 5}, HAND_CLASSES[] = {5, 7};
static const struct shmtrain_data HAND = {.size = sizeof(struct shmtrain_data),
                                          .n_examples = 2,
                                          .n_nonzeros = 3,
                                          .n_features = 3,
                                          .n_labels = 2,
                                          .start = HAND_START,
                                          .id = HAND_ID,
                                          .value = HAND_VALUE,
                                          .label = HAND_LABEL,
                                          .classes = HAND_CLASSES};

static struct training by_hand(const struct shmtrain_model *model, enum shmt_write write, uint32_t group, uint32_t batch) {
    return (struct training){.model = model,
                             .data = &HAND,
                             .write = write,
                             .with = {.bias = 1, .group = group},
                             .batch = batch,
                             .epochs = 1,
                             .rate = {.base = 0.5f, .kind = SHMT_RATE_CONSTANT}};
}

/* At w = 0 every slope is -y / 2. Batch of both: the gradient's mean is ((-2/2 + 4/2) / 2, 0, (1/2) / 2, 0) = (0.5, 0, 0.25,
 * 0). */
static void one_update_of_sync_by_hand(void **state) {
    float w[4] = {0};
    struct training t = by_hand(&SHMT_MODEL_LOGISTIC, SHMT_WRITE_AGGREGATE, 64, 2);
    (void)state;
    train(&t, w);
    assert_true(w[0] == -0.25f && w[1] == 0 && w[2] == -0.125f && w[3] == 0);
    assert_true(fabs(t.loss - 2 * log(2)) < 1e-7);
}

/* The first example: w = (0.5, 0, -0.25), bias 0.25. The second has dot 0.5 * 4 + 0.25 = 2.25, y = -1, slope 1 / (1 + e^-2.25)
 * = 0.904650536: w[0] -= 0.5 * 0.904650536 * 4, bias -= 0.5 * 0.904650536. */
static void two_updates_of_async_by_hand(void **state) {
    float w[4] = {0};
    struct training t = by_hand(&SHMT_MODEL_LOGISTIC, SHMT_WRITE_RACY, 1, 2);
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
    struct training t = by_hand(&SHMT_MODEL_LOGISTIC, SHMT_WRITE_RACY, 2, 2);
    (void)state;
    train(&t, w);
    assert_true(w[0] == 0.5f - 1 && w[1] == 0 && w[2] == -0.25f && w[3] == 0);
}

/* L2 in the live modes, share 1: with d = rate * l2 = 0.5 * 0.5, the touched weights of example 0 are (1 + 0.25) / 1.25 = 1
 * (slope near 0: the dot is 2 * 1 - 1 * -20 + 100) and -20 / 1.25; the untouched one and the bias stay. */
static void l2_in_async_draws_what_an_example_touches(void **state) {
    float w[4] = {1.25f, 3, -20, 100};
    struct shmtrain_data first = HAND;
    struct training t = by_hand(&SHMT_MODEL_LOGISTIC, SHMT_WRITE_RACY, 1, 1);
    (void)state;
    first.n_examples = 1;
    t.data = &first;
    t.l2 = 0.5f;
    train(&t, w);
    assert_true(fabsf(w[0] - 1) < 1e-6f && w[1] == 3 && fabsf(w[2] + 16) < 1e-5f && w[3] == 100);
}

/* At w = 0 the squared loss has the slopes -7 and -5: the mean gradient is (-(14 + 20) / 2, 0, 7 / 2, -12 / 2). */
static void one_update_of_linear_regression_by_hand(void **state) {
    float w[4] = {0};
    struct training t = by_hand(&SHMT_MODEL_LINEAR, SHMT_WRITE_AGGREGATE, 64, 2);
    (void)state;
    train(&t, w);
    assert_true(w[0] == 8.5f && w[1] == 0 && w[2] == -1.75f && w[3] == 3);
    assert_true(t.loss == (49 + 25) / 2.0);
}

/* Dot products 2 * 0.5 = 1 (y = +1, right on the margin) and 4 * 0.5 = 2 (y = -1): the first one pushes nothing, the second one
 * a slope of 1: w[0] = 0.5 - 0.5 * 4, bias = 0.5 * -1. With w = (-2, 0, 0) it is the second that lies beyond its margin. */
static void the_hinge_pushes_inside_the_margin_only(void **state) {
    float w[4] = {0.5f}, beyond[4] = {-2};
    struct training t = by_hand(&SHMT_MODEL_SVM, SHMT_WRITE_RACY, 2, 2);
    (void)state;
    train(&t, w);
    assert_true(w[0] == -1.5f && w[1] == 0 && w[2] == 0 && w[3] == -0.5f);
    assert_true(t.loss == 3);
    train(&t, beyond);
    assert_true(beyond[0] == -1 && beyond[1] == 0 && beyond[2] == -0.5f && beyond[3] == 0.5f);
    assert_true(t.loss == 5);
}

/* Not even the same value: the line would be taken from other cores. A weight of -0 would become 0 by subtracting 0 times
 * -1. */
static void beyond_the_margin_nothing_is_written(void **state) {
    float w[4] = {5, 0, -0.0f};
    struct training t = by_hand(&SHMT_MODEL_SVM, SHMT_WRITE_RACY, 1, 1);
    struct shmtrain_data first = HAND;
    (void)state;
    first.n_examples = 1;
    t.data = &first;
    train(&t, w);
    assert_true(w[0] == 5 && w[2] == 0 && signbit(w[2]) && t.loss == 0);
}

/* The run is ended by the first loss that is no number, so none may be hidden. */
static void weights_that_are_no_numbers_show_in_the_loss(void **state) {
    static const struct shmtrain_model *const LINEAR[] = {&SHMT_MODEL_LOGISTIC, &SHMT_MODEL_SVM, &SHMT_MODEL_LINEAR};
    (void)state;
    for (size_t m = 0; m < sizeof LINEAR / sizeof *LINEAR; m++) {
        float w[4] = {NAN}, score[2];
        double loss;
        struct training t = by_hand(LINEAR[m], SHMT_WRITE_RACY, 1, 2);
        score_all(&t, w, 2, 64, score, &loss);
        assert_true(isnan(loss));
        train(&t, w);
        assert_true(isnan(t.loss));
    }
}

/* ---- optima ---- */

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

struct golden {
    struct shmtrain_data data;
    uint64_t start[GOLDEN_N + 1];
    uint32_t id[GOLDEN_N * 4];
    float value[GOLDEN_N * 4], label[GOLDEN_N];
};

static const float SIGNS[] = {-1, 1};

/* `constant`: a column of ones behind the others, as LIBLINEAR's option -B 1 adds (and regularises) it. */
static void make_golden(struct golden *g, bool constant) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < GOLDEN_N; i++) {
        g->start[i] = n;
        for (int k = 0; k < 3; k++) {
            g->id[n] = GOLDEN[i].id[k];
            g->value[n++] = GOLDEN[i].value[k];
        }
        if (constant) {
            g->id[n] = 5;
            g->value[n++] = 1;
        }
        g->label[i] = (float)GOLDEN[i].y;
    }
    g->start[GOLDEN_N] = n;
    g->data = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                     .n_examples = GOLDEN_N,
                                     .n_nonzeros = n,
                                     .n_features = constant ? 6 : 5,
                                     .n_labels = 2,
                                     .start = g->start,
                                     .id = g->id,
                                     .value = g->value,
                                     .label = g->label,
                                     .classes = SIGNS};
}

static void near(const char *name, double c, const float *w, const double *optimum, uint32_t n, double tolerance) {
    for (uint32_t j = 0; j < n; j++)
        if (fabs((double)w[j] - optimum[j]) > tolerance)
            fail_msg("%s, C %g, weight %u: %.6f, not %.6f", name, c, j, (double)w[j], optimum[j]);
}

/* The objective of LIBLINEAR is C times the summed loss + |w|^2 / 2, ours divided by C n: the optimum is the same for
 * l2 = 1 / (C n). */
static void logistic_reaches(double c, bool constant, const double *optimum) {
    struct golden g;
    float w[6] = {0};
    make_golden(&g, constant);
    /* Batches of all examples. The slope of the loss changes by less than |x|^2 / 4 < 2.5 per unit, so a rate of 0.4 converges,
     * at least by a factor 1 / (1 + 0.4 l2) per epoch: 2,000 epochs are e^-8 for the smallest l2 here, and much more in fact.
     */
    struct training t = full_batches(&SHMT_MODEL_LOGISTIC, &g.data, 0, 0.4f, (float)(1 / (c * GOLDEN_N)));
    t.epochs = 2000;
    train(&t, w);
    near("logistic", c, w, optimum, g.data.n_features, 1e-4);
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
    logistic_reaches(1, false, C1);
    logistic_reaches(5, false, C5);
    logistic_reaches(1, true, B1);
}

/* Subgradient steps of rate 1 / (l2 k) in step k get as near as O(log k / k) (Shalev-Shwartz et al. 2007, Pegasos). */
static void svm_reaches(double c, bool constant, const double *optimum) {
    struct golden g;
    float w[6] = {0};
    make_golden(&g, constant);
    struct training t = full_batches(&SHMT_MODEL_SVM, &g.data, 0, (float)(c * GOLDEN_N), (float)(1 / (c * GOLDEN_N)));
    t.rate.kind = SHMT_RATE_INVERSE;
    t.rate.power = 1;
    t.rate.every = 1;
    t.epochs = 20000;
    train(&t, w);
    near("svm", c, w, optimum, g.data.n_features, 2e-3);
}

/*     liblinear-train -s 3 -c 1 -e 1e-10 golden.svm m; sed 1,6d m */
static void the_optimum_of_the_hinge_is_liblinears(void **state) {
    static const double C1[] = {0.85584150007745952, 0.17001721210123155, 0.60519511763971068, -0.25917150184806736,
                                -1.7045427206675319};
    /* -c 5 */
    static const double C5[] = {1.2394366196403721, 0.028169014429293891, 0.59154929580140203, -0.87323943651685476,
                                -2.2253521125567413};
    /* -c 1 -B 1 */
    static const double B1[] = {1.0119813286902175,   0.14567917223728727, 0.68615073810481741,
                                -0.37374163991354603, -1.418312342896987,  0.42213130125965831};
    (void)state;
    svm_reaches(1, false, C1);
    svm_reaches(5, false, C5);
    svm_reaches(1, true, B1);
}

/* Solves a x = b (n, n) by elimination without a choice of pivots: for positive definite matrices. b becomes x. */
static void solve(uint32_t n, double a[6][6], double *b) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            const double f = a[j][i] / a[i][i];
            for (uint32_t k = i; k < n; k++) a[j][k] -= f * a[i][k];
            b[j] -= f * b[i];
        }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
}

/* Ridge regression: (X^T X / n + l2 I) w = X^T y / n, where the bias is a column of ones without l2. */
static void the_optimum_of_linear_regression_solves_the_normal_equations(void **state) {
    struct golden g;
    double a[6][6] = {{0}}, b[6] = {0};
    float w[6] = {0};
    (void)state;
    make_golden(&g, false);
    for (uint32_t i = 0; i < GOLDEN_N; i++) g.label[i] = (float)(i % 7) - 2; /* any numbers */
    for (uint32_t i = 0; i < GOLDEN_N; i++) {
        double x[6] = {0};
        x[5] = 1;
        for (uint64_t k = g.start[i]; k < g.start[i + 1]; k++) x[g.id[k]] = (double)g.value[k];
        for (int r = 0; r < 6; r++) {
            b[r] += x[r] * (double)g.label[i] / GOLDEN_N;
            for (int c = 0; c < 6; c++) a[r][c] += x[r] * x[c] / GOLDEN_N;
        }
    }
    for (int r = 0; r < 5; r++) a[r][r] += 0.05;
    solve(6, a, b);
    struct training t = full_batches(&SHMT_MODEL_LINEAR, &g.data, 1, 0.3f, 0.05f);
    t.epochs = 2000;
    train(&t, w);
    near("linear", 1, w, b, 6, 1e-5);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(one_update_of_sync_by_hand),
        TEST(two_updates_of_async_by_hand),
        TEST(a_group_sees_the_weights_before_any_of_it),
        TEST(l2_in_async_draws_what_an_example_touches),
        TEST(one_update_of_linear_regression_by_hand),
        TEST(the_hinge_pushes_inside_the_margin_only),
        TEST(beyond_the_margin_nothing_is_written),
        TEST(weights_that_are_no_numbers_show_in_the_loss),
        TEST(the_optimum_is_liblinears),
        TEST(the_optimum_of_the_hinge_is_liblinears),
        TEST(the_optimum_of_linear_regression_solves_the_normal_equations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
