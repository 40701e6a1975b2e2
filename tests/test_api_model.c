/* Models after training: saved, loaded, evaluated and predicted with, through the library. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/random.h"
#include "files/model_file.h"

/* ---- a folder with data ---- */

/* n examples whose label is the sign of feature 2, with noise; features 1 to 40. */
static void write_data(const char *path, uint64_t seed, uint64_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < n; i++) {
        const double x = shmt_unit(shmt_hash64(seed, i, 0, 0)) * 2 - 1, noise = shmt_unit(shmt_hash64(seed, i, 1, 0)) - 0.5;
        fprintf(f, "%s 2:%.3f %d:1 40:1\n", x + noise > 0 ? "3" : "-0.5", x,
                (int)(3 + shmt_below(shmt_hash64(seed, i, 2, 0), 30)));
    }
    assert_int_equal(fclose(f), 0);
}

static struct shmtrain_store *make_store(const char *spawn, const char *workers) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    return store;
}

/* ---- a model file made by hand ---- */

enum { MODEL, FEATURES, FIRST, BIAS, LOW, HIGH, CLASSES, N_NOTES };

static struct shmt_note g_note[N_NOTES];

/* Two features, no bias, labels 1 and 2; tests change what they want other. */
static void usual_notes(void) {
    static const struct shmt_note USUAL[N_NOTES] = {
        [MODEL] = {"shmtrain.model", "logistic"},  [FEATURES] = {"shmtrain.features", "2"},
        [FIRST] = {"shmtrain.first_feature", "1"}, [BIAS] = {"shmtrain.bias", "0"},
        [LOW] = {"shmtrain.label_low", "1"},       [HIGH] = {"shmtrain.label_high", "2"},
        [CLASSES] = {"shmtrain.classes", "1,2"}};
    memcpy(g_note, USUAL, sizeof g_note);
}

static void write_model(const char *table, uint64_t rows, const float *weight) {
    const struct shmt_tensor tensor = {.name = table, .rows = rows, .width = 1, .data = weight};
    struct shmt_error e = {0};
    assert_int_equal(shmt_model_file_write("model", &tensor, 1, g_note, N_NOTES, &e), 0);
}

static void write_usual_model(void) {
    usual_notes();
    write_model("weight", 2, (const float[]){1, -2});
}

/* ---- evaluation ---- */

static void assert_same(const struct shmtrain_evaluation *got, const struct shmtrain_epoch *validated) {
    assert_true(got->loss == validated->valid_loss);
    assert_true(got->accuracy == validated->valid_accuracy);
    assert_true(got->auc == validated->valid_auc);
    assert_true(isnan(got->root_mean_square_error));
}

/* Training validates on the same file, with the same parameters, so all bits are the same, however many workers evaluate. */
static void evaluation_says_what_validation_said_before_and_after_loading(void **state) {
    const struct shmtrain_evaluation *e;
    (void)state;
    write_data("train.svm", 1, 3000);
    write_data("valid.svm", 2, 1500);
    struct shmtrain_store *trained = make_store("threads", "2");
    WELL(trained, shmtrain_store_set(trained, "valid", "valid.svm"));
    WELL(trained, shmtrain_store_set(trained, "epochs", "2"));
    WELL(trained, shmtrain_store_train(trained, "train.svm"));
    const struct shmtrain_epoch *last = &shmtrain_store_report(trained)->epoch[1];
    WELL(trained, shmtrain_store_evaluate(trained, "valid.svm", &e));
    assert_same(e, last);
    WELL(trained, shmtrain_store_save(trained, "model"));
    for (size_t i = 0; i < 2; i++) {
        static const char *const WORKERS[] = {"1", "3"};
        struct shmtrain_store *store = make_store(SPAWNS[i], WORKERS[i]);
        WELL(store, shmtrain_store_load(store, "model"));
        WELL(store, shmtrain_store_evaluate(store, "valid.svm", &e));
        assert_same(e, last);
        assert_int_equal(e->examples, 1500);
        assert_string_equal(e->model, "logistic");
        assert_string_equal(e->loss_name, "log loss");
        assert_int_equal(e->n_classes, 2);
        assert_true(e->classes[0] == -0.5f && e->classes[1] == 3);
        uint64_t sum = 0;
        for (int c = 0; c < 4; c++) sum += e->confusion[c];
        assert_int_equal(sum, 1500);
        assert_true((double)(e->confusion[0] + e->confusion[3]) / 1500 == e->accuracy);
        shmtrain_store_destroy(store);
    }
    shmtrain_store_destroy(trained);
}

