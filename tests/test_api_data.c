/* What models get to see of the data: layout, classes, weights, through the whole of loading. A model of the test's own looks,
 * in a worker that is a thread, and keeps copies; and it is no model of anything. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define MOST 4096

/* ---- a model that looks ---- */

struct seen {
    uint64_t n_examples, n_nonzeros;
    uint32_t n_features, n_labels, n_classes;
    bool dense, weighted;
    float weight[MOST], label[MOST], value[MOST], classes[SHMTRAIN_MAX_CLASSES];
};

static struct seen g_trained, g_scored; /* by step and by score */
static const char *g_check;             /* what the model's check says */
static enum shmtrain_task g_task;

static void look(const struct shmtrain_batch *batch, const struct shmtrain_settings *with, struct seen *out) {
    const struct shmtrain_data *data = batch->data;
    *out = (struct seen){.n_examples = data->n_examples,
                         .n_nonzeros = data->n_nonzeros,
                         .n_features = data->n_features,
                         .n_labels = data->n_labels,
                         .n_classes = with->n_classes,
                         .dense = data->dense != NULL,
                         .weighted = data->weight != NULL};
    for (uint64_t i = 0; i < data->n_examples && i < MOST; i++) {
        out->label[i] = data->label[i];
        if (data->weight) out->weight[i] = data->weight[i];
    }
    for (uint64_t i = 0; data->dense && i < data->n_examples * data->n_features && i < MOST; i++)
        out->value[i] = data->dense[i];
    for (uint32_t c = 0; with->classes && c < with->n_classes; c++) out->classes[c] = with->classes[c];
}

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = (uint64_t)data->n_features + 1, .width = 1};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    (void)s;
    look(batch, pass->with, &g_trained);
    *loss_out = 0;
    return 0;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    const uint32_t outputs = g_task == SHMTRAIN_CLASSES ? pass->with->n_classes : 1;
    (void)s;
    look(batch, pass->with, &g_scored);
    for (uint32_t i = 0; i < batch->n * outputs; i++) score_out[i] = 0;
    *loss_out = 0;
    return 0;
}

static const char *check(const struct shmtrain_data *data) {
    return data->n_labels > SHMTRAIN_MAX_CLASSES ? "too much" : g_check;
}

/* One output per class; tables of one column, which a dense model may have, too. */
static const struct shmtrain_model LOOKS = {
    .size = sizeof(struct shmtrain_model),
    .name = "looks",
    .about = "at the data",
    .task = SHMTRAIN_CLASSES,
    .traits = {.rows = SHMTRAIN_ROWS_DENSE, .pushes_tables = 1, .loops = 1, .curvature = 1},
    .loss = "none",
    .check = check,
    .tables = tables,
    .step = step,
    .score = score};

static struct shmtrain_store *make_looking(const struct shmtrain_model *model, const char *valid) {
    struct shmtrain_store *store;
    memset(&g_trained, 0, sizeof g_trained);
    memset(&g_scored, 0, sizeof g_scored);
    g_check = NULL;
    g_task = model->task;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, model));
    WELL(store, shmtrain_store_set(store, "model", model->name));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "valid", valid));
    return store;
}

/* ---- files ---- */

/* A gzip file of one stored block, up to where its checksum would stand. */
static void write_gz(const char *path, const unsigned char *bytes, uint8_t n) {
    unsigned char gz[300] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, n, 0, (unsigned char)~n, 0xff};
    memcpy(gz + 15, bytes, n);
    write_bytes(path, gz, 15 + (size_t)n + 8);
}

/* ---- layout and classes ---- */

static void a_dense_model_gets_dense_rows_and_all_classes(void **state) {
    static const float value[] = {0, 0.5f, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0}, classes[] = {-4, 2.5f, 7};
    (void)state;
    write_text("train.svm", "7 2:0.5 4:2\n-4\n2.5 3:1\n");
    write_text("valid.svm", "7 3:3 9:9\n"); /* one class only, and a feature that is none */
    struct shmtrain_store *store = make_looking(&LOOKS, "valid.svm");
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_trained.dense && !g_trained.weighted && g_trained.n_features == 4 && g_trained.n_nonzeros == 3);
    assert_memory_equal(g_trained.value, value, sizeof value);
    assert_true(g_trained.n_labels == 3 && g_trained.n_classes == 3);
    assert_memory_equal(g_trained.classes, classes, sizeof classes);
    assert_true(g_scored.dense && g_scored.n_examples == 1 && g_scored.n_features == 4 && g_scored.n_nonzeros == 1);
    assert_true(g_scored.value[2] == 3 && g_scored.n_labels == 1 && g_scored.n_classes == 3);
    assert_memory_equal(g_scored.classes, classes, sizeof classes);
    assert_int_equal(shmtrain_store_report(store)->dataset.nonzeros, 3);
    shmtrain_store_destroy(store);
}

