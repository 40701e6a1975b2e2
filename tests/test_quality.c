/* Evaluation through the library: precision and recall by class, and whether probabilities can be believed. Models are made by
 * hand, and the expected numbers are worked out here from the examples. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdio.h>

#include "files/model_file.h"

static void write_model(const char *name, const char *features, const char *classes, const struct shmt_tensor *tensor) {
    const char *comma = strrchr(classes, ',');
    char low[16];
    snprintf(low, sizeof low, "%.*s", (int)strcspn(classes, ","), classes);
    const struct shmt_note note[] = {{"shmtrain.model", name},        {"shmtrain.features", features},
                                     {"shmtrain.first_feature", "1"}, {"shmtrain.bias", "0"},
                                     {"shmtrain.label_low", low},     {"shmtrain.label_high", comma + 1},
                                     {"shmtrain.classes", classes}};
    struct shmt_error e = {0};
    assert_int_equal(shmt_model_file_write("model", tensor, 1, note, sizeof note / sizeof *note, &e), 0);
}

/* The score is feature 1. */
static void write_binary(const char *name) {
    static const float ONE[] = {1};
    write_model(name, "1", "-1,1", &(struct shmt_tensor){.name = "weight", .rows = 1, .width = 1, .data = ONE});
}

/* Four classes; the score of class c is feature c + 1. */
static void write_classes(void) {
    static const float UNIT[16] = {[0] = 1, [5] = 1, [10] = 1, [15] = 1};
    write_model("softmax", "4", "1,2,3,9", &(struct shmt_tensor){.name = "weight", .rows = 4, .width = 4, .data = UNIT});
}

static const struct shmtrain_evaluation *evaluate(struct shmtrain_store *store, const char *data) {
    const struct shmtrain_evaluation *e;
    write_text("data", data);
    WELL(store, shmtrain_store_load(store, "model"));
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    return e;
}

static struct shmtrain_store *make_scorer(void) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    return store;
}

static void assert_near(double got, double expected) {
    if (!(fabs(got - expected) < 1e-6)) fail_msg("%.9g is not %.9g", got, expected); /* scores are floats */
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void precision_and_recall_are_of_the_larger_label(void **state) {
    struct shmtrain_store *store = make_scorer();
    (void)state;
    write_binary("svm");
    const struct shmtrain_evaluation *e = evaluate(store, "1 1:2\n1 1:1\n1 1:-1\n-1 1:3\n-1 1:-2\n-1 1:-1\n-1 1:-3\n");
    assert_near(e->precision, 2. / 3);
    assert_near(e->recall, 2. / 3);
    assert_near(e->f1, 2. / 3);
    assert_int_equal(e->class_score[0].examples, 4);
    assert_int_equal(e->class_score[0].predicted, 4);
    assert_near(e->class_score[0].precision, 3. / 4);
    assert_near(e->class_score[0].recall, 3. / 4);
    assert_null(e->bin); /* a support vector machine has no probabilities */
    assert_true(isnan(e->brier) && isnan(e->calibration_error));
    shmtrain_store_destroy(store);
}

static void what_has_no_value_is_none(void **state) {
    struct shmtrain_store *store = make_scorer();
    (void)state;
    write_binary("svm");
    const struct shmtrain_evaluation *e = evaluate(store, "1 1:-2\n-1 1:-1\n");
    assert_true(isnan(e->precision)); /* nothing was taken for it */
    assert_true(e->recall == 0 && e->f1 == 0);
    e = evaluate(store, "-1 1:-2\n-1 1:-1\n");
    assert_true(isnan(e->precision) && isnan(e->recall) && isnan(e->f1));
    shmtrain_store_destroy(store);
}

static void probabilities_are_held_against_labels_by_tenths(void **state) {
    static const float X[] = {-2.5f, -2.6f, 0.5f, 0.55f, 0.6f, 3};
    static const int LABEL[] = {-1, 1, 1, -1, 1, 1};
    struct shmtrain_store *store = make_scorer();
    char data[200] = "";
    double p[6], brier = 0;
    (void)state;
    for (int i = 0; i < 6; i++) {
        sprintf(data + strlen(data), "%d 1:%g\n", LABEL[i], (double)X[i]);
        p[i] = sigmoid((double)X[i]);
        brier += pow(p[i] - (LABEL[i] > 0), 2) / 6;
    }
    write_binary("logistic");
    const struct shmtrain_evaluation *e = evaluate(store, data);
    assert_int_equal(e->bin[0].examples, 2);
    assert_near(e->bin[0].predicted, (p[0] + p[1]) / 2);
    assert_near(e->bin[0].observed, 0.5);
    assert_int_equal(e->bin[6].examples, 3);
    assert_near(e->bin[6].predicted, (p[2] + p[3] + p[4]) / 3);
    assert_near(e->bin[6].observed, 2. / 3);
    assert_int_equal(e->bin[9].examples, 1);
    assert_int_equal(e->bin[5].examples, 0);
    assert_true(isnan(e->bin[5].predicted) && isnan(e->bin[5].observed));
    assert_near(e->brier, brier);
    assert_near(e->calibration_error, (fabs(p[0] + p[1] - 1) + fabs(p[2] + p[3] + p[4] - 2) + fabs(p[5] - 1)) / 6);
    e = evaluate(store, "1 1:400\n-1 1:-400\n"); /* exactly 1, and 0 */
    assert_true(e->bin[9].examples == 1 && e->bin[9].observed == 1);
    assert_true(e->bin[0].examples == 1 && e->bin[0].observed == 0);
    shmtrain_store_destroy(store);
}

static void of_several_classes_the_mean_and_the_predicted_ones_probability_count(void **state) {
    struct shmtrain_store *store = make_scorer();
    (void)state;
    write_classes();
    /* Class 9 is nowhere. Predicted: 1, 2, 1, 3. */
    const struct shmtrain_evaluation *e = evaluate(store, "1 1:2\n2 2:2\n2 1:2\n1 3:2\n");
    const double high = exp(2) / (exp(2) + 3), low = 1 / (exp(2) + 3);
    assert_near(e->precision, (0.5 + 1 + 0) / 3);
    assert_near(e->recall, (0.5 + 0.5 + 0) / 3);
    assert_near(e->f1, (0.5 + 2. / 3 + 0) / 3);
    assert_true(isnan(e->class_score[3].f1));
    assert_true(isnan(e->class_score[2].recall) && e->class_score[2].precision == 0);
    assert_int_equal(e->bin[(int)(high * 10)].examples, 4);
    assert_near(e->bin[(int)(high * 10)].predicted, high);
    assert_near(e->bin[(int)(high * 10)].observed, 0.5);
    assert_near(e->calibration_error, fabs(high - 0.5));
    const double right = pow(1 - high, 2) + 3 * low * low, wrong = pow(high, 2) + pow(1 - low, 2) + 2 * low * low;
    assert_near(e->brier, (2 * right + 2 * wrong) / 4);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(precision_and_recall_are_of_the_larger_label, deadline),
        cmocka_unit_test_setup(what_has_no_value_is_none, deadline),
        cmocka_unit_test_setup(probabilities_are_held_against_labels_by_tenths, deadline),
        cmocka_unit_test_setup(of_several_classes_the_mean_and_the_predicted_ones_probability_count, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