static void confusion_is_counted_by_true_and_predicted_class(void **state) {
    struct shmtrain_store *store = make_store("threads", "2");
    const struct shmtrain_evaluation *e;
    (void)state;
    write_usual_model(); /* score = x1 - 2 x2; above 0 it is label 2 */
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "1 1:1\n1 2:1\n1 1:1 2:1\n2 1:3 2:1\n2 2:1\n2 1:1\n2 1:2\n");
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    assert_int_equal(e->confusion[0], 2);
    assert_int_equal(e->confusion[1], 1);
    assert_int_equal(e->confusion[2], 1);
    assert_int_equal(e->confusion[3], 3);
    assert_true(e->accuracy == 5.0 / 7);
    const double expected =
        (log1p(exp(1)) + log1p(exp(-2)) + log1p(exp(-1)) + 2 * log1p(exp(-1)) + log1p(exp(2)) + log1p(exp(-2))) / 7;
    assert_true(fabs(e->loss - expected) < 1e-6); /* the losses are floats */
    write_text("data", "1 1:1\n1 2:1\n");         /* one class only: no curve */
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    assert_true(isnan(e->auc) && e->accuracy == 0.5);
    shmtrain_store_destroy(store);
}

static void a_regression_has_an_error_and_no_classes(void **state) {
    struct shmtrain_store *store = make_store("processes", "2");
    const struct shmtrain_evaluation *e;
    (void)state;
    usual_notes();
    g_note[MODEL].value = "linear";
    write_model("weight", 2, (const float[]){1, -2});
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "4 1:1\n-2 2:1\n7.5 1:7.5\n-1.5 1:0.5\n"); /* misses of 3, 0, 0, 2 */
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    assert_true(fabs(e->root_mean_square_error - sqrt(13.0 / 4)) < 1e-12);
    assert_true(e->loss == 13.0 / 8 && isnan(e->accuracy) && isnan(e->auc));
    assert_int_equal(e->n_classes, 0);
    shmtrain_store_destroy(store);
}

/* ---- prediction ---- */

struct predictions {
    uint64_t n, end_at;
    float label[16], output[16][3];
};

static int keep(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    struct predictions *p = arg;
    assert_int_equal(example, p->n);
    p->label[p->n] = label;
    memcpy(p->output[p->n], output, n * sizeof *output);
    return ++p->n == p->end_at ? 42 : 0;
}

static void predictions_come_in_the_datas_order_whatever_its_labels(void **state) {
    struct shmtrain_store *store = make_store("processes", "3");
    struct predictions p = {0};
    (void)state;
    write_usual_model();
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "0 1:1\n77 2:1\n2 1:5 2:2\n-3 1:0.25\n");
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_int_equal(p.n, 4);
    const float label[] = {2, 1, 2, 2}, score[] = {1, -2, 1, 0.25f};
    for (int i = 0; i < 4; i++) assert_true(p.label[i] == label[i] && p.output[i][0] == score[i]);
    p = (struct predictions){.end_at = 3};
    assert_int_equal(shmtrain_store_predict(store, "data", 1, keep, &p), 42);
    assert_int_equal(p.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(p.label[i] == label[i]);
        assert_true(fabs((double)p.output[i][0] - 1 / (1 + exp(-(double)score[i]))) < 1e-6);
    }
    usual_notes();
    g_note[MODEL].value = "svm";
    write_model("weight", 2, (const float[]){1, -2});
    WELL(store, shmtrain_store_load(store, "model"));
    refused(store, shmtrain_store_predict(store, "data", 1, keep, &p), SHMTRAIN_E_USAGE, "model svm has no probabilities");
    shmtrain_store_destroy(store);
}

