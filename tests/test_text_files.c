/* Tests of text in several files, and of bad lines that are left out. */
#include "text_streams.h"

/* ---- several files ---- */

static void several_files_are_one_in_their_order(void **state) {
    (void)state;
    struct loaded plain;
    const char *first = (const char *)memrchr(g_text, '\n', g_bytes / 3) + 1;
    const char *second = (const char *)memrchr(g_text, '\n', g_bytes / 2) + 1;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 3);
    write_bytes(g_text, (uint64_t)(first - g_text));
    assert_true(pack("gzip", PACKED, first, (uint64_t)(second - first)));
    save(OTHER, second, g_bytes - (uint64_t)(second - g_text));
    assert_same_as_text("t.svm\n" PACKED "\n" OTHER, true, &plain);
    assert_same_as_text("t.svm\n" PACKED "\n" OTHER, false, &plain);
    load_free(&plain);
}

/* The second file is read while the first, a pipe, has nothing yet. */
static void rows_keep_their_order_when_a_later_file_comes_first(void **state) {
    (void)state;
    struct loaded plain;
    const char *half = (const char *)memrchr(g_text, '\n', g_bytes / 2) + 1;
    struct writer writer = {PIPE, g_text, (uint64_t)(half - g_text)};
    pthread_t thread;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 3);
    save(OTHER, half, g_bytes - writer.n);
    unlink(PIPE);
    assert_int_equal(mkfifo(PIPE, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
    assert_same_as_text(PIPE "\n" OTHER, true, &plain);
    assert_int_equal(pthread_join(thread, NULL), 0);
    load_free(&plain);
}

static void a_message_names_the_file(void **state) {
    (void)state;
    write_text("1 1:1\n");
    save(OTHER, "1 1:1\n\n1 x\n", 11);
    assert_true(pack("gzip", PACKED, "1 1:1\n1 y\n", 10));
    assert_fails("t.svm\nu.svm\nt.packed", SHMTRAIN_E_DATA, "u.svm:3:3: expected \"index:value\", found \"x\"");
    assert_fails("t.svm\nt.packed\nu.svm", SHMTRAIN_E_DATA, "t.packed:2:3: expected \"index:value\", found \"y\"");
    save(OTHER, "\n", 1);
    write_text("# nothing\n");
    assert_fails("t.svm\nu.svm", SHMTRAIN_E_DATA, "2 files (t.svm, u.svm) has no examples, only blank lines and comments");
}

static void what_cannot_be_one_of_several_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *names, *sentence;
        int status;
    } LISTS[] = {
        {"t.svm\nmissing", "cannot open missing: No such file or directory", SHMTRAIN_E_SYSTEM},
        {"t.svm\n/", "/ is a folder; name a file in it", SHMTRAIN_E_USAGE},
        {"t.svm\n", "cannot open : No such file or directory", SHMTRAIN_E_SYSTEM},
        {"t.svm\nbuiltin:line", "builtin:line is generated, but only text files can be combined: use this file alone",
         SHMTRAIN_E_USAGE},
        {"t.svm\nidx", "idx is an IDX file, but only text files can be combined: use this file alone", SHMTRAIN_E_USAGE},
    };
    write_text("1 1:1\n");
    save("idx", "\0\0\x08\x01\0\0\0\x01\x05", 9);
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        struct shmt_source *source;
        struct shmt_error e = {0};
        assert_int_equal(shmt_source_open(LISTS[i].names, 1, 0, &source, &e), LISTS[i].status);
        assert_string_equal(e.text, LISTS[i].sentence);
    }
    unlink("idx");
}

