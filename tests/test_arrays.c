/* Data that the application has in memory, through the public calls: the same bits as from a file, in every layout, borrowed or
 * copied; weights, validation, predictions; and what is refused. What workers see of it: test_arrays_runs.c. */
#include "arrays_help.h"

#include <math.h>
#include <sys/mman.h>

static int begin(void **state) {
    make_rows();
    return make_folder(state);
}

/* ---- the same bits ---- */

struct outcome {
    uint64_t xxh64;
    double loss;
    uint64_t features;
    char model[1 << 16];
    size_t bytes;
};

struct way {
    const char *model, *spawn, *workers, *valid, *option, *value;
};

static void train(const struct way *way, const char *data, const struct shmtrain_arrays *arrays, struct outcome *out) {
    struct shmtrain_store *store = open_store(way->model, way->spawn, way->workers);
    if (way->option) WELL(store, shmtrain_store_set(store, way->option, way->value));
    if (arrays) WELL(store, shmtrain_store_arrays(store, "train", arrays));
    if (way->valid) WELL(store, shmtrain_store_set(store, "valid", way->valid));
    WELL(store, shmtrain_store_train(store, data));
    const struct shmtrain_report *report = shmtrain_store_report(store);
    out->xxh64 = report->parameters_xxh64;
    out->loss = way->valid ? report->epoch[report->n_epochs - 1].valid_loss : report->epoch[report->n_epochs - 1].train_loss;
    out->features = report->dataset.features;
    WELL(store, shmtrain_store_save(store, "model"));
    out->bytes = read_file("model", out->model, sizeof out->model);
    shmtrain_store_destroy(store);
}

static void same(const struct outcome *a, const struct outcome *b) {
    assert_true(a->xxh64 == b->xxh64 && a->loss == b->loss && a->features == b->features);
}

/* A file numbers its features as arrays without n_features do, and the model's file is the same, byte for byte. */
static void rows_train_as_the_same_rows_in_a_file(void **state) {
    static const struct way WAYS[] = {{"logistic", "processes", "2", "0.2", NULL, NULL},
                                      {"logistic", "threads", "3", NULL, "columns", "given"},
                                      {"svm", "threads", "1", NULL, "class-weight", "1:2"},
                                      {"logistic", "processes", "2", NULL, "hash-bits", "5"},
                                      {"softmax", "processes", "2", NULL, NULL, NULL}};
    static struct outcome file, mine;
    (void)state;
    write_rows("rows.svm", 1);
    write_rows("rows0.svm", 0);
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        for (uint32_t borrowed = 0; borrowed < 2; borrowed++) {
            struct shmtrain_arrays a = sparse_arrays(borrowed);
            train(&WAYS[i], "rows0.svm", NULL, &file);
            train(&WAYS[i], "arrays:train", &a, &mine); /* ids from 0, one of which occurs */
            same(&file, &mine);
            a.n_features = 0;
            train(&WAYS[i], "arrays:train", &a, &mine);
            same(&file, &mine);
            assert_memory_equal(file.model, mine.model, file.bytes);
            a = wide_arrays(borrowed);
            train(&WAYS[i], "rows.svm", NULL, &file);
            train(&WAYS[i], "arrays:train", &a, &mine); /* ids from 1, in 64 bits */
            same(&file, &mine);
            assert_true(file.bytes == mine.bytes);
            assert_memory_equal(file.model, mine.model, file.bytes);
        }
    }
}

static void dense_rows_train_as_the_same_rows_in_a_file(void **state) {
    static const char *const MODELS[] = {"logistic", "softmax"};
    static struct outcome file, mine;
    (void)state;
    write_rows("rows.svm", 1);
    for (int m = 0; m < 2; m++) {
        const struct way way = {MODELS[m], "processes", "2", NULL, NULL, NULL};
        train(&way, "rows.svm", NULL, &file);
        for (uint32_t borrowed = 0; borrowed < 2; borrowed++) {
            for (uint64_t stride = 0; stride <= FEATURES + 3; stride += FEATURES + 3) {
                const struct shmtrain_arrays a = dense_arrays(borrowed, stride);
                train(&way, "arrays:train", &a, &mine);
                same(&file, &mine);
            }
        }
    }
}