/* The nonzeros of a share are counted in the dense rows. */
static void a_share_of_dense_data_is_reported(void **state) {
    (void)state;
    struct shmtrain_store *store = make_looking(&LOOKS, "0.25");
    WELL(store, shmtrain_store_train(store, "builtin:dense:examples=40,features=3,classes=2"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_int_equal(r->dataset.examples + r->valid.examples, 40);
    assert_int_equal(r->dataset.nonzeros, 3 * r->dataset.examples);
    assert_int_equal(r->valid.nonzeros, 3 * r->valid.examples);
    shmtrain_store_destroy(store);
}

static void labels_that_training_does_not_know_are_refused_for_classifiers(void **state) {
    (void)state;
    write_text("train.svm", "1 1:1\n2 1:1\n5 1:1\n");
    write_text("valid.svm", "5 1:1\n2 1:1\n# here\n3 1:1\n9 1:1\n");
    struct shmtrain_store *store = make_looking(&LOOKS, "valid.svm");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA,
            "valid.svm:4: label 3 does not occur in the training data, which has 3 labels from 1 to 5");
    shmtrain_store_destroy(store);
    struct shmtrain_model regression = LOOKS;
    regression.task = SHMTRAIN_REGRESSION;
    store = make_looking(&regression, "valid.svm");
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_scored.n_examples == 4 && g_scored.label[2] == 3);
    shmtrain_store_destroy(store);
}

static void a_model_that_refuses_is_told_with_the_place_of_the_label(void **state) {
    char text[16384];
    size_t n = 0;
    (void)state;
    write_text("train.svm", "1 1:1\n2 1:1\n1 1:1\n5 1:1\n7 1:1\n");
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    g_check = "a fault";
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA,
            "train.svm:5: the data has a fault (label number 4 is 7)");
    shmtrain_store_destroy(store);
    struct shmtrain_model two = LOOKS;
    two.task = SHMTRAIN_BINARY;
    store = make_looking(&two, "none");
    g_check = "more than two";
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA,
            "train.svm:4: the data has more than two (the third is 5)");
    shmtrain_store_destroy(store);
    for (int i = 0; i < 1100; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d 1:1\n", i);
    write_bytes("train.svm", text, n);
    store = make_looking(&LOOKS, "none");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA,
            "train.svm:1025: the data has too much (label number 1025 is 1024)");
    shmtrain_store_destroy(store);
}

