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

static struct shmtrain_evaluation of_two(void) {
    return (struct shmtrain_evaluation){.examples = 1000745,
                                        .loss = 0.34375,
                                        .accuracy = 0.84375,
                                        .auc = 0.8984375,
                                        .root_mean_square_error = NAN,
                                        .model = "logistic",
                                        .loss_name = "log loss",
                                        .n_classes = 2,
                                        .classes = TWO,
                                        .confusion = TWO_BY_TWO};
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
                "confusion   rows: true class; columns: predicted class\n"
                "             -1      1\n"
                "      -1    700     12\n"
                "       1     33 1000 k\n");
}

static void a_regression_has_no_accuracy_and_no_matrix(void **state) {
    const struct shmtrain_evaluation e = {.examples = 4,
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
    e.classes = classes;
    e.confusion = confusion;
    return e;
}

static void free_many(const struct shmtrain_evaluation *e) {
    free((void *)e->classes);
    free((void *)e->confusion);
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

static void of_more_classes_the_most_frequent_mistakes_are_listed(void **state) {
    struct shmtrain_evaluation e = of_many(11, 0, 1);
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
    assert_int_equal(lines, 5 + 10);
    free(text);
    free_many(&e);
}

static void json_has_all_numbers_and_null_for_what_makes_no_sense(void **state) {
    struct shmtrain_evaluation e = of_two();
    static const float CLASSES[] = {0.1f, 70};
    (void)state;
    char *text = shmtrain_evaluation_json(&e);
    assert_string_equal(text,
                        "{\"model\":\"logistic\",\"examples\":1000745,\"loss_name\":\"log loss\",\"loss\":0.34375,"
                        "\"accuracy\":0.84375,\"auc\":0.8984375,\"root_mean_square_error\":null,\"classes\":[-1,1],"
                        "\"confusion\":[[700,12],[33,1000000]]}\n");
    free(text);
    e.classes = CLASSES;
    text = shmtrain_evaluation_json(&e);
    assert_non_null(strstr(text, "\"classes\":[0.1,70]"));
    free(text);
    e.n_classes = 0;
    text = shmtrain_evaluation_json(&e);
    assert_non_null(strstr(text, "\"classes\":null,\"confusion\":null}\n"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes_have_a_matrix),
        cmocka_unit_test(a_regression_has_no_accuracy_and_no_matrix),
        cmocka_unit_test(up_to_ten_classes_fit_80_columns),
        cmocka_unit_test(of_more_classes_the_most_frequent_mistakes_are_listed),
        cmocka_unit_test(json_has_all_numbers_and_null_for_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
