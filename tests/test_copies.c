/* How many copies of the parameters async takes where nobody says, and what damped merging is told of the data: api/copies.h,
 * api/rows.h, and the option's way through spec.c. */
#include "api_help.h"

#include <math.h>
#include <stdio.h>

#include "api/copies.h"
#include "api/rows.h"
#include "models/models.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the choice ---- */

static struct shmt_copies_wish ordinary(void) {
    return (struct shmt_copies_wish){.is_linear = true, .n_workers = 2, .floats = 47237, .cache_bytes = MIB, .unit = 1024};
}

static void parameters_that_fit_in_the_cache_get_a_copy_per_worker(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[192];
    uint32_t hot = 1;
    (void)state;
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "a copy per worker, merged by lines: the parameters (185 KiB) fit in the second-level cache");
    assert_int_equal(hot, 0);
    wish.cache_bytes = 0; /* unknown: as if it were a MiB */
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    wish.floats = MIB / 16; /* twice four bytes of each are just half of the cache */
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    wish.floats++;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_non_null(strstr(why, "one copy: the parameters (256 KiB), twice, are more than half of the second-level cache"));
    assert_non_null(strstr(why, "and not ordered by frequency"));
    wish.floats = UINT64_MAX / 2; /* beyond arithmetic */
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
}

static void state_takes_room_too(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[192];
    uint32_t hot = 1;
    (void)state;
    wish.planes = 1;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_non_null(strstr(why, "with their state (369 KiB)"));
    wish.cache_bytes = 2 * MIB;
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
}

/* As many as fit, in whole pages, with one at least to share beside the last row's. */
static void of_larger_tables_that_are_ordered_the_first_rows_do(void **state) {
    static const struct {
        uint64_t floats, cache_bytes, unit;
        uint32_t planes, hot;
    } CASES[] = {{1 << 26, MIB, 1024, 0, 65536},
                 {1 << 26, 0, 1024, 0, 65536},
                 {1 << 26, MIB, 1024, 1, 32768},
                 {1 << 26, MIB, 1024, 4, 12288}, /* of 13,107 */
                 {1 << 26, 512 << 20, 1024, 0, 33554432},
                 {65537, MIB, 1024, 0, 64512}, /* the last row is alone on its page */
                 {65536 + 1025, MIB, 1024, 0, 65536},
                 {1 << 26, MIB, 1 << 19, 0, 0}, /* pages that are larger than what fits */
                 {1 << 26, MIB, 0, 0, 0},
                 {1500, 8192, 1024, 0, 0}, /* two pages, one of which is the last row's */
                 {3000, 16384, 1024, 0, 1024}};
    char why[192];
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_copies_wish wish = ordinary();
        uint32_t hot = 1;
        wish.by_frequency = true;
        wish.floats = CASES[i].floats;
        wish.cache_bytes = CASES[i].cache_bytes;
        wish.unit = CASES[i].unit;
        wish.planes = CASES[i].planes;
        assert_int_equal(shmt_copies_choose(&wish, &hot, why, sizeof why), CASES[i].hot > 0);
        if (hot != CASES[i].hot) fail_msg("case %zu: %u rows: %s", i, hot, why);
        assert_int_equal(strstr(why, "the rest shared") != NULL, hot > 0);
        assert_null(strstr(why, "not ordered"));
        if (i == 0)
            assert_string_equal(why,
                                "a copy of the 65,536 most frequent rows per worker, the rest shared: that is what half of "
                                "the second-level cache (1.0 MiB) holds");
        if (i == 4) assert_non_null(strstr(why, "the 33,554,432 most"));
    }
}

static void guests_one_worker_and_other_models_have_one_copy(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[192];
    uint32_t hot = 1;
    (void)state;
    wish.has_guests = true;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "one copy: workers may come and go by name");
    wish = ordinary();
    wish.n_workers = 1;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "");
    wish = ordinary();
    wish.is_linear = false;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "");
}

/* ---- what is known of rows ---- */

/* Three examples of four features, the last of which never occurs. */
static const uint64_t START[] = {0, 2, 4, 5};
static const uint32_t ID[] = {0, 1, 0, 2, 0};
static const float VALUE[] = {1, 2, 3, 4, 5}, WEIGHT[] = {1, 2, 3};
static const float LABEL[] = {0, 1, 1};

static void curvature_is_the_mean_of_weighted_squares_times_the_models(void **state) {
    struct shmtrain_data data = {
        .n_examples = 3, .n_nonzeros = 5, .n_features = 4, .start = START, .id = ID, .value = VALUE, .label = LABEL};
    struct shmt_spec spec = {.n_examples = 3, .n_tables = 1, .curvatures = true, .l2_rows = {4}};
    static const uint32_t LAST[] = {2, 2, 2};
    struct shmt_rows_of of = {.model = &SHMT_MODEL_LOGISTIC, .data = &data, .spec = &spec};
    struct shmt_rows rows = {0};
    (void)state;
    spec.table[0] = (struct shmt_table_spec){.name = "weight", .rows = 5, .width = 1};
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    static const float PLAIN[] = {35, 4, 16, 0, 3};
    for (int i = 0; i < 5; i++) assert_true(fabsf(rows.curvature[i] - 0.25f * PLAIN[i] / 3) < 1e-6f);
    shmt_rows_free(&rows);
    data.weight = WEIGHT;
    of.model = &SHMT_MODEL_LINEAR; /* the curvature of squares is 1 */
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    static const float WEIGHTED[] = {1 + 2 * 9 + 3 * 25, 4, 2 * 16, 0, 6};
    for (int i = 0; i < 5; i++) assert_true(fabsf(rows.curvature[i] - WEIGHTED[i] / 3) < 1e-5f);
    shmt_rows_free(&rows);
    data.value = NULL; /* all ones; and a part of the examples */
    of.example = LAST;
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    assert_true(rows.curvature[0] == 3 && rows.curvature[1] == 0 && rows.curvature[4] == 3);
    shmt_rows_free(&rows);
    spec.curvatures = false;
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    assert_null(rows.curvature);
}

