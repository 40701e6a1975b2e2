/* Tests of files without a byte: alone they are refused, among others they add nothing, and a sentence says so. */
#include "text_streams.h"

#define EMPTY  "empty"
#define NONE   "none.gz" /* nothing, packed */
#define TEXT   "1 1:1\n-1 2:5\n"
#define N_TEXT (sizeof TEXT - 1)

static int make_files(void **state) {
    if (make_text(state) != 0) return -1;
    save(EMPTY, "", 0);
    if (!pack("gzip", NONE, "", 0)) return -1;
    save(OTHER, TEXT, N_TEXT);
    return 0;
}

static int free_files(void **state) {
    unlink(EMPTY);
    unlink(NONE);
    return free_text(state);
}

/* As the text alone, and `sentence` is said. */
static void assert_adds_nothing(const char *names, const char *sentence) {
    struct loaded l, plain;
    char line[600] = "";
    struct shmt_source *source = open_source(names);
    struct pass pass = {.buffered = true};
    write_bytes(TEXT, N_TEXT);
    assert_loads(&plain, 1);
    const int rc = count_all(&pass, source, &l);
    assert_string_equal(l.error.text, "");
    assert_int_equal(rc, 0);
    assert_true(shmt_parts_empty(source, pass.part, pass.n_parts, line, sizeof line));
    assert_string_equal(line, sentence);
    assert_int_equal(fill_all(&pass, source, &l), 0);
    assert_same_but_places(&plain, &l);
    load_free(&l);
    load_free(&plain);
    end(&pass);
    shmt_source_close(source);
}

static void an_empty_file_among_others_adds_nothing(void **state) {
    (void)state;
    assert_adds_nothing("empty\nu.svm", "empty is empty and adds no examples");
    assert_adds_nothing("u.svm\nempty", "empty is empty and adds no examples");
    assert_adds_nothing("none.gz\nu.svm", "none.gz is empty and adds no examples");
    assert_adds_nothing("/dev/null\nu.svm", "/dev/null is empty and adds no examples");
    assert_adds_nothing("u.svm\nempty\nnone.gz",
                        "empty and 1 other of 3 files (u.svm, empty, ...) are empty and add no examples");
    assert_adds_nothing("none.gz\nempty\nempty\nu.svm",
                        "none.gz and 2 others of 4 files (none.gz, empty, ...) are empty and add no examples");
}

static void files_that_are_not_empty_are_not_called_so(void **state) {
    (void)state;
    struct loaded l;
    char line[600];
    save(PACKED, "# a comment\n", 12);
    struct shmt_source *source = open_source("u.svm\nt.packed");
    struct pass pass = {.buffered = true};
    assert_int_equal(count_all(&pass, source, &l), 0);
    assert_false(shmt_parts_empty(source, pass.part, pass.n_parts, line, sizeof line));
    end(&pass);
    shmt_source_close(source);
}

static void nothing_but_empty_files_is_refused(void **state) {
    (void)state;
    struct shmt_source *source;
    struct shmt_error e = {0};
    assert_fails("empty\nnone.gz", SHMTRAIN_E_DATA, "all of 2 files (empty, none.gz) are empty");
    assert_fails("/dev/null\nempty", SHMTRAIN_E_DATA, "all of 2 files (/dev/null, empty) are empty");
    assert_fails("/dev/null", SHMTRAIN_E_DATA, "/dev/null is empty");
    assert_int_equal(shmt_source_open("empty", 1, 0, &source, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "empty is empty");
    e = (struct shmt_error){0};
    assert_int_equal(shmt_source_open("none.gz", 1, 0, &source, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "none.gz is empty");
}

/* How a table is read is found out by the first file that has a line. */
static void a_table_is_planned_by_a_file_that_is_not_empty(void **state) {
    (void)state;
    static const char TABLE[] = "label,a,b\n0,1,2\n1,3,4\n0,5,6\n";
    static const char *const LISTS[] = {"none.gz\n" OTHER, PIPE "\n" OTHER, "none.gz\n/dev/null\n" PIPE};
    save(OTHER, TABLE, sizeof TABLE - 1);
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        const struct shmt_source_wish wish = {.name = LISTS[i], .seed = 1, .format = "csv"};
        struct writer writer = {PIPE, TABLE, i == 2 ? sizeof TABLE - 1 : 0};
        struct shmt_source *source = NULL;
        struct pass pass = {.buffered = true};
        struct loaded l = {0};
        pthread_t thread;
        unlink(PIPE);
        assert_int_equal(mkfifo(PIPE, 0600), 0);
        assert_int_equal(shmt_source_open_as(&wish, &source, &l.error), 0);
        if (i > 0) assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
        const int rc = count_all(&pass, source, &l);
        assert_string_equal(l.error.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(l.totals.n_examples, 3);
        assert_int_equal(l.totals.n_nonzeros, 6);
        if (i > 0) assert_int_equal(pthread_join(thread, NULL), 0);
        end(&pass);
        shmt_source_close(source);
    }
    save(OTHER, TEXT, N_TEXT);
}

/* A file that is cut off in its first bytes is not taken for one of nothing. */
static void what_is_cut_off_is_not_empty(void **state) {
    (void)state;
    static const char *const FILTERS[] = {"gzip", "bzip2", "xz", "zstd", "lz4"};
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        for (int nothing = 0; nothing < 2; nothing++) {
            struct stat s;
            if (nothing && strcmp(FILTERS[i], "lz4") == 0) continue; /* libarchive's writer reads a null pointer then */
            if (!pack(FILTERS[i], PACKED, TEXT, nothing ? 0 : N_TEXT)) continue;
            assert_int_equal(stat(PACKED, &s), 0);
            for (off_t n = s.st_size - 1; n > 0; n--) {
                struct loaded l;
                assert_int_equal(truncate(PACKED, n), 0);
                if (load_all("u.svm\n" PACKED, true, &l) == 0)
                    fail_msg("%s, %s: %d of %d bytes were taken", FILTERS[i], nothing ? "nothing" : "text", (int)n,
                             (int)s.st_size);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_among_others_adds_nothing),
        cmocka_unit_test(files_that_are_not_empty_are_not_called_so),
        cmocka_unit_test(nothing_but_empty_files_is_refused),
        cmocka_unit_test(a_table_is_planned_by_a_file_that_is_not_empty),
        cmocka_unit_test(what_is_cut_off_is_not_empty),
    };
    return cmocka_run_group_tests_name("empty files", tests, make_files, free_files);
}
