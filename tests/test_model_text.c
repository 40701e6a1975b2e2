/* Models as text: what is written as LIBLINEAR's or CSV, and that LIBLINEAR's is read as what it means, or refused with the
 * line. */
#include "folder_help.h"

#include <signal.h>
#include <sys/resource.h>

#include "files/model_read.h"
#include "files/model_text.h"

static const float TWO[] = {-1, 1};

static struct shmt_linear of_two(const float *weight) {
    return (struct shmt_linear){.solver = "L2R_LR",
                                .weight = weight,
                                .bias = weight + 3,
                                .n_features = 3,
                                .first_feature = 1,
                                .by_feature = 1,
                                .n_outputs = 1,
                                .n_labels = 2,
                                .label = TWO};
}

static void assert_file(const char *path, const char *expected) {
    char text[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(text, expected);
}

static void two_classes_are_written_with_the_larger_label_first(void **state) {
    static const float WEIGHT[] = {0.5f, -1e-30f, 0.1f, 2};
    struct shmt_linear m = of_two(WEIGHT);
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_liblinear_write("model", &m, &e), 0);
    assert_file("model", "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n0.5 \n-1e-30 \n0.1 \n2 \n");
    assert_int_equal(shmt_csv_write("model", &m, &e), 0);
    assert_file("model", "feature,weight\n1,0.5\n2,-1e-30\n3,0.1\nbias,2\n");
    m.bias = NULL;
    m.n_labels = 0;
    m.solver = "L2R_L2LOSS_SVR";
    assert_int_equal(shmt_liblinear_write("model", &m, &e), 0);
    assert_file("model", "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 3\nbias -1\nw\n0.5 \n-1e-30 \n0.1 \n");
}

static void classes_are_columns_and_of_softmax_with_two_the_difference(void **state) {
    static const float WEIGHT[] = {1, 2, 3, 4.5f, 5, 6}, BIAS[] = {7, 8, 9}, LABEL[] = {2, 3, 9};
    struct shmt_linear m = {.solver = "MCSVM_CS",
                            .weight = WEIGHT,
                            .bias = BIAS,
                            .n_features = 2,
                            .first_feature = 1,
                            .by_feature = 1,
                            .by_output = 2,
                            .n_outputs = 3,
                            .is_softmax = true,
                            .n_labels = 3,
                            .label = LABEL};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_liblinear_write("model", &m, &e), 0);
    assert_file("model", "solver_type MCSVM_CS\nnr_class 3\nlabel 2 3 9\nnr_feature 2\nbias 1\nw\n1 3 5 \n2 4.5 6 \n7 8 9 \n");
    assert_int_equal(shmt_csv_write("model", &m, &e), 0);
    assert_file("model", "feature,weight,class\n1,1,2\n1,3,3\n1,5,9\n2,2,2\n2,4.5,3\n2,6,9\nbias,7,2\nbias,8,3\nbias,9,9\n");
    m.n_outputs = m.n_labels = 2;
    m.solver = "L2R_LR";
    assert_int_equal(shmt_liblinear_write("model", &m, &e), 0);
    assert_file("model", "solver_type L2R_LR\nnr_class 2\nlabel 3 2\nnr_feature 2\nbias 1\nw\n2 \n2.5 \n1 \n");
}

static void what_liblinear_has_no_words_for_is_refused_and_the_file_stays(void **state) {
    static const float WEIGHT[] = {0, 0, 0, 0}, HALF[] = {-0.5f, 1};
    struct shmt_error e = {0};
    (void)state;
    write_text("model", "old");
    struct shmt_linear m = of_two(WEIGHT);
    m.label = HALF;
    assert_int_equal(shmt_liblinear_write("model", &m, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "label -0.5 is not a whole number"));
    shmt_error_clear(&e);
    m = of_two(WEIGHT);
    m.first_feature = 0;
    assert_int_equal(shmt_liblinear_write("model", &m, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "a feature 0"));
    shmt_error_clear(&e);
    m.first_feature = INT32_MAX;
    assert_int_equal(shmt_liblinear_write("model", &m, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "at most 2147483646, but here that is"));
    assert_file("model", "old");
}

