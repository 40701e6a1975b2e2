/* Data for worker functions of the application's own (shmtrain_store_read_data): any format, in either layout, training and test
 * data with the same columns; and a worker function that trains on it. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>

static struct shmtrain_store *g_store;

static int open_store(void **state) {
    deadline(state);
    return shmtrain_store_create(&g_store);
}

static int close_store(void **state) {
    (void)state;
    shmtrain_store_destroy(g_store);
    return 0;
}

static const struct shmtrain_data *read_as(const char *name, enum shmtrain_rows rows, const struct shmtrain_data *like) {
    const struct shmtrain_data *data = NULL;
    WELL(g_store, shmtrain_store_read_data(g_store, name, rows, like, &data));
    return data;
}

static void rows_come_sparse_or_dense(void **state) {
    static const float DENSE[] = {0.5F, 0, 2, 0, -1, 0};
    (void)state;
    write_text("train.svm", "1 1:0.5 3:2\n0 2:-1\n");
    const struct shmtrain_data *sparse = read_as("train.svm", SHMTRAIN_ROWS_SPARSE, NULL);
    const struct shmtrain_data *dense = read_as("train.svm", SHMTRAIN_ROWS_DENSE, NULL);
    const struct shmtrain_data *either = read_as("train.svm", SHMTRAIN_ROWS_EITHER, NULL);
    assert_int_equal(sparse->n_examples, 2);
    assert_int_equal(sparse->n_features, 3);
    assert_null(sparse->dense);
    assert_int_equal(sparse->start[1], 2);
    assert_int_equal(sparse->id[1], 2);
    assert_true(sparse->value[1] == 2 && sparse->label[0] == 1 && sparse->label[1] == 0);
    assert_int_equal(sparse->n_labels, 2);
    assert_true(sparse->classes[0] == 0 && sparse->classes[1] == 1);
    assert_null(dense->id);
    assert_memory_equal(dense->dense, DENSE, sizeof DENSE);
    assert_non_null(either->dense);
    shmtrain_data_free(either);
    shmtrain_data_free(dense);
    shmtrain_data_free(sparse);
    shmtrain_data_free(NULL);
}

/* Whatever ids a file has: a feature that training has not seen is left out, one that the test has not seen is there. */
static void test_data_has_the_columns_of_training_data(void **state) {
    (void)state;
    write_text("train.svm", "1 1:0.5 3:2\n0 2:-1\n");
    write_text("test.svm", "1 2:7 9:1\n");
    write_text("far.svm", "1 1000000000:3\n0 5000000000:4\n");
    write_text("far-test.svm", "1 7:1 5000000000:6\n");
    const struct shmtrain_data *train = read_as("train.svm", SHMTRAIN_ROWS_DENSE, NULL);
    const struct shmtrain_data *test = read_as("test.svm", SHMTRAIN_ROWS_DENSE, train);
    assert_int_equal(test->n_features, 3);
    assert_true(test->dense[0] == 0 && test->dense[1] == 7 && test->dense[2] == 0);
    shmtrain_data_free(test);
    shmtrain_data_free(train);
    train = read_as("far.svm", SHMTRAIN_ROWS_DENSE, NULL);
    test = read_as("far-test.svm", SHMTRAIN_ROWS_DENSE, train);
    assert_int_equal(train->n_features, 2);
    assert_int_equal(test->n_features, 2);
    assert_true(train->dense[0] == 3 && train->dense[3] == 4);
    assert_true(test->dense[0] == 0 && test->dense[1] == 6);
    shmtrain_data_free(test);
    shmtrain_data_free(train);
}

/* Categories are the same columns in both tables, and the label is where it was. */
static void tables_are_read_alike(void **state) {
    (void)state;
    write_text("train.csv", "colour,size,label\nred,1,0\nblue,2,1\ngreen,3,1\n");
    write_text("test.csv", "colour,size,label\ngreen,5,1\nred,4,0\n");
    WELL(g_store, shmtrain_store_set(g_store, "label", "label"));
    const struct shmtrain_data *train = read_as("train.csv", SHMTRAIN_ROWS_DENSE, NULL);
    const struct shmtrain_data *test = read_as("test.csv", SHMTRAIN_ROWS_DENSE, train);
    const uint32_t n = train->n_features;
    assert_int_equal(test->n_features, n);
    uint32_t size = 0; /* the column that has the sizes */
    while (size < n && !(train->dense[size] == 1 && train->dense[n + size] == 2)) size++;
    assert_true(size < n && test->dense[size] == 5 && test->dense[n + size] == 4);
    for (uint32_t c = 0; c < n; c++) /* the colours */
        if (c != size) {
            assert_true(test->dense[c] == train->dense[2 * n + c]);
            assert_true(test->dense[n + c] == train->dense[c]);
        }
    shmtrain_data_free(test);
    shmtrain_data_free(train);
}