/* Of those that replicas hold: the first 1,024 of 5,000 and the last one's page. */
static void curvature_is_of_the_rows_that_replicas_hold(void **state) {
    enum { HOT = 1024, COLD = 2000, TAIL = 4096, BIAS = 4999, HELD = HOT + BIAS + 1 - TAIL };
    static const uint32_t IDS[] = {3, COLD, HOT - 1, HOT, TAIL};
    const struct shmtrain_data data = {
        .n_examples = 3, .n_nonzeros = 5, .n_features = BIAS, .start = START, .id = IDS, .value = VALUE, .label = LABEL};
    struct shmt_spec spec = {.n_examples = 3, .n_tables = 1, .curvatures = true, .l2_rows = {BIAS}, .hot_floats = HOT};
    const struct shmt_rows_of of = {.model = &SHMT_MODEL_LINEAR, .data = &data, .spec = &spec};
    struct shmt_rows rows = {0};
    (void)state;
    spec.table[0] = (struct shmt_table_spec){.name = "weight", .rows = BIAS + 1, .width = 1};
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    assert_int_equal(rows.n_curvatures, HELD);
    for (uint32_t held = 0; held < HELD; held++) {
        const float squares = held == 3 ? 1 : held == HOT - 1 ? 9 : held == HOT ? 25 : held == HELD - 1 ? 3 : 0;
        assert_true(fabsf(rows.curvature[held] - squares / 3) < 1e-5f);
    }
    assert_int_equal(shmt_rows_work_bytes(&spec), HELD * sizeof(float));
    shmt_rows_free(&rows);
}

/* ---- through the options ---- */

static struct shmtrain_store *trained(const char *data, const char *const *option) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    for (size_t i = 0; option[i]; i += 2) WELL(store, shmtrain_store_set(store, option[i], option[i + 1]));
    if (shmtrain_store_train(store, data) < 0) fail_msg("%s", shmtrain_store_message(store));
    return store;
}

static void async_chooses_copies_and_whoever_names_an_axis_gets_what_it_says(void **state) {
    static const struct {
        const char *option[7], *replicas, *merge;
        bool chosen;
    } CASES[] = {{{NULL}, "worker", "damped", true},
                 {{"mode", "async", NULL}, "worker", "damped", true},
                 {{"replicas", "one", NULL}, "one", "", false},
                 {{"write", "racy", NULL}, "one", "", false},
                 {{"count-lost", "1", NULL}, "one", "", false},
                 {{"merge", "damped", NULL}, "worker", "damped", false},
                 {{"merge", "damped", "replicas", "worker", "write", "atomic", NULL}, "worker", "damped", false},
                 {{"mode", "ssp:4", NULL}, "one", "", false},
                 {{"mode", "local", NULL}, "worker", "mean", false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = trained("builtin:sparse:examples=3000,features=500", CASES[i].option);
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (strcmp(r->replicas, CASES[i].replicas) != 0 || strcmp(r->merge, CASES[i].merge) != 0)
            fail_msg("case %zu: replicas %s, merge %s", i, r->replicas, r->merge);
        assert_int_equal(r->copies_reason[0] != '\0', CASES[i].chosen);
        if (CASES[i].chosen) assert_string_equal(r->mode, "async");
        shmtrain_store_destroy(store);
    }
}

/* A table of two million rows, which half of no second-level cache holds twice. */
static void of_large_tables_async_copies_the_hot_rows_where_there_is_an_order(void **state) {
    static const struct {
        const char *option[5], *replicas, *reason;
        bool hot;
    } CASES[] = {{{NULL}, "worker", "most frequent rows per worker, the rest shared", true},
                 {{"optimizer", "adagrad", NULL}, "worker", "the rest shared", true},
                 {{"columns", "given", NULL}, "one", "not ordered by frequency", false},
                 {{"hugepages", "2M", NULL}, "one", "one copy: ", false},
                 {{"replicas", "one", NULL}, "one", "", false},
                 {{"replicas", "worker", "merge", "damped", NULL}, "worker", "", false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = trained("builtin:sparse:examples=60000,features=2000000,nonzeros=50", CASES[i].option);
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (strcmp(r->replicas, CASES[i].replicas) != 0 || !strstr(r->copies_reason, CASES[i].reason) ||
            (r->hot_rows > 0) != CASES[i].hot)
            fail_msg("case %zu: replicas %s, %u rows: %s", i, r->replicas, r->hot_rows, r->copies_reason);
        assert_true(!CASES[i].reason[0] == !r->copies_reason[0]);
        shmtrain_store_destroy(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_that_fit_in_the_cache_get_a_copy_per_worker),
        cmocka_unit_test(state_takes_room_too),
        cmocka_unit_test(of_larger_tables_that_are_ordered_the_first_rows_do),
        cmocka_unit_test(guests_one_worker_and_other_models_have_one_copy),
        cmocka_unit_test(curvature_is_the_mean_of_weighted_squares_times_the_models),
        cmocka_unit_test(curvature_is_of_the_rows_that_replicas_hold),
        cmocka_unit_test(async_chooses_copies_and_whoever_names_an_axis_gets_what_it_says),
        cmocka_unit_test(of_large_tables_async_copies_the_hot_rows_where_there_is_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