/* An own model of three classes: the one whose centre lies closest to the first value. */
static uint32_t centre_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                              struct shmtrain_shape *out) {
    (void)state;
    (void)data;
    out[0] = (struct shmtrain_shape){.name = "centre", .rows = with->n_classes, .width = 1, .l2_rows = 0};
    return 1;
}

static int centre_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                       double *loss_out) {
    (void)s;
    (void)batch;
    (void)pass;
    *loss_out = 0;
    return 0;
}

static int centre_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                        float *score_out, double *loss_out) {
    float centre[3];
    const int rc = shmtrain_pull(s, 0, 0, 3, centre);
    assert_int_equal(pass->with->n_classes, 3);
    for (uint32_t k = 0; k < batch->n && rc == 0; k++)
        for (int c = 0; c < 3; c++)
            score_out[3 * k + c] = -fabsf(batch->data->value[batch->data->start[batch->first + k]] - centre[c]);
    *loss_out = batch->n;
    return rc;
}

static const struct shmtrain_model CENTRES = {.size = sizeof(struct shmtrain_model),
                                              .name = "centres",
                                              .task = SHMTRAIN_CLASSES,
                                              .tables = centre_tables,
                                              .step = centre_step,
                                              .score = centre_score};

static void a_model_of_several_classes_has_an_output_for_each(void **state) {
    struct shmtrain_store *store = make_store("threads", "2");
    const struct shmtrain_evaluation *e;
    struct predictions p = {0};
    (void)state;
    usual_notes();
    g_note[MODEL].value = "centres";
    g_note[CLASSES].value = "-1,2.5,70";
    g_note[LOW].value = "-1";
    g_note[HIGH].value = "70";
    write_model("centre", 3, (const float[]){1, 2, 3});
    refused(store, shmtrain_store_load(store, "model"), SHMTRAIN_E_USAGE, "model: its model, \"centres\", is not built in");
    WELL(store, shmtrain_store_offer(store, &CENTRES));
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "-1 1:1.1\n2.5 1:2.25\n2.5 1:2.75\n70 1:100\n");
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    assert_true(e->loss == 1 && e->accuracy == 0.75 && isnan(e->auc));
    assert_int_equal(e->n_classes, 3);
    const uint64_t expected[9] = {1, 0, 0, 0, 1, 1, 0, 0, 1};
    assert_memory_equal(e->confusion, expected, sizeof expected);
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_true(p.label[0] == -1 && p.label[1] == 2.5f && p.label[2] == 70 && p.label[3] == 70);
    assert_true(p.output[2][2] == -0.25f && p.output[2][0] == -1.75f);
    shmtrain_store_destroy(store);
}

/* ---- what does not fit ---- */

static void a_label_that_the_model_does_not_know_is_refused_with_its_line(void **state) {
    struct shmtrain_store *store = make_store("threads", "1");
    const struct shmtrain_evaluation *e;
    (void)state;
    write_usual_model();
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "1 1:1\n2 2:1\n5 1:1\n");
    refused(store, shmtrain_store_evaluate(store, "data", &e), SHMTRAIN_E_DATA,
            "data:3: label 5 is not one of the model's labels, which are 1 and 2");
    refused(store, shmtrain_store_evaluate(store, "missing", &e), SHMTRAIN_E_SYSTEM, "cannot open missing");
    refused(store, shmtrain_store_evaluate(store, "", &e), SHMTRAIN_E_USAGE, "no name");
    shmtrain_store_destroy(store);
}

static char g_line[512];
static void note(void *arg, const char *line) {
    (void)arg;
    snprintf(g_line, sizeof g_line, "%s", line);
}

static void features_beyond_the_models_are_left_out_with_a_word(void **state) {
    struct shmtrain_store *store = make_store("threads", "1");
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct predictions p = {0};
    (void)state;
    write_usual_model();
    WELL(store, shmtrain_store_load(store, "model"));
    shmtrain_store_listen(store, &listener);
    write_text("data", "1 1:1 2:1\n");
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_string_equal(g_line, "");
    write_text("data", "1 0:100 1:1 2:1 3:100\n");
    p = (struct predictions){0};
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_true(p.output[0][0] == -1);
    assert_string_equal(g_line, "data has features 0 to 3, the model has 1 to 2: the others are left out");
    shmtrain_store_destroy(store);
}

