/* The dense layout: the same examples as in sparse rows, from every source, in any number of parts. */
#include "data_file.h"

/* Counts and fills in the dense layout. */
static void load_dense(struct loaded *l, const char *name, uint32_t n_parts, struct shmt_columns columns) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_source_open(name, 3, false, &source, &l->error), 0);
    assert_int_equal(load_count(l, source, n_parts, columns), 0);
    load_allocate_dense(l, columns);
    const int status = load_fill(l, source, n_parts);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
    shmt_source_close(source);
}

static void load_sparse(struct loaded *l, const char *name, struct shmt_columns columns) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_source_open(name, 3, false, &source, &l->error), 0);
    assert_int_equal(load_source(l, source, 1, columns), 0);
    shmt_source_close(source);
}

/* Every element of the dense rows against the sparse ones. */
static void assert_same_examples(const struct loaded *sparse, const struct loaded *dense) {
    const uint64_t n_features = dense->arrays.columns.n_features;
    assert_memory_equal(&sparse->totals, &dense->totals, sizeof sparse->totals);
    for (uint64_t i = 0, nonzero = 0; i < sparse->totals.n_examples; i++) {
        assert_true(sparse->arrays.label[i] == dense->arrays.label[i]);
        for (uint64_t j = 0; j < n_features; j++) {
            const bool here = nonzero < sparse->arrays.start[i + 1] && sparse->arrays.id[nonzero] == j;
            const float expected = !here ? 0 : sparse->arrays.value ? sparse->arrays.value[nonzero] : 1;
            nonzero += here;
            assert_true(dense->arrays.dense[i * n_features + j] == expected);
        }
        assert_int_equal(nonzero, sparse->arrays.start[i + 1]);
    }
}

static void both_layouts_hold_the_same_examples(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        struct shmt_columns columns[3]; /* all of them, then fewer */
    } cases[] = {
        {"t.svm", "1 1:0.5 3:-2 5:3\n-1 2:1e3 4:0\n\n2\n3 5:7\n", {COLUMNS(1, 5), COLUMNS(2, 2), COLUMNS(0, 6)}},
        {"t.svm", "1 1:1 3:1\n-1 2:1\n", {COLUMNS(1, 3), COLUMNS(1, 1), COLUMNS(0, 9)}},
        {"builtin:sparse:examples=100,features=300,nonzeros=20", "", {COLUMNS(0, 300), COLUMNS(0, 150), COLUMNS(1, 299)}},
        {"builtin:dense:examples=40,features=7,classes=3", "", {COLUMNS(0, 7), COLUMNS(3, 2), COLUMNS(1, 100)}},
        {"builtin:digits:examples=20", "", {COLUMNS(0, 784), COLUMNS(300, 200), COLUMNS(1, 1000)}},
        {"builtin:line:examples=50", "", {COLUMNS(0, 1), COLUMNS(0, 3), COLUMNS(1, 2)}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].text);
        for (uint32_t c = 0; c < 3; c++) {
            struct loaded sparse, dense;
            load_sparse(&sparse, cases[i].name, cases[i].columns[c]);
            for (uint32_t parts = 1; parts <= 7; parts++) {
                load_dense(&dense, cases[i].name, parts, cases[i].columns[c]);
                assert_same_examples(&sparse, &dense);
                load_free(&dense);
            }
            load_free(&sparse);
        }
    }
}

static void examples_without_columns_have_rows_of_nothing(void **state) {
    (void)state;
    write_text("1\n2\n3\n");
    struct loaded l;
    load_dense(&l, g_path, 2, COLUMNS(1, 0));
    assert_int_equal(l.totals.n_nonzeros, 0);
    assert_true(l.arrays.label[0] == 1 && l.arrays.label[1] == 2 && l.arrays.label[2] == 3);
    load_free(&l);
}