static void a_file_whose_name_has_a_line_break_is_one_file(void **state) {
    (void)state;
    struct loaded l;
    write_text("1 1:1\n");
    save("t.svm\nt.svm", "1 1:1\n1 2:1\n", 12);
    assert_int_equal(load_name(&l, "t.svm\nt.svm", 1, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 2);
    load_free(&l);
    unlink("t.svm\nt.svm");
}

/* ---- bad lines ---- */

static struct shmt_source *open_skipping(const char *name) {
    const struct shmt_source_wish wish = {.name = name, .seed = 1, .skip_bad_lines = true};
    struct shmt_source *source = NULL;
    assert_int_equal(shmt_source_open_as(&wish, &source, NULL), 0);
    return source;
}

static void bad_lines_are_left_out_and_counted(void **state) {
    (void)state;
    char line[2000];
    struct loaded good, l;
    char *text = malloc(2 * g_bytes);
    uint64_t n = 0;
    assert_non_null(text);
    for (const char *p = g_text, *stop; (stop = strchr(p, '\n')); p = stop + 1) {
        if ((p - g_text) % 50 == 7) n += (uint64_t)sprintf(text + n, "1 2:x\n");
        memcpy(text + n, p, (size_t)(stop - p) + 1);
        n += (uint64_t)(stop - p) + 1;
    }
    write_bytes(g_text, g_bytes);
    assert_loads(&good, 3);
    uint64_t n_bad = 0;
    for (const char *p = g_text, *stop; (stop = strchr(p, '\n')); p = stop + 1) n_bad += (p - g_text) % 50 == 7;
    assert_true(n_bad > 100);
    write_bytes(text, n);
    assert_true(pack("gzip", PACKED, text, n));
    for (uint32_t parts = 1; parts <= 9; parts += 4) { /* by reading twice */
        struct shmt_source *source = open_skipping(g_path);
        assert_int_equal(load_source(&l, source, parts, ALL), 0);
        assert_int_equal(l.totals.n_skipped, n_bad);
        l.totals.n_skipped = 0;
        assert_same_but_places(&good, &l);
        load_free(&l);
        shmt_source_close(source);
    }
    for (int buffered = 0; buffered < 2; buffered++) {
        struct shmt_source *source = open_skipping(PACKED);
        struct pass pass = {.buffered = buffered};
        assert_int_equal(count_all(&pass, source, &l), 0);
        shmt_parts_skipped(source, pass.part, pass.n_parts, line, sizeof line);
        assert_int_equal(fill_all(&pass, source, &l), 0);
        assert_int_equal(l.totals.n_skipped, n_bad);
        l.totals.n_skipped = 0;
        assert_same_but_places(&good, &l);
        load_free(&l);
        end(&pass);
        shmt_source_close(source);
    }
    char begin[80];
    snprintf(begin, sizeof begin, "skipped %llu bad lines of t.packed; the first: t.packed:", (unsigned long long)n_bad);
    assert_memory_equal(line, begin, strlen(begin));
    assert_non_null(strstr(line, ":5: expected a number after \"2:\", found \"x\""));
    load_free(&good);
    free(text);
}

static void where_all_lines_are_bad_nothing_is_left(void **state) {
    (void)state;
    struct loaded l;
    write_text("# no\nx\ny\n");
    struct shmt_source *source = open_skipping(g_path);
    assert_int_equal(load_count(&l, source, 2, ALL), SHMTRAIN_E_DATA);
    assert_string_equal(l.error.text,
                        "all lines of t.svm are bad; the first: t.svm:2:1: expected a label (a number), found \"x\"");
    shmt_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_files_are_one_in_their_order),
        cmocka_unit_test(rows_keep_their_order_when_a_later_file_comes_first),
        cmocka_unit_test(a_message_names_the_file),
        cmocka_unit_test(what_cannot_be_one_of_several_is_refused),
        cmocka_unit_test(a_file_whose_name_has_a_line_break_is_one_file),
        cmocka_unit_test(bad_lines_are_left_out_and_counted),
        cmocka_unit_test(where_all_lines_are_bad_nothing_is_left),
    };
    return cmocka_run_group_tests_name("text in several files", tests, make_text, free_text);
}