static void without_a_model_nothing_is_evaluated(void **state) {
    struct shmtrain_store *store = make("threads", "1", "1", 64);
    const struct shmtrain_evaluation *e;
    (void)state;
    write_text("data", "1 1:1\n");
    refused(store, shmtrain_store_evaluate(store, "data", &e), SHMTRAIN_E_USAGE, "there is no model: train one, or load one");
    WELL(store, shmtrain_store_run(store, count, NULL)); /* own worker functions are none */
    refused(store, shmtrain_store_predict(store, "data", 0, keep, NULL), SHMTRAIN_E_USAGE, "there is no model");
    shmtrain_store_destroy(store);
}

/* ---- loading ---- */

static void loaded_tables_are_the_stores_and_runs_go_on_from_them(void **state) {
    struct shmtrain_store *store = make("threads", "1", "1", 64), *other;
    const struct shmtrain_evaluation *e;
    float x;
    (void)state;
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_true(read_one(store, 0) == 1);
    WELL(store, shmtrain_store_save(store, "model")); /* no notes: own worker functions */
    WELL(store, shmtrain_store_run(store, count, NULL));
    WELL(store, shmtrain_store_load(store, "model"));
    assert_true(read_one(store, 0) == 1);
    shmtrain_store_destroy(store);
    other = make_store("threads", "1");
    WELL(other, shmtrain_store_load(other, "model"));
    assert_true(read_one(other, 0) == 1 && read_one(other, 1) == 0);
    write_text("data", "1 1:1\n");
    refused(other, shmtrain_store_evaluate(other, "data", &e), SHMTRAIN_E_DATA, "model: it does not name the model");
    refused(other, shmtrain_store_read(other, 0, 2, 1, &x), SHMTRAIN_E_USAGE, "table \"count\" has 2 rows");
    shmtrain_store_destroy(other);
}

static void files_of_the_first_version_have_two_labels_and_no_list(void **state) {
    struct shmtrain_store *store = make_store("threads", "1");
    struct predictions p = {0};
    (void)state;
    usual_notes();
    g_note[CLASSES].key = "something.else";
    g_note[LOW].value = "-7";
    write_model("weight", 2, (const float[]){1, -2});
    WELL(store, shmtrain_store_load(store, "model"));
    write_text("data", "1 1:1\n1 2:1\n");
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_true(p.label[0] == 2 && p.label[1] == -7);
    shmtrain_store_destroy(store);
}

