/* How features of IDX files, which have no ids, and of LIBSVM text, which has, meet in one model, whatever it was trained on.
 * And IDX examples without labels, which can be predicted. */
#include "api_help.h"
#include "folder_help.h"

#include <stdbool.h>
#include <stdio.h>

#define N 64

static char g_note[512];
static int g_notes;

static void note(void *arg, const char *line) {
    (void)arg;
    snprintf(g_note, sizeof g_note, "%s", line);
    g_notes++;
}

static struct shmtrain_store *make_store(void) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    g_notes = 0;
    return store;
}

/* ---- one set of examples in three forms ---- */

static unsigned label_of(unsigned i) { return i * 7 % 3 == 1; }

/* Four elements, of which the first one is 0 everywhere: 255 at the second one means 0, at the third one 1. */
static void write_images(const char *images, const char *labels) {
    static const unsigned char IMAGES[] = {0, 0, 8, 2, 0, 0, 0, N, 0, 0, 0, 4}, LABELS[] = {0, 0, 8, 1, 0, 0, 0, N};
    FILE *x = fopen(images, "wb"), *y = labels ? fopen(labels, "wb") : NULL;
    assert_true(x && (y || !labels));
    fwrite(IMAGES, 1, sizeof IMAGES, x);
    if (y) fwrite(LABELS, 1, sizeof LABELS, y);
    for (unsigned i = 0; i < N; i++) {
        for (unsigned j = 0; j < 4; j++) putc(j == 1 + label_of(i) ? 255 : 0, x);
        if (y) putc((int)label_of(i), y);
    }
    assert_int_equal(fclose(x), 0);
    if (y) assert_int_equal(fclose(y), 0);
}

/* The same with ids from `first`. */
static void write_svm(const char *name, unsigned first) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < N; i++) fprintf(f, "%u %u:1\n", label_of(i), first + 1 + label_of(i));
    assert_int_equal(fclose(f), 0);
}

static int make_files(void **state) {
    if (make_folder(state) != 0) return -1;
    write_images("images", "labels");
    write_images("unnamed", NULL);
    write_svm("from0", 0);
    write_svm("from1", 1);
    return 0;
}

static double accuracy_on(struct shmtrain_store *store, const char *data) {
    const struct shmtrain_evaluation *e;
    g_notes = 0;
    WELL(store, shmtrain_store_evaluate(store, data, &e));
    return e->accuracy;
}

/* ---- models ---- */

static void elements_are_counted_as_the_models_features_are(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store();
    WELL(store, shmtrain_store_train(store, "from1"));
    for (int loaded = 0; loaded <= 1; loaded++) {
        assert_true(accuracy_on(store, "from1") == 1);
        assert_int_equal(g_notes, 0);
        assert_true(accuracy_on(store, "images") == 1);
        assert_int_equal(g_notes, 1);
        assert_string_equal(
            g_note,
            "images has elements without ids: they count as features 1 to 4, the model has 1 to 3: the others are left out");
        WELL(store, shmtrain_store_save(store, "model"));
        WELL(store, shmtrain_store_load(store, "model"));
    }
    shmtrain_store_destroy(store);
}

/* Nobody can tell whether text without an id 0 begins at 0 or at 1: ids are taken as they are, with a word. */
static void ids_meet_elements_with_a_word(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store();
    WELL(store, shmtrain_store_train(store, "images"));
    for (int loaded = 0; loaded <= 1; loaded++) {
        assert_true(accuracy_on(store, "images") == 1);
        assert_int_equal(g_notes, 0);
        assert_true(accuracy_on(store, "from0") == 1);
        assert_true(accuracy_on(store, "from1") < 1);
        assert_int_equal(g_notes, 1);
        assert_string_equal(
            g_note,
            "from1 has features 2 to 3, the model has elements 0 to 3: if the data's ids start at 1, each is one too large");
        WELL(store, shmtrain_store_save(store, "model"));
        WELL(store, shmtrain_store_load(store, "model"));
    }
    shmtrain_store_destroy(store);
}

/* Where both have ids, a file in which the first one does not occur is nothing unusual. */
static void ids_meet_ids_in_silence(void **state) {
    (void)state;
    FILE *f = fopen("with0", "w");
    assert_non_null(f);
    for (unsigned i = 0; i < N; i++) fprintf(f, "%u 0:1 %u:1\n", label_of(i), 1 + label_of(i));
    assert_int_equal(fclose(f), 0);
    struct shmtrain_store *store = make_store();
    WELL(store, shmtrain_store_train(store, "with0"));
    assert_true(accuracy_on(store, "from0") == 1);
    assert_int_equal(g_notes, 0);
    shmtrain_store_destroy(store);
}

static void validation_counts_as_evaluation_does(void **state) {
    static const struct {
        const char *train, *valid, *words;
        bool right;
    } CASES[] = {
        {"images", "images", NULL, true},
        {"from1", "images", "images has elements without ids: they are counted from 1, like the features of from1", true},
        {"images", "from0", "from0 has features from 1, but the elements of images are counted from 0", true},
        {"images", "from1", "from1 has features from 2, but the elements of images are counted from 0", false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = make_store();
        WELL(store, shmtrain_store_set(store, "valid", CASES[i].valid));
        WELL(store, shmtrain_store_train(store, CASES[i].train));
        assert_int_equal(g_notes, CASES[i].words != NULL);
        if (CASES[i].words) assert_non_null(strstr(g_note, CASES[i].words));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_int_equal(r->epoch[r->n_epochs - 1].valid_accuracy == 1, CASES[i].right);
        shmtrain_store_destroy(store);
    }
}

/* ---- no labels ---- */

static int count_right(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)output;
    (void)n;
    *(unsigned *)arg += label == (float)label_of((unsigned)example);
    return 0;
}

static void examples_without_labels_can_be_predicted(void **state) {
    const struct shmtrain_evaluation *e;
    (void)state;
    struct shmtrain_store *store = make_store();
    WELL(store, shmtrain_store_train(store, "images"));
    unsigned right = 0;
    WELL(store, shmtrain_store_predict(store, "unnamed", 0, count_right, &right));
    assert_int_equal(right, N);
    refused(store, shmtrain_store_predict(store, "unnamed,nothing", 0, count_right, &right), SHMTRAIN_E_SYSTEM, "nothing");
    refused(store, shmtrain_store_evaluate(store, "unnamed", &e), SHMTRAIN_E_DATA, "unnamed has no labels");
    refused(store, shmtrain_store_train(store, "unnamed"), SHMTRAIN_E_DATA, "unnamed has no labels");
    shmtrain_store_destroy(store);

    store = make_store();
    WELL(store, shmtrain_store_set(store, "model", "linear")); /* whose labels are no classes */
    WELL(store, shmtrain_store_train(store, "images"));
    WELL(store, shmtrain_store_predict(store, "unnamed", 0, count_right, &right));
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_counted_as_the_models_features_are),
        cmocka_unit_test(ids_meet_elements_with_a_word),
        cmocka_unit_test(ids_meet_ids_in_silence),
        cmocka_unit_test(validation_counts_as_evaluation_does),
        cmocka_unit_test(examples_without_labels_can_be_predicted),
    };
    alarm(120);
    return cmocka_run_group_tests_name("features", tests, make_files, remove_folder);
}