/* Ids that are far apart are listed, as those of a file are. */
static void ids_of_any_64_bits_are_numbered(void **state) {
    static struct outcome file, mine;
    const struct way way = {"logistic", "processes", "2", NULL, NULL, NULL};
    static uint64_t far[ENTRIES];
    struct shmtrain_arrays a = wide_arrays(1);
    uint64_t id;
    (void)state;
    for (uint64_t j = 0; j < a.n_entries; j++) far[j] = g_wide[j] * UINT64_C(300000000000000001);
    a.wide_id = far;
    FILE *f = fopen("far.svm", "w");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        fprintf(f, "%g", (double)g_label[i]);
        for (uint64_t j = g_start[i]; j < g_start[i + 1]; j++)
            fprintf(f, " %llu:%g", (unsigned long long)far[j], (double)g_value[j]);
        fputc('\n', f);
    }
    fclose(f);
    train(&way, "far.svm", NULL, &file);
    train(&way, "arrays:train", &a, &mine);
    same(&file, &mine);
    struct shmtrain_store *store = open_store("logistic", "threads", "1");
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    WELL(store, shmtrain_store_feature_id(store, 1, &id));
    assert_true(id == UINT64_C(600000000000000002));
    shmtrain_store_destroy(store);
}

static void weights_are_those_of_a_file(void **state) {
    static struct outcome file, mine;
    static float weight[EXAMPLES];
    (void)state;
    write_rows("rows0.svm", 0);
    FILE *f = fopen("weights", "w");
    for (uint32_t i = 0; i < EXAMPLES; i++) fprintf(f, "%g\n", (double)(weight[i] = (float)(i % 4) / 2));
    fclose(f);
    for (uint32_t borrowed = 0; borrowed < 2; borrowed++) {
        struct shmtrain_arrays a = sparse_arrays(borrowed);
        a.weight = weight;
        for (int spread = 0; spread < 2; spread++) {
            struct way way = {"logistic", "processes", "2", spread ? "0.25" : NULL, "weights", "weights"};
            train(&way, "rows0.svm", NULL, &file);
            way.option = NULL;
            train(&way, "arrays:train", &a, &mine);
            same(&file, &mine);
        }
    }
    struct shmtrain_store *store = open_store("logistic", "threads", "1");
    struct shmtrain_arrays a = sparse_arrays(1);
    a.weight = weight;
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_set(store, "weights", "weights"));
    refused(store, shmtrain_store_train(store, "arrays:train"), SHMTRAIN_E_USAGE, "weights of its own");
    shmtrain_store_destroy(store);
}

static void copied_arrays_may_change_and_go(void **state) {
    static struct outcome before, after;
    const struct way way = {"logistic", "processes", "2", NULL, NULL, NULL};
    (void)state;
    const struct shmtrain_arrays a = sparse_arrays(0);
    train(&way, "arrays:train", &a, &before);
    struct shmtrain_store *store = open_store("logistic", "processes", "2");
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    memset(g_start, 0xff, sizeof g_start);
    memset(g_id, 0xff, sizeof g_id);
    memset(g_value, 0xff, sizeof g_value);
    memset(g_label, 0xff, sizeof g_label);
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    after.xxh64 = shmtrain_store_report(store)->parameters_xxh64;
    assert_true(after.xxh64 == before.xxh64);
    shmtrain_store_destroy(store);
    make_rows();
}

/* ---- validation, evaluation, predictions ---- */