/* Images keep their shape; data outlives the store that has read it. */
static void images_have_their_shape_and_outlive_the_store(void **state) {
    const struct shmtrain_data *train;
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_read_data(store, "builtin:digits:examples=50", SHMTRAIN_ROWS_DENSE, NULL, &train));
    shmtrain_store_destroy(store);
    assert_int_equal(train->n_features, 28 * 28);
    assert_int_equal(train->height, 28);
    assert_int_equal(train->channels, 1);
    float most = 0;
    for (uint32_t i = 0; i < 50 * 28 * 28; i++) most = fmaxf(most, train->dense[i]);
    assert_true(most > 0.5F && most <= 1);
    shmtrain_data_free(train);
}

static void arrays_come_with_their_weights(void **state) {
    static const float POINT[] = {1, 2, 3, 4}, LABEL[] = {5, 6}, WEIGHT[] = {0.5F, 2};
    const struct shmtrain_arrays arrays = {.size = sizeof arrays,
                                           .borrowed = 1,
                                           .n_examples = 2,
                                           .n_features = 2,
                                           .dense = POINT,
                                           .label = LABEL,
                                           .weight = WEIGHT};
    (void)state;
    WELL(g_store, shmtrain_store_arrays(g_store, "mine", &arrays));
    const struct shmtrain_data *data = read_as("arrays:mine", SHMTRAIN_ROWS_DENSE, NULL);
    assert_memory_equal(data->dense, POINT, sizeof POINT);
    assert_memory_equal(data->label, LABEL, sizeof LABEL);
    assert_memory_equal(data->weight, WEIGHT, sizeof WEIGHT);
    shmtrain_data_free(data);
}

static void what_is_no_data_is_refused(void **state) {
    const struct shmtrain_data *data = NULL;
    (void)state;
    write_text("bad.svm", "1 1:0.5\n0 2:x\n");
    refused(g_store, shmtrain_store_read_data(g_store, "bad.svm", SHMTRAIN_ROWS_DENSE, NULL, &data), SHMTRAIN_E_DATA,
            "bad.svm:2:");
    refused(g_store, shmtrain_store_read_data(g_store, "none.svm", SHMTRAIN_ROWS_DENSE, NULL, &data), SHMTRAIN_E_SYSTEM,
            "none.svm");
    refused(g_store, shmtrain_store_read_data(g_store, NULL, SHMTRAIN_ROWS_DENSE, NULL, &data), SHMTRAIN_E_USAGE,
            "name a file");
    refused(g_store, shmtrain_store_read_data(g_store, "builtin:line", (enum shmtrain_rows)3, NULL, &data), SHMTRAIN_E_USAGE,
            "rows are sparse, dense or either");
    assert_null(data);
}

/* ---- a worker function ---- */

static const struct shmtrain_data *g_train;

/* The sum of what the examples have in the first column, and how many there are. */
static int add_up(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float grad[2] = {0, -(float)w.n};
        for (uint64_t i = w.first; i < w.first + w.n; i++) grad[0] -= g_train->dense[i * g_train->n_features];
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void workers_of_either_kind_find_it(void **state) {
    (void)state;
    FILE *f = fopen("train.svm", "w");
    assert_non_null(f);
    for (int i = 0; i < 640; i++) fprintf(f, "%d 1:2 2:%d\n", i % 2, i % 5);
    assert_int_equal(fclose(f), 0);
    for (size_t k = 0; k < 2; k++) {
        struct shmtrain_store *store = make(SPAWNS[k], "3", "1", 640);
        WELL(store, shmtrain_store_set(store, "rate", "1"));
        WELL(store, shmtrain_store_read_data(store, "train.svm", SHMTRAIN_ROWS_DENSE, NULL, &g_train));
        WELL(store, shmtrain_store_run(store, add_up, NULL));
        assert_true(read_one(store, 0) == 20 && read_one(store, 1) == 10); /* 10 batches, each a step by the mean */
        shmtrain_data_free(g_train);
        shmtrain_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_sparse_or_dense, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_data_has_the_columns_of_training_data, open_store, close_store),
        cmocka_unit_test_setup_teardown(tables_are_read_alike, open_store, close_store),
        cmocka_unit_test_setup(images_have_their_shape_and_outlive_the_store, deadline),
        cmocka_unit_test_setup_teardown(arrays_come_with_their_weights, open_store, close_store),
        cmocka_unit_test_setup_teardown(what_is_no_data_is_refused, open_store, close_store),
        cmocka_unit_test_setup(workers_of_either_kind_find_it, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
