/* report: what a model is worth, as lines for people and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shmtrain/report.h>

static const float TWO[] = {-1, 1};
static const uint64_t TWO_BY_TWO[] = {700, 12, 33, 1000000};

static const struct shmtrain_class_score SCORES[] = {
    {.examples = 712, .predicted = 733, .precision = 0.954980, .recall = 0.983146, .f1 = 0.968858},
    {.examples = 1000033, .predicted = 1000012, .precision = 0.999988, .recall = 0.999967, .f1 = 0.999978}};

static struct shmtrain_evaluation of_two(void) {
    return (struct shmtrain_evaluation){.size = sizeof(struct shmtrain_evaluation),
                                        .examples = 1000745,
                                        .loss = 0.34375,
                                        .accuracy = 0.84375,
                                        .auc = 0.8984375,
                                        .root_mean_square_error = NAN,
                                        .model = "logistic",
                                        .loss_name = "log loss",
                                        .n_classes = 2,
                                        .classes = TWO,
                                        .confusion = TWO_BY_TWO,
                                        .precision = 0.999988,
                                        .recall = 0.25,
                                        .f1 = NAN,
                                        .class_score = SCORES,
                                        .calibration_error = NAN,
                                        .brier = NAN};
}

/* Ten bins, of which the third has examples. */
static const struct shmtrain_calibration_bin *bins(uint64_t examples) {
    static struct shmtrain_calibration_bin bin[SHMTRAIN_CALIBRATION_BINS];
    for (int b = 0; b < SHMTRAIN_CALIBRATION_BINS; b++)
        bin[b] = (struct shmtrain_calibration_bin){.predicted = NAN, .observed = NAN};
    bin[2] = (struct shmtrain_calibration_bin){.examples = examples, .predicted = 0.25, .observed = 0.3125};
    return bin;
}