/* Text of a few bytes can ask for a million of columns; where few of them occur, it has those. */
static void sparse_data_that_is_too_wide_for_dense_rows_is_refused_before_memory_is_made(void **state) {
    static char text[5 << 20];
    size_t n = 0;
    (void)state;
    for (int i = 0; i < 300000; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d %d:1\n", i % 2, 1 + 3 * i);
    write_bytes("train.svm", text, n);
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_MEMORY, "GiB");
    /* The wide line stands behind what the guess has seen. */
    n = 0;
    for (int i = 0; i < 300000; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d 1:1\n", i % 2);
    n += (size_t)snprintf(text + n, sizeof text - n, "1 1048575:1\n");
    write_bytes("train.svm", text, n);
    assert_int_equal(shmtrain_store_train(store, "train.svm"), 0);
    shmtrain_store_destroy(store);
}

static void features_have_the_ids_of_the_data(void **state) {
    static const char far[] = "1 7:1 18446744073709551615:1\n0 9000000000:1\n1 7:1\n0 9000000000:2\n";
    static const char near[] = "1 1:1\n0 2:1\n1 1:1\n0 3:1\n";
    uint64_t id = 0;
    (void)state;
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    assert_int_equal(shmtrain_store_set(store, "model", "logistic"), 0);
    refused(store, shmtrain_store_feature_id(store, 0, &id), SHMTRAIN_E_USAGE, "there is no model");
    write_bytes("train.svm", far, sizeof far - 1);
    assert_int_equal(shmtrain_store_train(store, "train.svm"), 0);
    static const uint64_t ids[] = {7, 9000000000, UINT64_MAX};
    for (uint64_t f = 0; f < 3; f++) {
        assert_int_equal(shmtrain_store_feature_id(store, f, &id), 0);
        assert_true(id == ids[f]);
    }
    refused(store, shmtrain_store_feature_id(store, 3, &id), SHMTRAIN_E_USAGE, "the model has 3 features");
    write_bytes("train.svm", near, sizeof near - 1);
    assert_int_equal(shmtrain_store_train(store, "train.svm"), 0);
    assert_int_equal(shmtrain_store_feature_id(store, 0, &id), 0);
    assert_true(id == 1);
    assert_int_equal(shmtrain_store_set(store, "hash-bits", "4"), 0);
    assert_int_equal(shmtrain_store_train(store, "train.svm"), 0);
    refused(store, shmtrain_store_feature_id(store, 0, &id), SHMTRAIN_E_USAGE, "hashes of ids");
    shmtrain_store_destroy(store);
}

/* A header may announce anything. */
static void an_idx_file_that_announces_too_much_is_refused_before_it_is_unpacked(void **state) {
    static const unsigned char images[] = {0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 1, 2, 3, 4}; /* 1 TiB */
    static const unsigned char labels[] = {0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1, 0};
    (void)state;
    write_gz("images", images, sizeof images);
    write_gz("labels", labels, sizeof labels);
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    refused(store, shmtrain_store_train(store, "images,labels"), SHMTRAIN_E_MEMORY, "the data, by the size of its files,");
    shmtrain_store_destroy(store);
}

static void an_idx_file_is_trained_on(void **state) {
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 51, 0, 0, 0, 255, 255};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 4, 1, 0, 1, 0};
    static const float value[] = {0, 1, 51.0f / 255, 0, 0, 0, 1, 1};
    (void)state;
    write_bytes("images", images, sizeof images);
    write_bytes("labels", labels, sizeof labels);
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_looking(&LOOKS, "none");
        WELL(store, shmtrain_store_set(store, "spawn", SPAWNS[i]));
        WELL(store, shmtrain_store_train(store, i == 0 ? "images" : "images,labels"));
        if (i == 0) assert_memory_equal(g_trained.value, value, sizeof value);
        assert_int_equal(shmtrain_store_report(store)->dataset.nonzeros, 4);
        shmtrain_store_destroy(store);
    }
}

/* ---- files that must not be written ---- */

static void what_is_read_is_no_place_for_output(void **state) {
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 1};
    (void)state;
    write_bytes("images", images, sizeof images);
    write_bytes("labels", labels, sizeof labels);
    write_bytes("unlabelled", images, sizeof images);
    write_text("train.svm", "1 1:1\n-1 1:1\n");
    write_text("valid.svm", "1 1:1\n-1 1:1\n");
    write_text("w.txt", "1\n1\n");
    write_text("0.5", "1 1:1\n");
    assert_int_equal(symlink("train.svm", "link"), 0);
    const struct {
        const char *data, *valid, *path, *sentence;
    } cases[] = {
        {"train.svm", "", "./train.svm",
         "./train.svm is read as the data (train.svm) and would be replaced: name another file"},
        {"link", "", "train.svm", "train.svm is read as the data (link) and"},
        {"images", "", "images", "images is read as the data (images) and"},
        {"images", "", "labels", "labels is read as the data (images) and"},
        {"unlabelled", "", "unlabelled", "unlabelled is read as the data (unlabelled) and"}, /* by whoever predicts */
        {"images,labels", "", "labels", "labels is read as the data (images,labels) and"},
        {"images,labels", "", "images", "images is read as the data (images,labels) and"},
        {"train.svm", "valid.svm", "valid.svm", "valid.svm is read as validation data (valid.svm) and"},
        {"builtin:sparse", "valid.svm", "valid.svm", "valid.svm is read as validation data"},
        {NULL, "images", "labels", "labels is read as validation data (images) and"},
        {"train.svm", "", "w.txt", "w.txt is read as weights (w.txt) and"},
        {"train.svm", "valid.svm", "new", NULL},
        {"train.svm", "", "valid.svm", NULL},
        {"train.svm", "0.5", "0.5", NULL}, /* a share, not this file */
        {"train.svm", "none", "valid.svm", NULL},
        {"missing", "missing", "valid.svm", NULL},
        {"builtin:line", "", "/dev/null", NULL},
    };
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    WELL(store, shmtrain_store_set(store, "weights", "w.txt"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        WELL(store, shmtrain_store_set(store, "valid", cases[i].valid));
        const int rc = shmtrain_store_check_output(store, cases[i].data, cases[i].path);
        if (cases[i].sentence)
            refused(store, rc, SHMTRAIN_E_USAGE, cases[i].sentence);
        else
            WELL(store, rc);
    }
    shmtrain_store_destroy(store);
}