/* Fill is held to what was counted, in this layout, too; what is no longer all ones is no harm here. */
static void a_file_that_changed_since_it_was_counted_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *after;
        int status;
    } cases[] = {{"1 1:1 2:1\n-1 3:2\n1 4:1\n", 0},
                 {"1 1:1 2:1\n-1    \n1 4:1\n", SHMTRAIN_E_DATA},
                 {"1 1:1    \n1\n2\n3\n4\n1  \n", SHMTRAIN_E_DATA},
                 {"1 1:1 2:1\n2 9:1\n1 4:1\n", SHMTRAIN_E_DATA}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shmt_source *source;
        struct loaded l;
        write_text("1 1:1 2:1\n-1 3:1\n1 4:1\n");
        assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
        assert_int_equal(load_count(&l, source, 2, COLUMNS(1, 4)), 0);
        load_allocate_dense(&l, COLUMNS(1, 4));
        write_text(cases[i].after);
        assert_int_equal(load_fill(&l, source, 2), cases[i].status);
        if (cases[i].status != 0) assert_string_equal(l.error.text, "t.svm changed while it was being read");
        load_free(&l);
        shmt_source_close(source);
    }
}

/* ---- guesses ---- */

static uint64_t guess(const char *name) {
    struct shmt_source *source;
    assert_int_equal(shmt_source_open(name, 1, false, &source, NULL), 0);
    const uint64_t bytes = shmt_source_guess_bytes(source, true);
    shmt_source_close(source);
    return bytes;
}

static void generators_know_their_size(void **state) {
    (void)state;
    assert_int_equal(guess("builtin:sparse:examples=1000,features=500,nonzeros=10"), 1000 * 501 * 4);
    assert_int_equal(guess("builtin:dense:examples=1000,features=30"), 1000 * 31 * 4);
    assert_int_equal(guess("builtin:line:examples=1000"), 1000 * 2 * 4);
    assert_int_equal(guess("builtin:digits:examples=1000"), 1000 * 785 * 4);
}

static void a_text_is_guessed_by_its_lines_and_its_largest_id(void **state) {
    (void)state;
    write_text("1 1:1 30:2 # 500:3\n-1 qid:7 2:1 40:1\n");
    assert_int_equal(guess(g_path), 2 * 41 * 4);
    write_text("1 0:1 30:2\n"); /* ids from 0 on need one column more */
    assert_int_equal(guess(g_path), 1 * 32 * 4);
    write_text("1 4294967294:1\n1 1:1\n");
    assert_int_equal(guess(g_path), 2 * 2 * 4); /* ids that are far apart are listed, and nobody knows yet how many there are */
    write_text("1 99999999999999999999999999:1\n"); /* no id: reading it will be an error with its place */
    assert_int_equal(guess(g_path), 1 * 2 * 4);
}

/* A guess must not refuse what fits: of a file whose first line goes beyond the sample, nothing is guessed. */
static void long_lines_are_not_guessed_too_large(void **state) {
    (void)state;
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    fprintf(f, "1");
    for (uint32_t j = 1; j <= 100000; j++) fprintf(f, " %u:0.5", j);
    fprintf(f, "\n1 1:1\n");
    assert_int_equal(fclose(f), 0);
    assert_true(guess(g_path) <= 2 * (uint64_t)100001 * 4);
}

static void no_guess_wraps_around(void **state) {
    (void)state;
    assert_int_equal(guess("builtin:sparse:examples=4294967295,features=10000000,nonzeros=1"),
                     (uint64_t)(4294967295.0 * 10000001 * 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_layouts_hold_the_same_examples),
        cmocka_unit_test(examples_without_columns_have_rows_of_nothing),
        cmocka_unit_test(a_file_that_changed_since_it_was_counted_is_refused),
        cmocka_unit_test(generators_know_their_size),
        cmocka_unit_test(a_text_is_guessed_by_its_lines_and_its_largest_id),
        cmocka_unit_test(long_lines_are_not_guessed_too_large),
        cmocka_unit_test(no_guess_wraps_around),
    };
    return cmocka_run_group_tests_name("dense layout", tests, make_folder, remove_folder);
}