static void assert_text(const struct shmtrain_evaluation *e, const char *expected) {
    char *text = shmtrain_evaluation_text(e);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void two_classes_have_a_matrix(void **state) {
    const struct shmtrain_evaluation e = of_two();
    (void)state;
    assert_text(&e,
                "model       logistic, 1001 k examples\n"
                "log loss    0.34375\n"
                "accuracy    84.38 %\n"
                "AUC         0.8984\n"
                "precision   1.0000, recall 0.2500, F1 -, of label 1\n"
                "confusion   rows: true class; columns: predicted class\n"
                "             -1      1\n"
                "      -1    700     12\n"
                "       1     33 1000 k\n");
}

static void calibration_is_a_table_of_the_tenths_that_have_examples(void **state) {
    struct shmtrain_evaluation e = of_two();
    (void)state;
    e.bin = bins(1234);
    e.brier = 0.125;
    e.calibration_error = 0.0625;
    char *text = shmtrain_evaluation_text(&e);
    assert_non_null(strstr(text,
                           "Brier       0.1250\n"
                           "calibration error 0.0625, of the probabilities of the larger label:\n"
                           "            predicted  observed  examples\n"
                           " 0.2-0.3       0.2500    0.3125      1234\n"
                           "confusion "));
    free(text);
}

static void of_a_few_classes_each_has_a_line_and_the_mean(void **state) {
    static const struct shmtrain_class_score THREE[] = {
        {7, 8, 0.5, 0.25, 0.125, {0}}, {0, 9, 0, NAN, 0, {0}}, {0, 0, NAN, NAN, NAN, {0}}};
    static const float CLASSES[] = {1, 2, 3.5f};
    static const uint64_t CONFUSION[9] = {0};
    struct shmtrain_evaluation e = of_two();
    (void)state;
    e.n_classes = 3;
    e.classes = CLASSES;
    e.confusion = CONFUSION;
    e.class_score = THREE;
    char *text = shmtrain_evaluation_text(&e);
    assert_non_null(strstr(text,
                           "classes     precision    recall        F1  examples\n"
                           "       1       0.5000    0.2500    0.1250         7\n"
                           "       2       0.0000         -    0.0000         0\n"
                           "     3.5            -         -         -         0\n"
                           "    mean       1.0000    0.2500         -\n"));
    free(text);
}

static void a_regression_has_no_accuracy_and_no_matrix(void **state) {
    const struct shmtrain_evaluation e = {.size = sizeof(struct shmtrain_evaluation),
                                          .examples = 4,
                                          .loss = 1.625,
                                          .accuracy = NAN,
                                          .auc = NAN,
                                          .root_mean_square_error = 1.8027756,
                                          .model = "linear",
                                          .loss_name = "squared loss"};
    (void)state;
    assert_text(&e,
                "model       linear, 4 examples\n"
                "loss        1.62500 (squared loss)\n"
                "RMSE        1.8028\n");
}

/* n classes 0 .. n - 1, all counts `count`, but mistakes grow with the place. */
static struct shmtrain_evaluation of_many(uint32_t n, uint64_t count, float scale) {
    float *classes = malloc(n * sizeof *classes);
    uint64_t *confusion = malloc((uint64_t)n * n * sizeof *confusion);
    assert_non_null(classes);
    assert_non_null(confusion);
    for (uint32_t c = 0; c < n; c++) classes[c] = (float)c * scale;
    for (uint32_t i = 0; i < n * n; i++) confusion[i] = count;
    struct shmtrain_evaluation e = of_two();
    e.n_classes = n;
    struct shmtrain_class_score *score = malloc(n * sizeof *score);
    assert_non_null(score);
    for (uint32_t c = 0; c < n; c++)
        score[c] =
            (struct shmtrain_class_score){.examples = count, .predicted = count, .precision = 0.5, .recall = 1, .f1 = NAN};
    e.classes = classes;
    e.confusion = confusion;
    e.class_score = score;
    e.bin = bins(count);
    return e;
}

static void free_many(const struct shmtrain_evaluation *e) {
    free((void *)e->classes);
    free((void *)e->confusion);
    free((void *)e->class_score);
}

static void up_to_ten_classes_fit_80_columns(void **state) {
    static const uint64_t COUNTS[] = {0, 999999, 1000000, UINT32_MAX};
    static const float SCALES[] = {1, -0.001234f, 123456, 1e-38f, -3e37f};
    (void)state;
    for (uint32_t n = 1; n <= 12; n++)
        for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
            for (size_t k = 0; k < sizeof SCALES / sizeof *SCALES; k++) {
                const struct shmtrain_evaluation e = of_many(n, COUNTS[i], SCALES[k]);
                char *text = shmtrain_evaluation_text(&e);
                assert_non_null(text);
                for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                    if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
                free(text);
                free_many(&e);
            }
}

/* As a place in a city's list, or a code of many digits. */
static void labels_of_many_digits_are_told_from_one_another(void **state) {
    static const float CLASSES[] = {12345, 12346, 1000003};
    static const struct shmtrain_class_score THREE[3] = {{0}};
    static const uint64_t CONFUSION[9] = {0};
    struct shmtrain_evaluation e = of_two(), many = of_many(11, 0, 1000003);
    (void)state;
    e.n_classes = 3;
    e.classes = CLASSES;
    e.confusion = CONFUSION;
    e.class_score = THREE;
    char *text = shmtrain_evaluation_text(&e);
    assert_non_null(strstr(text, "\n          12345  12346  1e+06\n   12345 "));
    assert_non_null(strstr(text, "\n   12346 "));
    assert_non_null(strstr(text, "\n 1000003 "));
    free(text);
    ((uint64_t *)many.confusion)[1] = 3;
    text = shmtrain_evaluation_text(&many);
    assert_non_null(strstr(text, "                 0 taken for 1000003:      3\n"));
    free(text);
    free_many(&many);
}

static void of_more_classes_the_most_frequent_mistakes_are_listed(void **state) {
    struct shmtrain_evaluation e = of_many(11, 0, 1);
    e.bin = bins(1);
    uint64_t *confusion = (uint64_t *)e.confusion;
    (void)state;
    char *text = shmtrain_evaluation_text(&e);
    assert_non_null(strstr(text, "confusion   11 classes; the most frequent mistakes:\n            none\n"));
    free(text);
    confusion[5 * 11 + 5] = 1000; /* right */
    confusion[4 * 11 + 9] = 7;
    confusion[9 * 11 + 4] = 7; /* as often */
    confusion[0 * 11 + 1] = 3;
    text = shmtrain_evaluation_text(&e);
    assert_non_null(strstr(text,
                           "mistakes:\n"
                           "                 4 taken for      9:      7\n"
                           "                 9 taken for      4:      7\n"
                           "                 0 taken for      1:      3\n"));
    free(text);
    for (uint64_t i = 0; i < 121; i++) confusion[i] = i;
    text = shmtrain_evaluation_text(&e);
    int lines = 0;
    for (const char *at = text; *at; at++) lines += *at == '\n';
    assert_non_null(strstr(text, "precision   1.0000, recall 0.2500, F1 -: means over the classes\n"));
    assert_int_equal(lines, 5 + 5 + 10); /* the table of one bin that has examples is between them */
    free(text);
    free_many(&e);
}

static void json_has_all_numbers_and_null_for_what_makes_no_sense(void **state) {
    struct shmtrain_evaluation e = of_two();
    static const float CLASSES[] = {0.1f, 70};
    (void)state;
    char *text = shmtrain_evaluation_json(&e);
    assert_string_equal(
        text,
        "{\"model\":\"logistic\",\"examples\":1000745,\"skipped_lines\":0,\"loss_name\":\"log loss\",\"loss\":0.34375,"
        "\"accuracy\":0.84375,\"auc\":0.8984375,\"root_mean_square_error\":null,\"classes\":[-1,1],"
        "\"confusion\":[[700,12],[33,1000000]],\"precision\":0.999988,\"recall\":0.25,\"f1\":null,"
        "\"per_class\":[{\"label\":-1,\"examples\":712,\"predicted\":733,\"precision\":0.95498,"
        "\"recall\":0.983146,\"f1\":0.968858},{\"label\":1,\"examples\":1000033,\"predicted\":1000012,"
        "\"precision\":0.999988,\"recall\":0.999967,\"f1\":0.999978}],"
        "\"brier\":null,\"calibration_error\":null,\"calibration\":null}\n");
    free(text);
    e.classes = CLASSES;
    text = shmtrain_evaluation_json(&e);
    assert_non_null(strstr(text, "\"classes\":[0.1,70]"));
    free(text);
    e.bin = bins(5);
    text = shmtrain_evaluation_json(&e);
    assert_non_null(
        strstr(text, "\"calibration\":[{\"from\":0.0,\"to\":0.1,\"examples\":0,\"predicted\":null,\"observed\":null},"));
    assert_non_null(strstr(text, "{\"from\":0.2,\"to\":0.3,\"examples\":5,\"predicted\":0.25,\"observed\":0.3125}"));
    free(text);
    e.n_classes = 0;
    text = shmtrain_evaluation_json(&e);
    assert_non_null(strstr(text, "\"classes\":null,\"confusion\":null,"));
    assert_non_null(strstr(text, "\"per_class\":null,"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes_have_a_matrix),
        cmocka_unit_test(calibration_is_a_table_of_the_tenths_that_have_examples),
        cmocka_unit_test(of_a_few_classes_each_has_a_line_and_the_mean),
        cmocka_unit_test(a_regression_has_no_accuracy_and_no_matrix),
        cmocka_unit_test(up_to_ten_classes_fit_80_columns),
        cmocka_unit_test(labels_of_many_digits_are_told_from_one_another),
        cmocka_unit_test(of_more_classes_the_most_frequent_mistakes_are_listed),
        cmocka_unit_test(json_has_all_numbers_and_null_for_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
