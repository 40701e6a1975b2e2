/* Tests of rows that are kept from counting to filling: what they become is what reading again gives, bit by bit. */
#include "data_file.h"

#include "data/row_buffer.h"

#define BUFFERS 3

static const struct shmt_columns ALL = SHMT_ALL_COLUMNS;

static uint64_t rng = 1;

static uint32_t below(uint32_t n) {
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

/* Rows of all lengths, none included, with ids below 300. */
static void write_rows(uint32_t n, bool ones) {
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    for (uint32_t i = 0; i < n; i++) {
        fprintf(f, "%d", (int)below(3) - 1);
        for (uint32_t id = below(40); id < 300; id += 1 + below(60)) {
            if (ones)
                fprintf(f, " %u:1", id);
            else
                fprintf(f, " %u:%g", id, (double)below(2000) / 100 - 10);
        }
        fprintf(f, "\n%s", below(5) ? "" : "# a comment\n");
    }
    assert_int_equal(fclose(f), 0);
}

static struct shmt_source *open_file(void) {
    struct shmt_source *source;
    struct shmt_error e = {0};
    assert_int_equal(shmt_source_open(g_path, 1, 0, &source, &e), 0);
    return source;
}

/* Counts with as many buffers as there are readers, parts in any order. */
static void count_into(struct shmt_row_buffer *buffer, const struct shmt_source *source, uint32_t n_parts, struct loaded *l) {
    memset(l, 0, sizeof *l);
    for (uint32_t r = 0; r < BUFFERS; r++) buffer[r] = (struct shmt_row_buffer){.number = r, .most_bytes = UINT64_MAX};
    for (uint32_t i = n_parts; i-- > 0;) shmt_source_count(source, &ALL, i, n_parts, &buffer[below(BUFFERS)], &l->part[i]);
    assert_int_equal(shmt_parts_total(source, l->part, n_parts, &l->totals, &l->error), 0);
}

static void fill_from(const struct shmt_row_buffer *buffer, uint32_t n_parts, struct loaded *l) {
    for (uint32_t i = 0; i < n_parts; i++)
        assert_int_equal(shmt_row_buffer_fill(buffer, l->part, i, n_parts, &l->arrays, &l->error), 0);
}

static void free_buffers(struct shmt_row_buffer *buffer) {
    for (uint32_t r = 0; r < BUFFERS; r++) shmt_row_buffer_free(&buffer[r]);
}

static void assert_same_rows(bool ones, uint32_t n_parts) {
    struct shmt_row_buffer buffer[BUFFERS];
    struct loaded read, buffered;
    write_rows(200, ones);
    struct shmt_source *source = open_file();
    assert_true(shmt_source_fills_buffers(source));
    assert_int_equal(load_source(&read, source, n_parts, ALL), 0);
    count_into(buffer, source, n_parts, &buffered);
    load_allocate(&buffered, ALL);
    fill_from(buffer, n_parts, &buffered);
    assert_same_data(&read, &buffered);
    free_buffers(buffer);
    load_free(&read);
    load_free(&buffered);
    shmt_source_close(source);
}

static void rows_are_those_that_reading_again_gives(void **state) {
    (void)state;
    for (uint32_t n_parts = 1; n_parts <= 20; n_parts++) {
        assert_same_rows(false, n_parts);
        assert_same_rows(true, n_parts);
    }
}

/* Other columns than those that were counted first: from 1 on, or not all. */
static void assert_recounted(struct shmt_columns columns, bool dense) {
    struct shmt_row_buffer buffer[BUFFERS];
    struct loaded read, buffered;
    write_rows(100, false);
    struct shmt_source *source = open_file();
    assert_int_equal(load_count(&read, source, 7, columns), 0);
    count_into(buffer, source, 7, &buffered);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(
            shmt_row_buffer_recount(&buffer[buffered.part[i].buffer], &columns, &buffered.part[i], &buffered.error), 0);
    assert_int_equal(shmt_parts_total(source, buffered.part, 7, &buffered.totals, &buffered.error), 0);
    assert_memory_equal(&buffered.totals, &read.totals, sizeof read.totals);
    for (struct loaded *l = &read; l; l = l == &read ? &buffered : NULL)
        if (dense)
            load_allocate_dense(l, columns);
        else
            load_allocate(l, columns);
    assert_int_equal(load_fill(&read, source, 7), 0);
    fill_from(buffer, 7, &buffered);
    if (dense)
        assert_memory_equal(buffered.arrays.dense, read.arrays.dense,
                            read.totals.n_examples * columns.n_features * sizeof(float));
    else
        assert_same_data(&read, &buffered);
    free_buffers(buffer);
    load_free(&read);
    load_free(&buffered);
    shmt_source_close(source);
}

static void columns_may_be_others_than_those_that_were_counted(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        assert_recounted(COLUMNS(1, 300), false);
        assert_recounted(COLUMNS(0, 120), false);
        assert_recounted(COLUMNS(30, 50), false);
        assert_recounted(COLUMNS(0, 0), false);
        assert_recounted(COLUMNS(0, 300), true);
        assert_recounted(COLUMNS(30, 50), true);
    }
}

