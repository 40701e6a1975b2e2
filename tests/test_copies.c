/* How many copies of the parameters async takes where nobody says, and what damped merging is told of the data: configuration/copies.h,
 * loading/rows.h, and the option's way through spec.c. */
#include "api_help.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>

#include "configuration/copies.h"
#include "loading/coupling.h"
#include "loading/rows.h"
#include "models/models.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the choice ---- */

static struct shmt_copies_wish ordinary(void) {
    return (struct shmt_copies_wish){.is_linear = true, .n_workers = 2, .floats = 47237, .cache_bytes = MIB, .unit = 1024};
}

static void parameters_that_fit_in_the_cache_get_a_copy_per_worker(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[SHMT_COPIES_WHY];
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
    assert_non_null(strstr(why, "one copy: the parameters (256 KiB), stored twice, exceed half of the second-level cache"));
    assert_non_null(strstr(why, "and rows are not ordered by frequency"));
    wish.floats = UINT64_MAX / 2; /* beyond arithmetic */
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
}

static void state_takes_room_too(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[SHMT_COPIES_WHY];
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
    char why[SHMT_COPIES_WHY];
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

/* Of a cache that several workers have at one time each has a part. */
static void workers_that_share_a_cache_have_a_part_of_it_each(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[SHMT_COPIES_WHY];
    uint32_t hot = 1;
    (void)state;
    wish.cache_bytes = 2 * MIB;
    wish.n_sharers = 2;
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why,
                        "a copy per worker, merged by lines: the parameters (185 KiB) fit in a worker's part of the "
                        "second-level cache (2.0 MiB for 2 workers)");
    wish.n_sharers = 4;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why,
                        "one copy: the parameters (185 KiB), stored twice, exceed half of a worker's part of the "
                        "second-level cache (2.0 MiB for 4 workers), and rows are not ordered by frequency");
    wish.by_frequency = true;
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_int_equal(hot, 32768); /* half of half a MiB, twice four bytes of each */
    assert_non_null(strstr(why, "half of a worker's part of the second-level cache (2.0 MiB for 4 workers) holds"));
    wish.cache_bytes = 0; /* unknown: a MiB for all of them */
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_int_equal(hot, 16384);
}

static void several_threads_are_told_how_each_would_get_a_copy(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[SHMT_COPIES_WHY];
    uint32_t hot = 1;
    (void)state;
    wish.n_threads = 4;
    assert_true(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_non_null(strstr(why, "cache; the 4 threads of a worker share its copy, -w 8 -t 1 gives each its own"));
    wish.floats = UINT64_MAX / 2; /* there is one copy, whoever asks */
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_null(strstr(why, "threads"));
    wish = ordinary();
    wish.n_threads = 4;
    wish.n_workers = 1;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "one copy: the 4 threads of the worker share it, -w 4 -t 1 gives each its own");
    wish.has_guests = true;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "");
    wish.has_guests = false;
    wish.floats = UINT64_MAX / 2;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "");
}

/* Everything as long as it gets. */
static void every_reason_fits_into_its_room(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[2 * SHMT_COPIES_WHY];
    uint32_t hot = 1;
    (void)state;
    wish.n_threads = wish.n_workers = wish.n_sharers = UINT32_MAX;
    wish.planes = 4;
    wish.cache_bytes = (1000 * MIB - 1) * 1000;
    for (int i = 0; i < 3; i++) {
        wish.floats = i == 0 ? 1 : UINT64_MAX / 4;
        wish.by_frequency = i == 1;
        wish.unit = 1;
        (void)shmt_copies_choose(&wish, &hot, why, sizeof why);
        assert_true(strlen(why) > 100 && strlen(why) < SHMT_COPIES_WHY);
    }
}

static void guests_one_worker_and_other_models_have_one_copy(void **state) {
    struct shmt_copies_wish wish = ordinary();
    char why[SHMT_COPIES_WHY];
    uint32_t hot = 1;
    (void)state;
    wish.has_guests = true;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "one copy: guests may join and leave");
    wish = ordinary();
    wish.may_lose = true;
    assert_false(shmt_copies_choose(&wish, &hot, why, sizeof why));
    assert_string_equal(why, "one copy: the others continue if a worker dies");
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

/* What rows have by themselves: all but what they have because they move together, of which test_coupling.c knows more. */
static void take_off_coupling(const struct shmt_rows_of *of, uint64_t hot, float *curvature) {
    static float h[5000];
    const uint64_t rows = of->spec->table[0].rows, tail = hot ? (rows - 1) / hot * hot : rows;
    const struct shmt_cover cover = {hot ? hot : rows, tail, hot ? hot + rows - tail : rows};
    const float most = of->model == &SHMT_MODEL_LOGISTIC ? 0.25f : 1;
    memset(h, 0, sizeof h);
    assert_int_equal(shmt_coupling_add(of, &cover, cover.n - 1, h, NULL), 0);
    assert_true(h[cover.n - 1] > 0); /* the bias goes with them */
    for (uint64_t held = 0; held < cover.n; held++) curvature[held] -= most * h[held];
}