/* A limit on the size of files is as good as a full disk: what is written beside the old file does not become whole. */
static void what_cannot_be_written_whole_leaves_the_old_file(void **state) {
    const uint64_t n = 20000;
    float *weight = calloc(n, sizeof *weight);
    struct rlimit before, small = {0};
    struct shmt_error e = {0};
    (void)state;
    assert_non_null(weight);
    struct shmt_linear m = of_two(weight);
    m.n_features = n;
    write_text("model", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_cur = 10000;
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int csv = shmt_csv_write("model", &m, &e);
    shmt_error_clear(&e);
    const int liblinear = shmt_liblinear_write("model", &m, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(csv, SHMTRAIN_E_SYSTEM);
    assert_int_equal(liblinear, SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "File too large"));
    assert_non_null(strstr(e.text, "the previous file is unchanged"));
    assert_file("model", "old");
    shmt_error_clear(&e);
    assert_int_equal(shmt_csv_write("/dev/full", &m, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "No space left"));
    free(weight);
}

/* ---- reading ---- */

static void assert_refused(const char *text, const char *words) {
    struct shmt_model_in *in = NULL;
    struct shmt_error e = {0};
    float out[64];
    write_text("model", text);
    int rc = shmt_model_open("model", &in, &e);
    if (rc == 0) {
        const struct shmt_tensor *t = shmt_model_tensor(in, 0);
        assert_true(t->rows * t->width <= 64);
        rc = shmt_model_read_tensor(in, 0, out, &e);
    }
    shmt_model_close(in);
    if (rc != SHMTRAIN_E_DATA || !strstr(e.text, words)) fail_msg("expected \"%s\" in: %s", words, e.text);
    for (const char *c = e.text; *c; c++) assert_in_range((unsigned char)*c, ' ', '~');
}

#define HEAD  "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n"
#define HEAD3 "solver_type L2R_LR\nnr_class 3\nlabel 5 1 3\nnr_feature 2\nbias 2\nw\n"

static void damaged_models_are_refused_with_the_line(void **state) {
    static const struct {
        const char *text, *words;
    } CASES[] = {
        {"solver_type SVM\n",
         "model:1: expected a solver_type of a logistic regression, SVC or SVR of LIBLINEAR, found \"SVM\""},
        {"solver_type ONECLASS_SVM\nnr_class 2\n", "model:1: expected a solver_type"},
        {"solver_type L2R_LR\nnr_class two\n", "model:2: expected a whole number of at least 1"},
        {"solver_type L2R_LR\nnr_class 0\n", "model:2: expected a whole number of at least 1"},
        {"solver_type L2R_LR\nnr_class 1025\n", "model:2: expected a whole number"},
        {"solver_type L2R_LR\nnr_class 99999999999999999999\n", "model:2: expected a whole number"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 x\n", "model:3: expected labels that are whole numbers, found \"x\""},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 1.5\n", "model:3: expected labels that are whole numbers, found \"1.5\""},
        {"solver_type L2R_LR\nnr_klass 2\n", "model:2: expected solver_type, nr_class, label"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature -3\n", "model:4: expected a whole number of at least 1"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias nan\n", "model:5: expected a number"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\n", "model:4: the file ends before \"w\""},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nbias 1\nw\n1\n", "model:5: \"w\" comes before \"nr_feature\""},
        {"solver_type L2R_LR\nnr_class 3\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n1\n2\n",
         "nr_class is 3, but there are 2 labels"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 4 4\nnr_feature 2\nbias -1\nw\n1\n2\n", "label 4 occurs twice"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 16777216 16777217\nnr_feature 2\nbias -1\nw\n1\n2\n",
         "too close to another label"},
        {"solver_type L2R_LR\nnr_class 1\nlabel 4\nnr_feature 2\nbias -1\nw\n1\n2\n", "nr_class is 1"},
        {"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2000000000\nbias -1\nw\n1\n2\n",
         "model:6: nr_feature is 2000000000"},
        {HEAD "1\nx\n", "model:8: expected a weight, found \"x\""},
        {HEAD "1\n\n", "model:8: expected a weight, found nothing"},
        {HEAD "1\nnan\n", "model:8: expected a weight, found \"nan\""},
        {HEAD "1\n1e300\n", "model:8: expected a weight, found \"1e300\""},
        {HEAD "1 2\n3\n", "model:7: expected no more weights in this line, found \"2\""},
        {HEAD "1.00\n", "model:7: the file ends after 1 of 2 lines of weights"},
        {HEAD "1\n2\n3\n", "model:9: expected the end of the file after the last weights, found \"3\""},
        {HEAD3 "1 2 3\n4 5\n7 8 9\n", "model:8: expected a weight for each label, found nothing"},
        {HEAD "1\x01\n2\n", "model:7: expected a weight, found \"1\\x01\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) assert_refused(CASES[i].text, CASES[i].words);
}

static void bytes_that_are_no_text_are_refused(void **state) {
    static const char ZERO[] = "solver_type L2R_LR\nnr_\0class 2\n";
    struct shmt_model_in *in = NULL;
    struct shmt_error e = {0};
    (void)state;
    write_bytes("model", ZERO, sizeof ZERO - 1);
    assert_int_equal(shmt_model_open("model", &in, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "model:2: expected text"));
    char *longest = malloc(200000);
    assert_non_null(longest);
    memset(longest, '1', 200000);
    memcpy(longest, "solver_type ", 12);
    write_bytes("model", longest, 200000);
    shmt_error_clear(&e);
    assert_int_equal(shmt_model_open("model", &in, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "model:1: expected a shorter line of a model"));
    free(longest);
}

static void two_labels_are_turned_so_that_the_larger_one_has_positive_scores(void **state) {
    struct shmt_model_in *in = NULL;
    struct shmt_error e = {0};
    float out[3];
    (void)state;
    write_text("model", "solver_type L1R_LR\nnr_class 2\nlabel -1 1\nnr_feature 2\nbias 0.5\nw\n0.25 \n-3e-1\r\n8 ");
    assert_int_equal(shmt_model_open("model", &in, &e), 0);
    assert_string_equal(shmt_model_note(in, "shmtrain.model"), "logistic");
    assert_string_equal(shmt_model_note(in, "shmtrain.classes"), "-1,1");
    assert_string_equal(shmt_model_note(in, "shmtrain.ties"), "1,-1");
    assert_string_equal(shmt_model_note(in, "shmtrain.features"), "2");
    assert_string_equal(shmt_model_note(in, "shmtrain.bias"), "1");
    assert_int_equal(shmt_model_tensor(in, 0)->rows, 3);
    assert_int_equal(shmt_model_read_tensor(in, 0, out, &e), 0);
    assert_true(out[0] == -0.25f && out[1] == 0.3f && out[2] == -4);
    shmt_model_close(in);
}

static void classes_ascend_whatever_their_order_in_the_file(void **state) {
    struct shmt_model_in *in = NULL;
    struct shmt_error e = {0};
    float out[9];
    (void)state;
    write_text("model", HEAD3 "1 2 3\n4 5 6\n7 8 9\n");
    assert_int_equal(shmt_model_open("model", &in, &e), 0);
    assert_string_equal(shmt_model_note(in, "shmtrain.model"), "one-vs-rest");
    assert_string_equal(shmt_model_note(in, "shmtrain.classes"), "1,3,5");
    assert_string_equal(shmt_model_note(in, "shmtrain.ties"), "5,1,3");
    assert_int_equal(shmt_model_tensor(in, 0)->width, 3);
    assert_int_equal(shmt_model_read_tensor(in, 0, out, &e), 0);
    const float expected[] = {2, 3, 1, 5, 6, 4, 16, 18, 14};
    assert_memory_equal(out, expected, sizeof expected);
    shmt_model_close(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes_are_written_with_the_larger_label_first),
        cmocka_unit_test(classes_are_columns_and_of_softmax_with_two_the_difference),
        cmocka_unit_test(what_liblinear_has_no_words_for_is_refused_and_the_file_stays),
        cmocka_unit_test(what_cannot_be_written_whole_leaves_the_old_file),
        cmocka_unit_test(damaged_models_are_refused_with_the_line),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(two_labels_are_turned_so_that_the_larger_one_has_positive_scores),
        cmocka_unit_test(classes_ascend_whatever_their_order_in_the_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
