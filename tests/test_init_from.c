/* Option init-from: runs that begin with the parameters of a model or a checkpoint, feature by feature. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdio.h>

static char g_notes[1024];

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(g_notes);
    snprintf(g_notes + used, sizeof g_notes - used, "%s\n", line);
}

static struct shmtrain_store *make_store(const char *model) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct shmtrain_store *store;
    g_notes[0] = '\0';
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "batch", "8"));
    WELL(store, shmtrain_store_set(store, "model", model));
    return store;
}

/* Five features of these ids, and three labels where asked for. */
static void write_data(const char *name, const char *const id[5], unsigned labels) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < 60; i++) {
        fprintf(f, "%u", i * 7 % labels);
        for (unsigned k = 0; k < 5; k++)
            if (id[k] && (i >> k & 1 || k == i % 5)) fprintf(f, " %s:%g", id[k], 0.5 + 0.25 * (i * k % 7));
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static void train_and_save(const char *model, const char *data, const char *path) {
    struct shmtrain_store *store = make_store(model);
    WELL(store, shmtrain_store_set(store, "epochs", "5"));
    WELL(store, shmtrain_store_train(store, data));
    WELL(store, shmtrain_store_save(store, path));
    shmtrain_store_destroy(store);
}

/* A run that moves nothing to speak of. */
static int try_to_begin(struct shmtrain_store *store, const char *data, const char *path) {
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "rate", "1e-12"));
    WELL(store, shmtrain_store_set(store, "init-from", path));
    return shmtrain_store_train(store, data);
}

static struct shmtrain_store *begin(const char *model, const char *data, const char *path) {
    struct shmtrain_store *store = make_store(model);
    WELL(store, try_to_begin(store, data, path));
    return store;
}

static struct shmtrain_store *load(const char *path) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_load(store, path));
    return store;
}

/* Row (of a column of parameters) or column (of several) of feature `id`; -1: there is none. */
static int find_id(struct shmtrain_store *store, uint64_t id) {
    uint64_t found;
    for (int i = 0; shmtrain_store_feature_id(store, (uint64_t)i, &found) == 0; i++)
        if (found == id) return i;
    return -1;
}

static float weight_of(struct shmtrain_store *store, uint64_t id) {
    const int row = find_id(store, id);
    float w = 0;
    if (row >= 0) WELL(store, shmtrain_store_read(store, 0, (uint64_t)row, 1, &w));
    return w;
}

static float bias_of(struct shmtrain_store *store) {
    uint64_t rows, width;
    float w;
    assert_int_equal(shmtrain_store_table_at(store, 0, NULL, &rows, &width), 0);
    WELL(store, shmtrain_store_read(store, 0, rows - 1, 1, &w));
    return w;
}

static void assert_near(float a, float b) {
    if (!(fabsf(a - b) < 1e-9f)) fail_msg("%g is not %g", (double)a, (double)b);
}

static const char *const NEAR[5] = {"2", "3", "4", "5", "6"}, *const FEWER[5] = {NULL, "3", NULL, "5", "7"};
static const char *const FAR[5] = {"3", "1000000007", "5000000000000", "18446744073709551614", NULL};

static int make_files(void **state) {
    if (make_folder(state) < 0) return -1;
    write_data("near", NEAR, 2);
    write_data("fewer", FEWER, 2);
    write_data("far", FAR, 2);
    write_data("three", NEAR, 3);
    write_data("three-fewer", FEWER, 3);
    train_and_save("logistic", "near", "near.model");
    train_and_save("logistic", "far", "far.model");
    train_and_save("softmax", "three", "three.model");
    return 0;
}

static void the_same_data_begins_where_the_model_ends(void **state) {
    (void)state;
    struct shmtrain_store *a = load("near.model"), *b = begin("logistic", "near", "near.model");
    assert_string_equal(g_notes, "");
    for (uint64_t id = 2; id <= 6; id++) assert_near(weight_of(b, id), weight_of(a, id));
    assert_near(bias_of(b), bias_of(a));
    assert_true(fabsf(weight_of(a, 3)) > 1e-3f && fabsf(bias_of(a)) > 1e-4f);
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
}