static void validation_evaluation_and_predictions_take_arrays(void **state) {
    static const char *const MODELS[] = {"logistic", "softmax"};
    (void)state;
    for (int m = 0; m < 2; m++) {
        for (uint32_t borrowed = 0; borrowed < 2; borrowed++) {
            struct shmtrain_store *store = open_store(MODELS[m], SPAWNS[borrowed], "2");
            const struct shmtrain_arrays sparse = sparse_arrays(borrowed), dense = dense_arrays(borrowed, 0);
            const struct shmtrain_evaluation *e;
            static float label[2][EXAMPLES], output[2][2 * EXAMPLES];
            WELL(store, shmtrain_store_arrays(store, "train", &sparse));
            WELL(store, shmtrain_store_arrays(store, "valid", &dense));
            WELL(store, shmtrain_store_set(store, "valid", "arrays:valid"));
            WELL(store, shmtrain_store_train(store, "arrays:train"));
            const struct shmtrain_report *r = shmtrain_store_report(store);
            const double loss = r->epoch[r->n_epochs - 1].valid_loss;
            assert_string_equal(r->valid.name, "arrays:valid");
            WELL(store, shmtrain_store_evaluate(store, "arrays:train", &e));
            assert_true(e->examples == EXAMPLES && fabs(e->loss - loss) < 1e-9 && e->accuracy > 0.6);
            const int outputs = shmtrain_store_outputs(store);
            assert_int_equal(outputs, m == 0 ? 1 : 2);
            for (int k = 0; k < 2; k++) { /* without labels, in either layout */
                struct shmtrain_arrays ask = k == 0 ? sparse : dense;
                ask.label = NULL;
                WELL(store, shmtrain_store_arrays(store, "ask", &ask));
                const struct shmtrain_predictions into = {sizeof into, 1, EXAMPLES, label[k], output[k]};
                WELL(store, shmtrain_store_predict_into(store, "arrays:ask", &into));
            }
            assert_memory_equal(label[0], label[1], sizeof label[0]);
            assert_memory_equal(output[0], output[1], (size_t)outputs * EXAMPLES * sizeof(float));
            uint32_t right = 0;
            for (uint32_t i = 0; i < EXAMPLES; i++) right += label[0][i] == g_label[i];
            assert_true(fabs((double)right / EXAMPLES - e->accuracy) < 1e-12);
            refused(store, shmtrain_store_evaluate(store, "arrays:ask", &e), SHMTRAIN_E_USAGE, "no labels");
            shmtrain_store_destroy(store);
        }
    }
}

/* Weights of an evaluation weigh its loss. */
static void an_evaluation_weighs(void **state) {
    static float weight[EXAMPLES];
    const struct shmtrain_evaluation *e;
    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    struct shmtrain_arrays a = sparse_arrays(1), first = a;
    (void)state;
    for (uint32_t i = 0; i < EXAMPLES / 2; i++) weight[i] = 3;
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    first.n_examples = EXAMPLES / 2;
    WELL(store, shmtrain_store_arrays(store, "first", &first));
    WELL(store, shmtrain_store_evaluate(store, "arrays:first", &e));
    const double half = e->loss;
    a.weight = weight;
    for (uint32_t borrowed = 0; borrowed < 2; borrowed++) {
        a.borrowed = borrowed;
        WELL(store, shmtrain_store_arrays(store, "train", &a));
        WELL(store, shmtrain_store_evaluate(store, "arrays:train", &e));
        assert_true(fabs(e->loss - half) < 1e-6); /* losses are floats, here times 3 */
    }
    memset(weight, 0, sizeof weight);
    a.borrowed = 0;
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    refused(store, shmtrain_store_evaluate(store, "arrays:train", &e), SHMTRAIN_E_DATA, "all examples have weight 0");
    shmtrain_store_destroy(store);
}