static void a_model_file_that_contradicts_itself_is_refused_and_changes_nothing(void **state) {
    static const struct {
        int note;
        const char *value, *words;
    } CASES[] = {
        {MODEL, "mlp\x1b[31m", "its model, \"mlp?[31m\", is not built in"},
        {FEATURES, "3", "key \"weight\": its shape is (2, 1), but model logistic with 3 features has (3, 1)"},
        {FEATURES, "18446744073709551615", "key \"shmtrain.features\": expected a whole number in range"},
        {FEATURES, "-2", "key \"shmtrain.features\""},
        {FEATURES, "2 ", "key \"shmtrain.features\""},
        {FEATURES, "", "key \"shmtrain.features\""},
        {FIRST, "2", "key \"shmtrain.first_feature\""},
        {BIAS, "2", "key \"shmtrain.bias\""},
        {BIAS, "1", "its shape is (2, 1)"},
        {LOW, "one", "key \"shmtrain.label_low\": expected a number"},
        {HIGH, "nan", "key \"shmtrain.label_high\": expected a number"},
        {HIGH, "1e99", "key \"shmtrain.label_high\": expected a number"},
        {CLASSES, "", "key \"shmtrain.classes\": expected labels in ascending order"},
        {CLASSES, "1,1.5,2", "key \"shmtrain.classes\": its model is for two labels, but here are more"},
        {LOW, "0.5", "key \"shmtrain.label_low\": it is not the first of shmtrain.classes"},
        {HIGH, "5", "key \"shmtrain.label_high\": it is not the last of shmtrain.classes"},
        {CLASSES, "1,", "key \"shmtrain.classes\""},
        {CLASSES, "2,1", "key \"shmtrain.classes\""},
        {CLASSES, "1,1", "key \"shmtrain.classes\""},
        {CLASSES, "1;2", "key \"shmtrain.classes\""},
    };
    struct shmtrain_store *store = make_store("threads", "1");
    struct predictions p = {0};
    (void)state;
    write_usual_model();
    WELL(store, shmtrain_store_load(store, "model"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        usual_notes();
        g_note[CASES[i].note].value = CASES[i].value;
        write_model("weight", 2, (const float[]){5, 5});
        const int rc = shmtrain_store_load(store, "model");
        refused(store, rc, CASES[i].note == MODEL ? SHMTRAIN_E_USAGE : SHMTRAIN_E_DATA, CASES[i].words);
    }
    usual_notes();
    write_model("weight", 2, (const float[]){5, NAN});
    refused(store, shmtrain_store_load(store, "model"), SHMTRAIN_E_DATA, "some of its parameters are not finite");
    write_model("w", 2, (const float[]){5, 5});
    refused(store, shmtrain_store_load(store, "model"), SHMTRAIN_E_DATA, "key \"weight\": this tensor is missing");
    write_text("data", "1 1:1\n");
    WELL(store, shmtrain_store_predict(store, "data", 0, keep, &p));
    assert_true(p.output[0][0] == 1); /* the first one is still there */
    shmtrain_store_destroy(store);
}

/* ---- stopping ---- */

struct stopper {
    struct shmtrain_store *store;
    _Atomic int over;
};

static void *stop_until_over(void *arg) {
    struct stopper *s = arg;
    while (!s->over) {
        shmtrain_store_stop(s->store);
        usleep(1000);
    }
    return NULL;
}

static void a_stop_ends_an_evaluation_and_the_next_one_is_well(void **state) {
    const struct shmtrain_evaluation *e;
    pthread_t thread;
    (void)state;
    usual_notes();
    g_note[FEATURES].value = "1000";
    g_note[LOW].value = "-1"; /* those of builtin:sparse */
    g_note[HIGH].value = "1";
    g_note[CLASSES].value = "-1,1";
    write_model("weight", 1000, (const float[1000]){0});
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_store(SPAWNS[i], "2");
        struct stopper stopper = {.store = store};
        WELL(store, shmtrain_store_load(store, "model"));
        assert_int_equal(pthread_create(&thread, NULL, stop_until_over, &stopper), 0);
        const int rc = shmtrain_store_evaluate(store, "builtin:sparse:examples=100000,features=1000", &e);
        stopper.over = 1;
        pthread_join(thread, NULL);
        refused(store, rc, SHMTRAIN_E_STOPPED, "stopped while ");
        WELL(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=1000,features=1000", &e));
        assert_true(fabs(e->loss - log(2)) < 1e-6);
        shmtrain_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(evaluation_says_what_validation_said_before_and_after_loading, deadline),
        cmocka_unit_test_setup(confusion_is_counted_by_true_and_predicted_class, deadline),
        cmocka_unit_test_setup(a_regression_has_an_error_and_no_classes, deadline),
        cmocka_unit_test_setup(predictions_come_in_the_datas_order_whatever_its_labels, deadline),
        cmocka_unit_test_setup(a_model_of_several_classes_has_an_output_for_each, deadline),
        cmocka_unit_test_setup(a_label_that_the_model_does_not_know_is_refused_with_its_line, deadline),
        cmocka_unit_test_setup(features_beyond_the_models_are_left_out_with_a_word, deadline),
        cmocka_unit_test_setup(without_a_model_nothing_is_evaluated, deadline),
        cmocka_unit_test_setup(loaded_tables_are_the_stores_and_runs_go_on_from_them, deadline),
        cmocka_unit_test_setup(files_of_the_first_version_have_two_labels_and_no_list, deadline),
        cmocka_unit_test_setup(a_model_file_that_contradicts_itself_is_refused_and_changes_nothing, deadline),
        cmocka_unit_test_setup(a_stop_ends_an_evaluation_and_the_next_one_is_well, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