static void features_meet_by_their_ids(void **state) {
    (void)state;
    static const uint64_t IDS[] = {3, 5};
    struct shmtrain_store *a = load("near.model"), *b = begin("logistic", "fewer", "near.model"); /* counted from 1 */
    assert_non_null(strstr(g_notes, "starts from near.model, which has 6 of the data's 7 features\n"));
    for (size_t i = 0; i < 2; i++) assert_near(weight_of(b, IDS[i]), weight_of(a, IDS[i]));
    assert_near(weight_of(b, 7), 0);
    assert_near(bias_of(b), bias_of(a));
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
    a = load("far.model");
    b = begin("logistic", "near", "far.model"); /* of a list into a range */
    assert_near(weight_of(b, 3), weight_of(a, 3));
    assert_near(weight_of(b, 4), 0);
    assert_non_null(strstr(g_notes, "which has 1 of the data's 6 features, and 3 others, which are left out\n"));
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
    a = load("far.model");
    b = begin("logistic", "far", "far.model");
    assert_null(strstr(g_notes, "starts from"));
    assert_near(weight_of(b, 1000000007), weight_of(a, 1000000007));
    assert_near(weight_of(b, UINT64_MAX - 1), weight_of(a, UINT64_MAX - 1));
    shmtrain_store_destroy(a);
    a = load("near.model");
    shmtrain_store_destroy(b);
    b = begin("logistic", "far", "near.model"); /* and a range into a list */
    assert_near(weight_of(b, 3), weight_of(a, 3));
    assert_near(weight_of(b, 1000000007), 0);
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
}

static void columns_of_dense_models_meet_too(void **state) {
    (void)state;
    struct shmtrain_store *a = load("three.model"), *b = begin("softmax", "three-fewer", "three.model");
    uint64_t wide_a, wide_b;
    assert_int_equal(shmtrain_store_table_at(a, 0, NULL, NULL, &wide_a), 0);
    assert_int_equal(shmtrain_store_table_at(b, 0, NULL, NULL, &wide_b), 0);
    for (uint64_t row = 0; row < 3; row++) {
        float of_a[8], of_b[8];
        assert_true(wide_a <= 8 && wide_b <= 8);
        WELL(a, shmtrain_store_read(a, 0, row, 1, of_a));
        WELL(b, shmtrain_store_read(b, 0, row, 1, of_b));
        assert_near(of_b[find_id(b, 3)], of_a[find_id(a, 3)]);
        assert_near(of_b[find_id(b, 5)], of_a[find_id(a, 5)]);
        assert_near(of_b[find_id(b, 7)], 0);
        WELL(a, shmtrain_store_read(a, 1, row, 1, of_a));
        WELL(b, shmtrain_store_read(b, 1, row, 1, of_b));
        assert_near(of_b[0], of_a[0]);
    }
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
}

/* Scales and the first layer stand by the number of a feature. */
static void networks_begin_with_the_same_features_only(void **state) {
    static const struct {
        const char *data, *option, *value, *words; /* NULL: it fits */
    } CASES[] = {
        {"three", "layers", "auto", NULL},
        {"three", "augment", "none", NULL},
        {"three-moved", "layers", "auto",
         "its features (6 from id 1 to 6) are not those of the data (6 from id 0 to 5), and a network can begin only with the "
         "same"},
        {"three-fewer", "layers", "auto", "are not those of the data (7 from id 1 to 7)"},
        {"three", "normalise", "none", "its table is \"input\" of (6, 2), but here it is none of that name"},
        {"three", "layers", "6-100-3", "its table is"},
    };
    static const char *const MOVED[5] = {"1", "2", "3", "4", "5"};
    (void)state;
    write_data("three-moved", MOVED, 3);
    FILE *f = fopen("three-moved", "a");
    assert_non_null(f);
    fprintf(f, "1 0:1\n");
    assert_int_equal(fclose(f), 0);
    train_and_save("mlp", "three", "mlp.model");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = make_store("mlp");
        WELL(store, shmtrain_store_set(store, CASES[i].option, CASES[i].value));
        const int rc = try_to_begin(store, CASES[i].data, "mlp.model");
        if (CASES[i].words)
            refused(store, rc, SHMTRAIN_E_USAGE, CASES[i].words);
        else
            WELL(store, rc);
        shmtrain_store_destroy(store);
    }
}