static void predictions_need_room(void **state) {
    static float label[EXAMPLES];
    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    const struct shmtrain_arrays a = sparse_arrays(1);
    struct shmtrain_predictions into = {sizeof into, 0, EXAMPLES - 1, label, NULL};
    (void)state;
    assert_int_equal(shmtrain_store_outputs(store), SHMTRAIN_E_USAGE);
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    label[0] = 7;
    refused(store, shmtrain_store_predict_into(store, "arrays:train", &into), SHMTRAIN_E_USAGE,
            "arrays:train has 300 examples: there is room for 299 predictions");
    assert_true(label[0] == 7); /* nothing has been written */
    refused(store, shmtrain_store_predict_into(store, "arrays:train", NULL), SHMTRAIN_E_USAGE, "where they go");
    into.probabilities = 2;
    refused(store, shmtrain_store_predict_into(store, "arrays:train", &into), SHMTRAIN_E_USAGE, "neither 0 nor 1");
    into.size = 4;
    refused(store, shmtrain_store_predict_into(store, "arrays:train", &into), SHMTRAIN_E_USAGE, "size is 4");
    shmtrain_store_destroy(store);
}

static void plans_caches_and_descriptions_take_arrays(void **state) {
    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    const struct shmtrain_arrays a = sparse_arrays(1);
    const struct shmtrain_plan *plan;
    struct shmtrain_data_info info;
    (void)state;
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_set(store, "scale", "no")); /* which takes copies, but not beside snapshots */
    WELL(store, shmtrain_store_plan(store, "arrays:train", &plan));
    assert_int_equal(plan->data_bytes, 0); /* they are borrowed */
    const uint64_t bytes = plan->total_bytes;
    WELL(store, shmtrain_store_will_snapshot(store, 1));
    WELL(store, shmtrain_store_plan(store, "arrays:train", &plan));
    assert_true(plan->total_bytes >= bytes + FEATURES * sizeof(float)); /* room for one */
    WELL(store, shmtrain_store_will_snapshot(store, 0));
    WELL(store, shmtrain_store_data_info(store, "arrays:train", &info));
    assert_true(info.examples == EXAMPLES && info.features == FEATURES && info.nonzeros == g_start[EXAMPLES]);
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    const uint64_t xxh64 = shmtrain_store_report(store)->parameters_xxh64;
    WELL(store, shmtrain_store_convert(store, "arrays:train", "rows.cache"));
    WELL(store, shmtrain_store_set(store, "cache", "1")); /* of arrays none is kept */
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == xxh64);
    WELL(store, shmtrain_store_train(store, "rows.cache"));
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == xxh64);
    static float weight[EXAMPLES];
    struct shmtrain_arrays weighted = a;
    weighted.weight = weight;
    WELL(store, shmtrain_store_arrays(store, "weighted", &weighted));
    refused(store, shmtrain_store_convert(store, "arrays:weighted", "weighted.cache"), SHMTRAIN_E_USAGE, "has weights");
    assert_int_equal(access("weighted.cache", F_OK), -1);
    shmtrain_store_destroy(store);
}

/* ---- what is refused ---- */

static void names_are_checked_and_can_be_taken_back(void **state) {
    static const char *const BAD[] = {"", "a b", "a:b", "a/b", "12345678901234567890123456789012345678901"};
    struct shmtrain_store *store = open_store("logistic", "threads", "1");
    const struct shmtrain_arrays a = sparse_arrays(1);
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        refused(store, shmtrain_store_arrays(store, BAD[i], &a), SHMTRAIN_E_USAGE, "cannot be named");
    refused(store, shmtrain_store_arrays(store, NULL, &a), SHMTRAIN_E_USAGE, "cannot be named");
    WELL(store, shmtrain_store_arrays(store, "a.b-c_1", &a));
    refused(store, shmtrain_store_train(store, "arrays:b"), SHMTRAIN_E_USAGE, "no arrays are named \"arrays:b\"");
    WELL(store, shmtrain_store_train(store, "arrays:a.b-c_1"));
    WELL(store, shmtrain_store_arrays(store, "a.b-c_1", NULL));
    WELL(store, shmtrain_store_arrays(store, "never", NULL));
    refused(store, shmtrain_store_train(store, "arrays:a.b-c_1"), SHMTRAIN_E_USAGE,
            "no arrays are named"); /* now none at all */
    shmtrain_store_destroy(store);
}