static void curvature_is_the_mean_of_weighted_squares_times_the_models(void **state) {
    struct shmtrain_data data = {.size = sizeof(struct shmtrain_data),
                                 .n_examples = 3,
                                 .n_nonzeros = 5,
                                 .n_features = 4,
                                 .start = START,
                                 .id = ID,
                                 .value = VALUE,
                                 .label = LABEL};
    struct shmt_spec spec = {.n_examples = 3, .n_tables = 1, .curvatures = true, .l2_rows = {4}};
    static const uint32_t LAST[] = {2, 2, 2};
    struct shmt_rows_of of = {.model = &SHMT_MODEL_LOGISTIC, .data = &data, .spec = &spec};
    struct shmt_rows rows = {0};
    (void)state;
    spec.table[0] = (struct shmt_table_spec){.name = "weight", .rows = 5, .width = 1};
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    take_off_coupling(&of, 0, rows.curvature);
    static const float PLAIN[] = {35, 4, 16, 0, 3};
    for (int i = 0; i < 5; i++) assert_true(fabsf(rows.curvature[i] - 0.25f * PLAIN[i] / 3) < 1e-5f);
    shmt_rows_free(&rows);
    data.weight = WEIGHT;
    of.model = &SHMT_MODEL_LINEAR; /* the curvature of squares is 1 */
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    take_off_coupling(&of, 0, rows.curvature);
    static const float WEIGHTED[] = {1 + 2 * 9 + 3 * 25, 4, 2 * 16, 0, 6};
    for (int i = 0; i < 5; i++) assert_true(fabsf(rows.curvature[i] - WEIGHTED[i] / 3) < 1e-4f);
    shmt_rows_free(&rows);
    data.value = NULL; /* all ones; and a part of the examples */
    of.example = LAST;
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    take_off_coupling(&of, 0, rows.curvature);
    assert_true(fabsf(rows.curvature[0] - 3) < 1e-5f && rows.curvature[1] == 0 && fabsf(rows.curvature[4] - 3) < 1e-5f);
    shmt_rows_free(&rows);
    spec.curvatures = false;
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    assert_null(rows.curvature);
}

/* Of those that replicas hold: the first 1,024 of 5,000 and the last one's page. */
static void curvature_is_of_the_rows_that_replicas_hold(void **state) {
    enum { HOT = 1024, COLD = 2000, TAIL = 4096, BIAS = 4999, HELD = HOT + BIAS + 1 - TAIL };
    static const uint32_t IDS[] = {3, COLD, HOT - 1, HOT, TAIL};
    const struct shmtrain_data data = {.size = sizeof(struct shmtrain_data),
                                       .n_examples = 3,
                                       .n_nonzeros = 5,
                                       .n_features = BIAS,
                                       .start = START,
                                       .id = IDS,
                                       .value = VALUE,
                                       .label = LABEL};
    struct shmt_spec spec = {.n_examples = 3, .n_tables = 1, .curvatures = true, .l2_rows = {BIAS}, .hot_floats = HOT};
    const struct shmt_rows_of of = {.model = &SHMT_MODEL_LINEAR, .data = &data, .spec = &spec};
    struct shmt_rows rows = {0};
    (void)state;
    spec.table[0] = (struct shmt_table_spec){.name = "weight", .rows = BIAS + 1, .width = 1};
    assert_int_equal(shmt_rows_curve(&rows, &of, NULL), 0);
    assert_int_equal(rows.n_curvatures, HELD);
    take_off_coupling(&of, HOT, rows.curvature);
    for (uint32_t held = 0; held < HELD; held++) {
        const float squares = held == 3 ? 1 : held == HOT - 1 ? 9 : held == HOT ? 25 : held == HELD - 1 ? 3 : 0;
        assert_true(fabsf(rows.curvature[held] - squares / 3) < 1e-5f);
    }
    assert_int_equal(shmt_rows_work_bytes(&spec), HELD * sizeof(float) + shmt_coupling_work_bytes(HELD));
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

/* A merge of many lines wants many examples behind it, but there are always eight of a worker's in an epoch. */
static void items_of_small_data_are_worth_the_merges_behind_them(void **state) {
    static const struct {
        const char *data, *option[3];
        uint32_t least, most;
    } CASES[] = {{"builtin:sparse:examples=10000,valid=50", {NULL}, 250, 400}, /* by the size of the second-level cache */
                 {"builtin:sparse:examples=10000,valid=50", {"item", "50", NULL}, 50, 50},
                 {"builtin:sparse:examples=2000,valid=50", {NULL}, 2000 / 8 / 2, 2000 / 8 / 2},
                 {"builtin:sparse:examples=10000,valid=50,features=500", {NULL}, 10000 / 64 / 2, 10000 / 64 / 2},
                 {"builtin:sparse:examples=10000,valid=50,nonzeros=5", {NULL}, 10000 / 8 / 2, 10000 / 8 / 2},
                 {"builtin:sparse:examples=100000,valid=50", {NULL}, 100000 / 64 / 2, 100000 / 64 / 2}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = trained(CASES[i].data, CASES[i].option);
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (r->item < CASES[i].least || r->item > CASES[i].most) fail_msg("case %zu: items of %u examples", i, r->item);
        assert_true(r->merge_all_every >= 8 && r->merge_all_every <= 16);
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
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i += SANITIZED ? 2 : 1) {
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
        cmocka_unit_test(workers_that_share_a_cache_have_a_part_of_it_each),
        cmocka_unit_test(several_threads_are_told_how_each_would_get_a_copy),
        cmocka_unit_test(every_reason_fits_into_its_room),
        cmocka_unit_test(guests_one_worker_and_other_models_have_one_copy),
        cmocka_unit_test(curvature_is_the_mean_of_weighted_squares_times_the_models),
        cmocka_unit_test(curvature_is_of_the_rows_that_replicas_hold),
        cmocka_unit_test(async_chooses_copies_and_whoever_names_an_axis_gets_what_it_says),
        cmocka_unit_test(items_of_small_data_are_worth_the_merges_behind_them),
        cmocka_unit_test(of_large_tables_async_copies_the_hot_rows_where_there_is_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