static void networks_begin_with_the_same_layers_only(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store("net");
    WELL(store, shmtrain_store_set(store, "net", "fc:8 relu fc:3"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_train(store, "three"));
    WELL(store, shmtrain_store_save(store, "net.model"));
    WELL(store, shmtrain_store_set(store, "net", "fc:8 tanh fc:3"));
    refused(store, try_to_begin(store, "three", "net.model"), SHMTRAIN_E_USAGE,
            "its --net is fc:8 relu fc:3, but here it is fc:8 tanh fc:3: name another file");
    WELL(store, shmtrain_store_set(store, "net", "fc:8 relu fc:3"));
    WELL(store, try_to_begin(store, "three", "net.model"));
    shmtrain_store_destroy(store);
}

static void models_of_liblinear_and_checkpoints_will_do(void **state) {
    (void)state;
    struct shmtrain_store *a = load("near.model"), *c = make_store("logistic");
    WELL(a, shmtrain_store_save_as(a, "near.text", "liblinear"));
    struct shmtrain_store *b = begin("logistic", "near", "near.text");
    for (uint64_t id = 2; id <= 6; id++) assert_near(weight_of(b, id), weight_of(a, id));
    shmtrain_store_destroy(b);
    WELL(c, shmtrain_store_set(c, "optimizer", "adam"));
    WELL(c, shmtrain_store_set(c, "checkpoint", g_folder));
    WELL(c, shmtrain_store_set(c, "epochs", "2"));
    WELL(c, shmtrain_store_train(c, "near"));
    b = begin("logistic", "near", "checkpoint-000000000016.safetensors"); /* 8 batches in an epoch */
    for (uint64_t id = 2; id <= 6; id++) assert_near(weight_of(b, id), weight_of(c, id));
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
    shmtrain_store_destroy(c);
}

static void what_does_not_fit_is_said(void **state) {
    (void)state;
    static const struct {
        const char *model, *data, *path, *option, *value, *words;
    } CASES[] = {
        {"svm", "near", "near.model", "bias", "1", "--init-from near.model: its model is logistic, but here it is svm"},
        {"logistic", "near", "near.model", "bias", "0", "its bias is learned, but here it is left out"},
        {"logistic", "near", "near.model", "hash-bits", "4", "its number of --hash-bits is none, but here it is 4"},
        {"softmax", "near", "three.model", "bias", "1",
         "its label set is 3 labels from 0 to 2, but here it is 2 labels from 0 to 1"},
        {"logistic", "alone", "near.model", "bias", "1", "none of its 6 features occurs in the data"},
        {"logistic", "near", "none", "bias", "1", "--init-from: cannot open the model none"},
        {"logistic", "near", "near", "bias", "1", "--init-from: near: byte 0: not a model file"},
    };
    write_text("alone", "1 900000000001:1\n0 900000000009:1\n");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = make_store(CASES[i].model);
        WELL(store, shmtrain_store_set(store, CASES[i].option, CASES[i].value));
        const int rc = try_to_begin(store, CASES[i].data, CASES[i].path);
        refused(store, rc,
                strstr(CASES[i].words, "cannot open") ? SHMTRAIN_E_SYSTEM
                : strstr(CASES[i].words, "byte 0")    ? SHMTRAIN_E_DATA
                                                      : SHMTRAIN_E_USAGE,
                CASES[i].words);
        shmtrain_store_destroy(store);
    }
}

static void tables_of_own_functions_meet_by_their_names(void **state) {
    (void)state;
    struct shmtrain_store *a = make("threads", "2", "1", 128), *b = make("threads", "1", "1", 64);
    const float start[2] = {10, 20};
    WELL(a, shmtrain_store_write(a, 0, 0, 2, start));
    WELL(a, shmtrain_store_run(a, count, NULL));
    WELL(a, shmtrain_store_save(a, "own.model"));
    WELL(b, shmtrain_store_set(b, "init-from", "own.model"));
    WELL(b, shmtrain_store_run(b, count, NULL));
    assert_true(read_one(b, 0) > read_one(a, 0) && read_one(b, 1) == 20);
    WELL(b, shmtrain_store_set(b, "init-from", "near.model"));
    refused(b, shmtrain_store_run(b, count, NULL), SHMTRAIN_E_USAGE,
            "its table is none of that name, but here it is \"count\" of (2, 1)");
    shmtrain_store_destroy(a);
    shmtrain_store_destroy(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_data_begins_where_the_model_ends, deadline),
        cmocka_unit_test_setup(features_meet_by_their_ids, deadline),
        cmocka_unit_test_setup(columns_of_dense_models_meet_too, deadline),
        cmocka_unit_test_setup(networks_begin_with_the_same_features_only, deadline),
        cmocka_unit_test_setup(networks_begin_with_the_same_layers_only, deadline),
        cmocka_unit_test_setup(models_of_liblinear_and_checkpoints_will_do, deadline),
        cmocka_unit_test_setup(what_does_not_fit_is_said, deadline),
        cmocka_unit_test_setup(tables_of_own_functions_meet_by_their_names, deadline),
    };
    return cmocka_run_group_tests(tests, make_files, remove_folder);
}