static void structs_that_cannot_be_are_refused(void **state) {
    struct shmtrain_store *store = open_store("logistic", "threads", "1");
    const struct shmtrain_arrays sparse = sparse_arrays(1), dense = dense_arrays(1, 0);
    struct {
        struct shmtrain_arrays a;
        uint64_t more;
    } later = {.a = sparse};
    struct shmtrain_arrays bad;
    (void)state;
#define BAD_ONE(of, change, words)                                                          \
    do {                                                                                    \
        bad = of;                                                                           \
        change;                                                                             \
        refused(store, shmtrain_store_arrays(store, "bad", &bad), SHMTRAIN_E_USAGE, words); \
    } while (0)
    BAD_ONE(sparse, bad.size = 0, "size is 0");
    BAD_ONE(sparse, bad.size = offsetof(struct shmtrain_arrays, weight), "size is");
    BAD_ONE(sparse, bad.size = UINT32_MAX, "size is");
    BAD_ONE(sparse, bad.n_examples = 0, "no example");
    BAD_ONE(sparse, bad.n_examples = UINT64_MAX, "at most 4294967295");
    BAD_ONE(sparse, bad.n_features = UINT64_MAX, "n_features is");
    BAD_ONE(sparse, bad.n_entries = UINT64_MAX, "n_entries");
    BAD_ONE(sparse, bad.borrowed = 2, "borrowed");
    BAD_ONE(sparse, bad.start = NULL, "must be set");
    BAD_ONE(sparse, bad.id = NULL, "need id");
    BAD_ONE(sparse, bad.wide_id = g_wide, "only one of");
    BAD_ONE(sparse, bad.stride = 7, "stride");
    BAD_ONE(sparse, bad.id = (const uint32_t *)(const void *)((const char *)g_id + 1), "id is not aligned");
    BAD_ONE(dense, bad.start = g_start, "dense rows have no");
    BAD_ONE(dense, bad.n_features = 0, "need n_features");
    BAD_ONE(dense, bad.stride = FEATURES - 1, "overlap");
    BAD_ONE(dense, bad.stride = UINT64_MAX / 4, "more than memory");
    BAD_ONE(dense, bad.channels = 1, "is not n_features");
    BAD_ONE(dense, (bad.channels = 2, bad.height = FEATURES, bad.width = 1), "is not n_features");
    BAD_ONE(dense, (bad.channels = UINT32_MAX, bad.height = UINT32_MAX, bad.width = UINT32_MAX), "is not n_features");
    later.a.size = sizeof later; /* of a header that is newer, with nothing set that is not known here */
    WELL(store, shmtrain_store_arrays(store, "later", &later.a));
    later.more = 1;
    refused(store, shmtrain_store_arrays(store, "later", &later.a), SHMTRAIN_E_USAGE, "does not know");
    shmtrain_store_destroy(store);
}

/* Trains on arrays that have something wrong in them: refused with the place, borrowed and copied, by one worker and by many. */
static void refused_inside(struct shmtrain_arrays a, const char *words) {
    static const char *const WORKERS[] = {"1", "5"};
    for (uint32_t i = 0; i < 4; i++) {
        struct shmtrain_store *store = open_store("logistic", "threads", WORKERS[i & 1]);
        a.borrowed = i >> 1;
        int rc = shmtrain_store_arrays(store, "bad", &a);
        if (rc == 0) rc = shmtrain_store_train(store, "arrays:bad");
        refused(store, rc, SHMTRAIN_E_DATA, words);
        shmtrain_store_destroy(store);
    }
}

