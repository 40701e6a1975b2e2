/* Tests of ids: sets of them, and from ids to columns by range, by list and by hash. */
#include "data_load.h"

#include <pthread.h>

#include "base/atomic.h"
#include "data/columns.h"
#include "data/ids.h"
#include "data/ids_join.h"
#include "data/row_buffer.h"

static uint64_t rng = 7;

static uint64_t draw(void) {
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return rng ^ rng >> 29;
}

static void a_set_numbers_each_id_once_in_the_order_they_came(void **state) {
    (void)state;
    struct shmt_ids ids = {0};
    static const uint64_t in[] = {7, UINT64_MAX, 0, 7, 1, UINT64_MAX, UINT64_C(1) << 32};
    assert_int_equal(shmt_ids_find(&ids, 7), UINT32_MAX);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) shmt_ids_add(&ids, in[i]);
    assert_int_equal(ids.n, 5);
    assert_int_equal(shmt_ids_find(&ids, 7), 0);
    assert_int_equal(shmt_ids_find(&ids, UINT64_MAX), 1);
    assert_int_equal(shmt_ids_find(&ids, 0), 2);
    assert_int_equal(shmt_ids_find(&ids, UINT64_C(1) << 32), 4);
    assert_int_equal(shmt_ids_find(&ids, 2), UINT32_MAX);
    shmt_ids_free(&ids);
}

static void joined_sets_ascend_and_every_id_is_found(void **state) {
    (void)state;
    enum { SETS = 3, EACH = 20000 };
    struct shmt_ids set[SETS] = {0}, all;
    struct shmt_error e = {0};
    for (uint32_t s = 0; s < SETS; s++)
        for (uint32_t i = 0; i < EACH; i++) shmt_ids_add(&set[s], i % 3 ? draw() : draw() % 5000);
    assert_int_equal(shmt_ids_join(set, SETS, "t", &all, &e), 0);
    for (uint32_t i = 1; i < all.n; i++) assert_true(all.id[i - 1] < all.id[i]);
    for (uint32_t s = 0; s < SETS; s++) {
        for (uint32_t i = 0; i < set[s].n; i++) {
            const uint32_t n = shmt_ids_find(&all, set[s].id[i]);
            assert_true(n < all.n && all.id[n] == set[s].id[i]);
        }
    }
    for (uint32_t s = 0; s < SETS; s++) shmt_ids_free(&set[s]);
    shmt_ids_free(&all);
}

/* ---- joining by threads ---- */

enum { JOINERS = 3, PARTS = 7, JOINED = 5 };

struct joiner {
    struct shmt_ids_join join;
    int (*run)(struct shmt_ids_join *join, uint32_t part, struct shmt_error *e);
    uint32_t n_parts;
    _Atomic uint32_t next, failed;
};

static void *join_parts(void *arg) {
    struct joiner *j = arg;
    struct shmt_error e = {0};
    for (uint32_t part; (part = take_relaxed(&j->next, 1)) < j->n_parts;)
        if (j->run(&j->join, part, &e) != 0) store_relaxed(&j->failed, (uint32_t)-e.status);
    return NULL;
}

static void run_phase(struct joiner *j, int (*run)(struct shmt_ids_join *, uint32_t, struct shmt_error *), uint32_t n_parts) {
    pthread_t thread[JOINERS];
    j->run = run;
    j->n_parts = n_parts;
    store_relaxed(&j->next, 0);
    for (int t = 0; t < JOINERS; t++) assert_int_equal(pthread_create(&thread[t], NULL, join_parts, j), 0);
    for (int t = 0; t < JOINERS; t++) assert_int_equal(pthread_join(thread[t], NULL), 0);
}

/* Sets of `kind`: all alike, apart, one empty, all empty, of one id. */
static void gather(struct shmt_ids *set, int kind) {
    static const uint64_t FROM[] = {0, UINT64_C(1) << 40, 0, 0, 0}, RANGE[] = {3000, 9000, 90000, 1, 1};
    for (uint32_t s = 0; s < JOINED; s++) {
        const uint32_t n = kind == 3 || (kind == 2 && s == 1) ? 0 : 20000;
        for (uint32_t i = 0; i < n; i++) shmt_ids_add(&set[s], s * FROM[kind] + draw() % RANGE[kind]);
    }
    if (kind < 3) shmt_ids_add(&set[2], UINT64_MAX);
}

