/* Arrays beside models of tables: they are as the features of a table are, not as its numbers, as <shmtrain/arrays.h> says. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <shmtrain/data_info.h>

enum { ROWS = 60, EACH = 3, FROM = 1700000000 };

static double g_time[ROWS], g_size[ROWS]; /* as in the table; NAN: missing */
static double g_mean;                     /* of the sizes that there are */

static int write_table(void **state) {
    double sum = 0;
    unsigned n = 0;
    if (make_folder(state) != 0) return -1;
    FILE *f = fopen("far.csv", "w");
    if (!f) return -1;
    fputs("y,time,size\n", f);
    for (unsigned i = 0; i < ROWS; i++) {
        g_time[i] = FROM + (double)(i * 37 % 101);
        g_size[i] = i % 5 == 2 ? (double)NAN : (double)(1 + i * 13 % 7);
        fprintf(f, "%d,%.0f,", i * 37 % 101 > 50, g_time[i]);
        if (isnan(g_size[i])) {
            fputc('\n', f);
            continue;
        }
        fprintf(f, "%.0f\n", g_size[i]);
        sum += g_size[i];
        n++;
    }
    g_mean = sum / n;
    return fclose(f);
}

static struct shmtrain_store *train_on_table(void) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "label", "y"));
    WELL(store, shmtrain_store_train(store, "far.csv"));
    return store;
}

static double counted_from(struct shmtrain_store *store) {
    static struct shmtrain_data_info info; /* large */
    WELL(store, shmtrain_store_data_info(store, "far.csv", &info));
    assert_int_equal(info.n_columns, 3);
    return info.counted_from[1];
}

/* Entries of a row: time, size, and the mark of size where it is missing. */
static void fill(double from, uint64_t start[ROWS + 1], uint64_t id[ROWS * EACH], float value[ROWS * EACH]) {
    uint64_t at = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        start[i] = at;
        id[at] = 1;
        value[at++] = (float)(g_time[i] - from);
        id[at] = 2;
        value[at++] = (float)(isnan(g_size[i]) ? g_mean : g_size[i]);
        id[at] = SHMTRAIN_ID_MARK + 2;
        value[at] = 1;
        at += isnan(g_size[i]);
    }
    start[ROWS] = at;
}

static void predict(struct shmtrain_store *store, const char *data, float out[ROWS]) {
    const struct shmtrain_predictions into = {.size = sizeof into, .n_examples = ROWS, .output = out};
    WELL(store, shmtrain_store_predict_into(store, data, &into));
}

static float greatest_difference(const float a[ROWS], const float b[ROWS]) {
    float most = 0;
    for (unsigned i = 0; i < ROWS; i++) most = fmaxf(most, fabsf(a[i] - b[i]));
    return most;
}

static void what_the_model_counts_gives_its_scores_and_raw_numbers_do_not(void **state) {
    (void)state;
    static uint64_t start[ROWS + 1], id[ROWS * EACH];
    static float value[ROWS * EACH], of_table[ROWS], of_arrays[ROWS];
    struct shmtrain_store *store = train_on_table();
    const double from = counted_from(store);
    assert_true(fabs(from - FROM) < 101);
    predict(store, "far.csv", of_table);
    for (int raw = 0; raw < 2; raw++) {
        fill(raw ? 0 : from, start, id, value);
        const struct shmtrain_arrays a = {
            .size = sizeof a, .n_examples = ROWS, .n_entries = start[ROWS], .start = start, .wide_id = id, .value = value};
        WELL(store, shmtrain_store_arrays(store, "rows", &a));
        predict(store, "arrays:rows", of_arrays);
        const float difference = greatest_difference(of_table, of_arrays);
        if (raw)
            assert_true(difference > 1000); /* weights of time, times 1.7e9 */
        else
            assert_true(difference < 1e-4F); /* of the mean, which is rounded */
    }
    shmtrain_store_destroy(store);
}

/* The third feature is the mark; the second column's parameter is that of its numbers as they are. */
static void ids_and_parameters_are_those_of_the_headers(void **state) {
    (void)state;
    static float of_table[ROWS];
    float w[4];
    uint64_t id;
    struct shmtrain_store *store = train_on_table();
    const uint64_t expected[] = {1, 2, SHMTRAIN_ID_MARK + 2};
    for (uint64_t i = 0; i < 3; i++) {
        WELL(store, shmtrain_store_feature_id(store, i, &id));
        assert_true(id == expected[i]);
    }
    WELL(store, shmtrain_store_read(store, 0, 0, 4, w));
    predict(store, "far.csv", of_table);
    const double from = counted_from(store),
                 score = (double)w[0] * (g_time[0] - from) + (double)w[1] * g_size[0] + (double)w[3];
    assert_true(fabs(score - (double)of_table[0]) < 1e-3 * (1 + fabs(score)));
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_model_counts_gives_its_scores_and_raw_numbers_do_not),
        cmocka_unit_test(ids_and_parameters_are_those_of_the_headers),
    };
    return cmocka_run_group_tests_name("arrays beside tables", tests, write_table, remove_folder);
}