static void contents_that_cannot_be_are_refused_with_their_place(void **state) {
    const struct shmtrain_arrays sparse = sparse_arrays(0), dense = dense_arrays(0, 0);
    static float weight[EXAMPLES];
    const uint64_t at = g_start[17];
    struct shmtrain_arrays a;
    (void)state;
#define WRONG(of, array, where, what, words)             \
    do {                                                 \
        const __typeof__(*(array)) was = (array)[where]; \
        (array)[where] = what;                           \
        refused_inside(of, words);                       \
        (array)[where] = was;                            \
    } while (0)
    for (uint32_t i = 0; i < EXAMPLES; i++) weight[i] = 1;
    WRONG(sparse, g_start, 18, 0, "arrays:bad: example 17: start[18] is 0, below start[17]");
    WRONG(sparse, g_start, 18, UINT64_MAX, "arrays:bad: example 17: start[18] is 18446744073709551615, beyond the");
    WRONG(sparse, g_start, 0, UINT64_MAX, "arrays:bad: example 0");
    WRONG(sparse, g_id, at + 1, g_id[at], "arrays:bad: example 17, entry 1: id");
    WRONG(sparse, g_id, at, FEATURES, "arrays:bad: example 17, entry 0: id 40 is not below n_features, which is 40");
    WRONG(sparse, g_id, at, UINT32_MAX, "arrays:bad: example 17, entry 0: id 4294967295 is not below");
    WRONG(sparse, g_value, at + 1, NAN, "arrays:bad: example 17, entry 1: value[");
    WRONG(sparse, g_value, at + 1, -INFINITY, "arrays:bad: example 17, entry 1: value[");
    WRONG(sparse, g_label, 17, NAN, "arrays:bad: example 17: its label");
    WRONG(sparse, g_label, 17, 9, "arrays:bad: example 17: the data has");
    WRONG(dense, g_dense, 17 * FEATURES + 3, INFINITY, "arrays:bad: example 17, entry 3: dense[683] is not a finite number");
    a = dense_arrays(0, FEATURES + 3);
    WRONG(a, g_spaced, 17 * (FEATURES + 3) + 3, NAN, "arrays:bad: example 17, entry 3: dense[734] is not a finite number");
    a = sparse; /* a part of larger arrays: places are those of all of them */
    a.start = g_start + 10;
    a.label = g_label + 10;
    a.n_examples = EXAMPLES - 10;
    char words[3][96];
    snprintf(words[0], sizeof words[0], "arrays:bad: example 7, entry 1: value[%llu] is not", (unsigned long long)at + 1);
    snprintf(words[1], sizeof words[1], "arrays:bad: example 7: start[8] is %llu, below start[7], which is %llu",
             (unsigned long long)at - 1, (unsigned long long)at);
    snprintf(words[2], sizeof words[2], "arrays:bad: example 7: start[8] is %llu, beyond the %llu entries",
             (unsigned long long)a.n_entries + 1, (unsigned long long)a.n_entries);
    WRONG(a, g_value, at + 1, NAN, words[0]);
    WRONG(a, g_start, 18, at - 1, words[1]);
    WRONG(a, g_start, 18, a.n_entries + 1, words[2]);
    a = sparse;
    a.weight = weight;
    WRONG(a, weight, 17, -1, "arrays:bad: example 17: its weight");
    WRONG(a, weight, 17, NAN, "arrays:bad: example 17: its weight");
    memset(weight, 0, sizeof weight);
    refused_inside(a, "all training examples have weight 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_train_as_the_same_rows_in_a_file, deadline),
        cmocka_unit_test_setup(dense_rows_train_as_the_same_rows_in_a_file, deadline),
        cmocka_unit_test_setup(ids_of_any_64_bits_are_numbered, deadline),
        cmocka_unit_test_setup(weights_are_those_of_a_file, deadline),
        cmocka_unit_test_setup(copied_arrays_may_change_and_go, deadline),
        cmocka_unit_test_setup(validation_evaluation_and_predictions_take_arrays, deadline),
        cmocka_unit_test_setup(an_evaluation_weighs, deadline),
        cmocka_unit_test_setup(predictions_need_room, deadline),
        cmocka_unit_test_setup(plans_caches_and_descriptions_take_arrays, deadline),
        cmocka_unit_test_setup(names_are_checked_and_can_be_taken_back, deadline),
        cmocka_unit_test_setup(structs_that_cannot_be_are_refused, deadline),
        cmocka_unit_test_setup(contents_that_cannot_be_are_refused_with_their_place, deadline),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