/* ---- weights ---- */

static void weights_of_examples_and_classes_are_multiplied(void **state) {
    static const float expected[] = {0.5f * 3, 2, 0, 1 * 3, 4 * 0.25f};
    (void)state;
    write_text("train.svm", "-1 1:1\n2 1:1\n2 1:1\n-1 1:1\n7 1:1\n");
    write_text("w.txt", "0.5\n2\n0\n1\n4\n");
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    WELL(store, shmtrain_store_set(store, "weights", "w.txt"));
    WELL(store, shmtrain_store_set(store, "class-weight", "-1:3,7:.25"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_trained.weighted);
    assert_memory_equal(g_trained.weight, expected, sizeof expected);
    shmtrain_store_destroy(store);
}

/* n / (n_classes * count), as scikit-learn's compute_class_weight("balanced", ...) gives: for labels 0 0 0 1 1 2 that is
 * [0.66666667, 1, 2]. */
static void balanced_weights_are_those_of_scikit_learn(void **state) {
    static const float expected[] = {2.0f / 3, 2.0f / 3, 2.0f / 3, 1, 1, 2};
    (void)state;
    write_text("train.svm", "0 1:1\n0 1:1\n0 1:1\n1 1:1\n1 1:1\n2 1:1\n");
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    WELL(store, shmtrain_store_set(store, "class-weight", "balanced"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_trained.weighted);
    assert_memory_equal(g_trained.weight, expected, sizeof expected);
    shmtrain_store_destroy(store);
}

/* Of the examples that are trained on each class has the same weight in all; validation knows no weights. */
static void what_is_set_aside_is_not_weighed(void **state) {
    char text[16384];
    size_t n = 0;
    double sum[2] = {0};
    uint64_t count[2] = {0};
    (void)state;
    for (int i = 0; i < 1000; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%d 1:1\n", i % 10 == 0);
    write_bytes("train.svm", text, n);
    struct shmtrain_store *store = make_looking(&LOOKS, "0.3");
    WELL(store, shmtrain_store_set(store, "class-weight", "balanced"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_trained.weighted && !g_scored.weighted);
    const uint64_t trained = shmtrain_store_report(store)->dataset.examples;
    for (uint64_t i = 0; i < 1000; i++) {
        sum[(int)g_trained.label[i]] += (double)g_trained.weight[i];
        count[(int)g_trained.label[i]]++;
    }
    /* weight = trained / (2 * count of the class among those trained on), so the two weights tell both counts. */
    const double rare = (double)trained / (2 * (sum[1] / (double)count[1]));
    const double often = (double)trained / (2 * (sum[0] / (double)count[0]));
    assert_true(fabs(rare + often - (double)trained) < 0.01 && rare > 40 && rare < 100);
    shmtrain_store_destroy(store);
}

static void without_options_there_are_no_weights(void **state) {
    (void)state;
    write_text("train.svm", "0 1:1\n1 1:1\n");
    struct shmtrain_store *store = make_looking(&LOOKS, "none");
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(g_trained.n_examples == 2 && !g_trained.weighted);
    shmtrain_store_destroy(store);
}

static void wrong_weights_are_refused(void **state) {
    static const struct {
        const char *weights, *class_weight, *sentence;
        int status;
    } cases[] = {
        {"1\n1\n", "", "w.txt has 2 weights, but the data has 3 examples: each example needs one weight", SHMTRAIN_E_DATA},
        {"1\n1\n-1\n", "", "w.txt:3:1: expected a weight (a number of at least 0), found \"-1\"", SHMTRAIN_E_DATA},
        {"0\n0\n0\n", "", "all training examples have weight 0: nothing would be learned", SHMTRAIN_E_DATA},
        {"0\n1\n0\n", "1:0", "all training examples have weight 0: nothing would be learned", SHMTRAIN_E_DATA},
        {"1\n3e38\n1\n", "1:10", "the weight of example 2, multiplied by that of its class, is too large", SHMTRAIN_E_DATA},
        {NULL, "1:x", "--class-weight 1:x: expected LABEL:WEIGHT,LABEL:WEIGHT,... with weights of at least 0, or balanced",
         SHMTRAIN_E_USAGE},
        {NULL, "1:-1", "--class-weight 1:-1: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1:nan", "--class-weight 1:nan: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1:1e39", "--class-weight 1:1e39: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1", "--class-weight 1: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1:2,", "--class-weight 1:2,: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, ",1:2", "--class-weight ,1:2: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1:2;2:1", "--class-weight 1:2;2:1: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "Balanced", "--class-weight Balanced: expected LABEL:WEIGHT", SHMTRAIN_E_USAGE},
        {NULL, "1:2,1:3", "--class-weight 1:2,1:3: label 1 is named twice", SHMTRAIN_E_USAGE},
        {NULL, "4:2", "--class-weight 4:2: label 4 does not occur in the training data, whose 3 labels go from 0 to 2",
         SHMTRAIN_E_USAGE},
    };
    (void)state;
    write_text("train.svm", "0 1:1\n1 1:1\n2 1:1\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shmtrain_store *store = make_looking(&LOOKS, "none");
        if (cases[i].weights) {
            write_text("w.txt", cases[i].weights);
            WELL(store, shmtrain_store_set(store, "weights", "w.txt"));
        }
        WELL(store, shmtrain_store_set(store, "class-weight", cases[i].class_weight));
        refused(store, shmtrain_store_train(store, "train.svm"), cases[i].status, cases[i].sentence);
        shmtrain_store_destroy(store);
    }
}

static void weights_of_classes_need_classes(void **state) {
    (void)state;
    struct shmtrain_model regression = LOOKS;
    regression.task = SHMTRAIN_REGRESSION;
    write_text("train.svm", "0 1:1\n1 1:1\n2 1:1\n");
    struct shmtrain_store *store = make_looking(&regression, "none");
    WELL(store, shmtrain_store_set(store, "class-weight", "balanced"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE,
            "--class-weight balanced: there are no classes: the model learns a number");
    shmtrain_store_destroy(store);
}

/* Twice the weight is the same as twice the example: sync, one batch, so that the order changes nothing but roundings. */
static void a_weight_of_two_is_an_example_twice(void **state) {
    static const char *const text[] = {"1 1:1\n-1 2:1\n-1 1:0.5 2:1\n1 1:1\n", "1 1:1\n-1 2:1\n-1 1:0.5 2:1\n"};
    float weight[2][3];
    (void)state;
    write_text("w.txt", "2\n1\n1\n");
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store;
        write_text("train.svm", text[i]);
        assert_int_equal(shmtrain_store_create(&store), 0);
        WELL(store, shmtrain_store_set(store, "mode", "sync"));
        WELL(store, shmtrain_store_set(store, "workers", "2"));
        WELL(store, shmtrain_store_set(store, "batch", "8"));
        WELL(store, shmtrain_store_set(store, "epochs", "20"));
        WELL(store, shmtrain_store_set(store, "schedule", "constant"));
        /* The mean is taken over the examples of a batch: four, or three. */
        WELL(store, shmtrain_store_set(store, "rate", i == 0 ? "0.4" : "0.3"));
        if (i == 1) WELL(store, shmtrain_store_set(store, "weights", "w.txt"));
        WELL(store, shmtrain_store_train(store, "train.svm"));
        WELL(store, shmtrain_store_read(store, 0, 0, 3, weight[i]));
        shmtrain_store_destroy(store);
    }
    for (int j = 0; j < 3; j++) assert_true(weight[0][j] != 0 && fabsf(weight[0][j] - weight[1][j]) < 1e-5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_model_gets_dense_rows_and_all_classes),
        cmocka_unit_test(a_share_of_dense_data_is_reported),
        cmocka_unit_test(labels_that_training_does_not_know_are_refused_for_classifiers),
        cmocka_unit_test(a_model_that_refuses_is_told_with_the_place_of_the_label),
        cmocka_unit_test(sparse_data_that_is_too_wide_for_dense_rows_is_refused_before_memory_is_made),
        cmocka_unit_test(an_idx_file_that_announces_too_much_is_refused_before_it_is_unpacked),
        cmocka_unit_test(an_idx_file_is_trained_on),
        cmocka_unit_test(what_is_read_is_no_place_for_output),
        cmocka_unit_test(weights_of_examples_and_classes_are_multiplied),
        cmocka_unit_test(balanced_weights_are_those_of_scikit_learn),
        cmocka_unit_test(what_is_set_aside_is_not_weighed),
        cmocka_unit_test(without_options_there_are_no_weights),
        cmocka_unit_test(wrong_weights_are_refused),
        cmocka_unit_test(weights_of_classes_need_classes),
        cmocka_unit_test(a_weight_of_two_is_an_example_twice),
        cmocka_unit_test(features_have_the_ids_of_the_data),
    };
    alarm(300);
    return cmocka_run_group_tests_name("data through the api", tests, make_folder, remove_folder);
}