static void values_are_kept_from_the_first_one_on_that_is_not_1(void **state) {
    (void)state;
    struct shmt_row_buffer buffer = {.most_bytes = UINT64_MAX};
    const uint64_t id[3] = {4, 5, 9};
    const float one[3] = {1, 1, 1}, other[3] = {1, 0.5f, 1};
    shmt_row_buffer_add(&buffer, 1, id, one, 3);
    assert_null(buffer.value.base);
    shmt_row_buffer_add(&buffer, -1, id, other, 3);
    assert_true(buffer.has_values);
    assert_memory_equal(buffer.value.base, one, sizeof one);
    assert_memory_equal(buffer.value.base + sizeof one, other, sizeof other);
    shmt_row_buffer_free(&buffer);
}

/* Larger than any one mapping begins with, so it has grown, and moved. */
static void a_row_buffer_grows_and_keeps_its_rows(void **state) {
    (void)state;
    struct shmt_row_buffer buffer = {.most_bytes = UINT64_MAX};
    enum { ROWS = 700000, EACH = 3 };
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint64_t id[EACH] = {i, i + 1, i + 2};
        const float value[EACH] = {(float)i, 1, 2};
        shmt_row_buffer_add(&buffer, (float)i, id, value, EACH);
    }
    assert_false(buffer.given_up);
    assert_int_equal(buffer.n_nonzeros, ROWS * EACH);
    for (uint32_t i = 0; i < ROWS; i += 999) {
        uint32_t id;
        memcpy(&id, buffer.id.base + (uint64_t)i * EACH * sizeof id, sizeof id);
        assert_int_equal(id, i);
    }
    shmt_row_buffer_free(&buffer);
}

static void a_row_buffer_that_would_become_too_large_gives_up_and_its_memory_back(void **state) {
    (void)state;
    struct shmt_row_buffer buffer = {.most_bytes = (uint64_t)16 << 20};
    const uint64_t id[1] = {1};
    const float value[1] = {0.5f};
    for (uint32_t i = 0; i < 3000000 && !buffer.given_up; i++) shmt_row_buffer_add(&buffer, 1, id, value, 1);
    assert_true(buffer.given_up);
    assert_null(buffer.id.base);
    shmt_row_buffer_add(&buffer, 1, id, value, 1); /* and stays so */
    assert_int_equal(buffer.n_examples, 0);
    shmt_row_buffer_free(&buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_that_reading_again_gives),
        cmocka_unit_test(columns_may_be_others_than_those_that_were_counted),
        cmocka_unit_test(values_are_kept_from_the_first_one_on_that_is_not_1),
        cmocka_unit_test(a_row_buffer_grows_and_keeps_its_rows),
        cmocka_unit_test(a_row_buffer_that_would_become_too_large_gives_up_and_its_memory_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