static void threads_join_what_one_thread_joins(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct shmt_ids set[JOINED] = {0}, again[JOINED] = {0}, all;
        struct joiner j = {.join = {.set = set, .n_sets = JOINED, .n_parts = PARTS, .name = "t"}};
        struct shmt_error e = {0};
        const uint64_t seed = rng;
        gather(set, kind);
        rng = seed;
        gather(again, kind);
        assert_int_equal(shmt_ids_join(again, JOINED, "t", &all, &e), 0);
        run_phase(&j, shmt_ids_join_sort, JOINED);
        assert_int_equal(shmt_ids_join_cut(&j.join, &e), 0);
        run_phase(&j, shmt_ids_join_merge, PARTS);
        assert_int_equal(shmt_ids_join_close(&j.join, &e), 0);
        run_phase(&j, shmt_ids_join_number, PARTS);
        shmt_ids_join_end(&j.join);
        assert_int_equal(load_relaxed(&j.failed), 0);
        assert_int_equal(j.join.out.n, all.n);
        if (all.n > 0) assert_memory_equal(j.join.out.id, all.id, all.n * sizeof *all.id);
        for (uint32_t i = 0; i < all.n; i++) assert_int_equal(shmt_ids_find(&j.join.out, all.id[i]), i);
        assert_int_equal(shmt_ids_find(&j.join.out, UINT64_MAX - 1), UINT32_MAX);
        for (uint32_t s = 0; s < JOINED; s++) shmt_ids_free(&set[s]);
        for (uint32_t s = 0; s < JOINED; s++) shmt_ids_free(&again[s]);
        shmt_ids_free(&j.join.out);
        shmt_ids_free(&all);
    }
}

static void a_stop_ends_joining_in_each_phase(void **state) {
    (void)state;
    _Atomic uint32_t stop = 1;
    for (int phase = 0; phase < 3; phase++) {
        struct shmt_ids set[2] = {0};
        struct shmt_ids_join join = {.set = set, .n_sets = 2, .n_parts = 1, .name = "t"};
        struct shmt_error e = {0};
        for (uint32_t i = 0; i < 1000; i++) shmt_ids_add(&set[i % 2], draw());
        if (phase == 0) join.stop = &stop;
        assert_int_equal(shmt_ids_join_sort(&join, 0, &e), phase == 0 ? SHMTRAIN_E_STOPPED : 0);
        if (phase > 0) assert_int_equal(shmt_ids_join_sort(&join, 1, &e), 0);
        if (phase > 0) assert_int_equal(shmt_ids_join_cut(&join, &e), 0);
        if (phase == 1) join.stop = &stop;
        if (phase > 0) assert_int_equal(shmt_ids_join_merge(&join, 0, &e), phase == 1 ? SHMTRAIN_E_STOPPED : 0);
        if (phase == 2) assert_int_equal(shmt_ids_join_close(&join, &e), 0);
        join.stop = &stop;
        if (phase == 2) assert_int_equal(shmt_ids_join_number(&join, 0, &e), SHMTRAIN_E_STOPPED);
        shmt_ids_join_end(&join);
        shmt_ids_free(&join.out);
        shmt_ids_free(&set[0]);
        shmt_ids_free(&set[1]);
    }
}

static void a_list_that_does_not_ascend_is_refused(void **state) {
    (void)state;
    static const uint64_t twice[] = {1, 2, 2, 3}, back[] = {1, 3, 2};
    struct shmt_ids ids;
    struct shmt_error e = {0};
    assert_int_equal(shmt_ids_take(twice, 4, &ids, &e), SHMTRAIN_E_DATA);
    assert_int_equal(shmt_ids_take(back, 3, &ids, &e), SHMTRAIN_E_DATA);
    assert_int_equal(shmt_ids_take(NULL, 0, &ids, &e), 0);
    assert_int_equal(shmt_ids_find(&ids, 0), UINT32_MAX);
    shmt_ids_free(&ids);
}

static void a_range_leaves_out_what_lies_beside_it(void **state) {
    (void)state;
    static const uint64_t id[] = {0, 3, 5, UINT64_C(1) << 32 | 4, UINT64_MAX};
    const struct shmt_columns columns = COLUMNS(3, 3);
    uint32_t column[5];
    float value[] = {1, 2, 3, 4, 5};
    assert_int_equal(shmt_columns_place(&columns, id, 5, column, value), 2);
    assert_int_equal(column[0], 0);
    assert_int_equal(column[1], 2);
    assert_true(value[0] == 2 && value[1] == 3);
}

/* Ids of the same hash are one column, whose values are added; a row's columns ascend as ever. */
static void hashed_columns_ascend_and_add_what_falls_together(void **state) {
    (void)state;
    enum { N = 300, BITS = 7 };
    const struct shmt_columns columns = {.n_features = 1 << BITS, .hash_bits = BITS};
    double sum[1 << BITS] = {0};
    uint64_t id[N];
    uint32_t column[N];
    float value[N];
    for (uint32_t i = 0; i < N; i++) {
        id[i] = (i > 0 ? id[i - 1] : 0) + 1 + draw() % 1000;
        value[i] = (float)(draw() % 16) + 1;
        const uint32_t c = shmt_column_of_id(&columns, id[i]);
        assert_true(c < 1 << BITS);
        sum[c] += (double)value[i];
    }
    const uint64_t n = shmt_columns_place(&columns, id, N, column, value);
    uint64_t used = 0;
    for (uint32_t c = 0; c < 1 << BITS; c++) used += sum[c] > 0;
    assert_int_equal(n, used);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(i == 0 || column[i - 1] < column[i]);
        assert_true((double)value[i] == sum[column[i]]);
    }
}

static void values_that_add_up_to_nothing_are_no_nonzeros(void **state) {
    (void)state;
    const struct shmt_columns columns = {.n_features = 2, .hash_bits = 1};
    uint64_t id[2] = {1, 2};
    while (shmt_column_of_id(&columns, id[1]) != shmt_column_of_id(&columns, id[0])) id[1]++;
    uint32_t column[2];
    float none[2] = {2, -2}, most[2] = {3e38f, 3e38f};
    assert_int_equal(shmt_columns_place(&columns, id, 2, column, none), 0);
    assert_int_equal(shmt_columns_place(&columns, id, 2, column, most), 1);
    assert_true(most[0] > 3.3e38f && most[0] <= 3.4028235e38f); /* no infinity */
}

/* From the first id on that takes more than 32 bits, a buffer keeps 64 of each. */
static void a_row_buffer_keeps_ids_of_any_size(void **state) {
    (void)state;
    struct shmt_row_buffer buffer = {.most_bytes = UINT64_MAX, .gathers = true};
    struct shmt_part part = {.n_examples = 3};
    struct shmt_error e = {0};
    const uint64_t id[3][2] = {{1, 4}, {4, UINT64_MAX - 1}, {2, 9}};
    const float value[2] = {1, 0.5f};
    for (uint32_t i = 0; i < 3; i++) shmt_row_buffer_add(&buffer, (float)i, id[i], value, 2);
    part.buffered_nonzeros = 6;
    assert_true(buffer.wide);
    assert_int_equal(buffer.ids.n, 5);
    struct shmt_ids list;
    assert_int_equal(shmt_ids_join(&buffer.ids, 1, "t", &list, &e), 0);
    const struct shmt_columns columns = {.n_features = list.n, .ids = &list};
    assert_int_equal(shmt_row_buffer_recount(&buffer, &columns, &part, &e), 0);
    assert_int_equal(part.n_nonzeros, 6);
    uint64_t start[4];
    uint32_t column[6];
    float filled[6], label[3];
    const struct shmt_arrays into = {.start = start, .id = column, .value = filled, .label = label, .columns = columns};
    assert_int_equal(shmt_row_buffer_fill(&buffer, &part, 0, 1, &into, &e), 0);
    static const uint32_t expected[6] = {0, 2, 2, 4, 1, 3};
    assert_memory_equal(column, expected, sizeof expected);
    assert_int_equal(start[3], 6);
    shmt_ids_free(&list);
    shmt_ids_free(&buffer.ids);
    shmt_row_buffer_free(&buffer);
}

/* Models keep their number of bits, and whoever reads them computes the same: see docs/models.md, "The model file". */
static void hashes_are_what_they_have_always_been(void **state) {
    (void)state;
    const struct shmt_columns columns = {.n_features = UINT32_C(1) << 31, .hash_bits = 31};
    assert_int_equal(shmt_column_of_id(&columns, 0), 0xe220a8397b1dcdafu >> 33);
    assert_int_equal(shmt_column_of_id(&columns, 1), 0x910a2dec89025cc1u >> 33);
}

static void tables_that_would_be_mostly_empty_are_told(void **state) {
    (void)state;
    assert_false(shmt_ids_are_far_apart(1 << 20, 10));           /* small, whatever is in it */
    assert_false(shmt_ids_are_far_apart(1 << 26, 1 << 24));      /* one nonzero for four rows */
    assert_true(shmt_ids_are_far_apart((1 << 26) + 4, 1 << 24)); /* and less */
    assert_true(shmt_ids_are_far_apart(UINT32_MAX, UINT64_MAX)); /* no table has so many */
}

static void dense_rows_that_would_be_mostly_empty_are_told(void **state) {
    (void)state;
    assert_false(shmt_ids_may_be_few(1 << 10, 1 << 20, 1)); /* small, whatever is in it */
    assert_false(shmt_ids_may_be_few(1 << 12, 100, 100 << 10));
    assert_true(shmt_ids_may_be_few(1 << 12, 100, (100 << 10) - 1));
    assert_true(shmt_ids_may_be_few(UINT64_MAX, UINT32_MAX, UINT64_MAX));
    assert_true(shmt_ids_are_few(1023, 1 << 12));
    assert_false(shmt_ids_are_few(1024, 1 << 12));
    assert_false(shmt_ids_are_few(0, 1 << 12)); /* nothing to list */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_numbers_each_id_once_in_the_order_they_came),
        cmocka_unit_test(joined_sets_ascend_and_every_id_is_found),
        cmocka_unit_test(threads_join_what_one_thread_joins),
        cmocka_unit_test(a_stop_ends_joining_in_each_phase),
        cmocka_unit_test(a_list_that_does_not_ascend_is_refused),
        cmocka_unit_test(a_range_leaves_out_what_lies_beside_it),
        cmocka_unit_test(hashed_columns_ascend_and_add_what_falls_together),
        cmocka_unit_test(values_that_add_up_to_nothing_are_no_nonzeros),
        cmocka_unit_test(a_row_buffer_keeps_ids_of_any_size),
        cmocka_unit_test(hashes_are_what_they_have_always_been),
        cmocka_unit_test(tables_that_would_be_mostly_empty_are_told),
        cmocka_unit_test(dense_rows_that_would_be_mostly_empty_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
