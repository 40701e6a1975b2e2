/* Tests of packed text. */
#include "text_streams.h"

static void packed_text_is_what_the_text_is(void **state) {
    (void)state;
    static const char *const FILTERS[] = {"gzip", "bzip2", "xz", "zstd", "lz4", "compress"};
    struct loaded plain;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 7);
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        if (!pack(FILTERS[i], PACKED, g_text, g_bytes)) continue;
        assert_same_as_text(PACKED, true, &plain);
        assert_same_as_text(PACKED, false, &plain);
    }
    load_free(&plain);
}

static void a_last_line_without_a_break_is_a_line(void **state) {
    (void)state;
    struct loaded plain;
    write_text("1 1:1\n-1 2:5");
    assert_loads(&plain, 2);
    assert_true(pack("gzip", PACKED, "1 1:1\n-1 2:5", 12));
    assert_same_as_text(PACKED, true, &plain);
    load_free(&plain);
}

static void a_line_may_be_longer_than_a_chunk(void **state) {
    (void)state;
    const uint64_t n = 3 << 20;
    char *text = malloc(n + 100);
    struct loaded l;
    assert_non_null(text);
    uint64_t at = (uint64_t)sprintf(text, "1 1:1\n-1 2:2 #");
    memset(text + at, 'x', n);
    at += n;
    at += (uint64_t)sprintf(text + at, "\n1 3:1\n1 4\n");
    assert_true(pack("gzip", PACKED, text, at - 4));
    assert_int_equal(load_all(PACKED, true, &l), 0);
    assert_int_equal(l.totals.n_examples, 3);
    load_free(&l);
    assert_true(pack("gzip", PACKED, text, at));
    assert_fails(PACKED, SHMTRAIN_E_DATA, "t.packed:4:3: expected \"index:value\", found \"4\"");
    free(text);
}

static void the_first_bad_line_is_named_by_its_number_in_the_text(void **state) {
    (void)state;
    char *text = malloc(g_bytes), sentence[200];
    assert_non_null(text);
    memcpy(text, g_text, g_bytes);
    for (uint64_t cut = 1; cut < 4; cut++) { /* the earliest one last, so each must be the first then */
        char *line = (char *)memrchr(text, '\n', g_bytes * (4 - cut) / 4) + 1;
        uint64_t number = 1;
        for (const char *p = text; p < line; p++) number += *p == '\n';
        if (*line == '#') continue;
        *line = 'x';
        char word[80];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(line, " "), line);
        snprintf(sentence, sizeof sentence, "t.packed:%llu:1: expected a label (a number), found \"%s\"",
                 (unsigned long long)number, word);
        assert_true(pack("gzip", PACKED, text, g_bytes));
        assert_fails(PACKED, SHMTRAIN_E_DATA, sentence);
    }
    free(text);
}

static void a_label_is_found_by_its_line(void **state) {
    (void)state;
    struct loaded l;
    char place[200];
    assert_true(pack("gzip", PACKED, "1 1:1\n\n-1 2:1\n7 1:1\n", 20));
    struct shmt_source *source = open_source(PACKED);
    struct pass pass = {.buffered = true};
    assert_int_equal(count_all(&pass, source, &l), 0);
    shmt_source_place(source, l.totals.labels.at[2], place, sizeof place);
    assert_string_equal(place, "t.packed:4");
    end(&pass);
    shmt_source_close(source);
}

static void archives_that_are_cut_off_or_changed_are_refused(void **state) {
    (void)state;
    static const char *const FILTERS[] = {"gzip", "bzip2", "xz", "zstd"};
    struct stat s;
    struct loaded l;
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        if (!pack(FILTERS[i], PACKED, g_text, g_bytes)) continue;
        assert_int_equal(stat(PACKED, &s), 0);
        assert_int_equal(truncate(PACKED, s.st_size * 3 / 4), 0);
        assert_int_equal(load_all(PACKED, true, &l), SHMTRAIN_E_DATA);
        assert_non_null(strstr(l.error.text, "t.packed is damaged: unpacking failed after byte "));
    }
    assert_true(pack("gzip", PACKED, g_text, g_bytes));
    assert_int_equal(stat(PACKED, &s), 0);
    FILE *f = fopen(PACKED, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, s.st_size - 8, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, s.st_size - 8, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
    assert_int_equal(fclose(f), 0);
    assert_fails(PACKED, SHMTRAIN_E_DATA, "t.packed is damaged: its checksum does not match its contents; get it again");
}

static void a_file_that_changes_between_the_passes_is_noticed(void **state) {
    (void)state;
    static const double SHARE[] = {0.5, 0.99999, 2};
    for (size_t i = 0; i < 3; i++) {
        struct loaded l;
        struct pass pass = {.buffered = false};
        const uint64_t n = (uint64_t)(SHARE[i] < 1 ? (double)g_bytes * SHARE[i] : (double)g_bytes);
        assert_true(pack("gzip", PACKED, g_text, SHARE[i] < 1 ? g_bytes : g_bytes / 2));
        struct shmt_source *source = open_source(PACKED);
        assert_int_equal(count_all(&pass, source, &l), 0);
        assert_true(pack("gzip", PACKED, g_text, n)); /* the same file, written anew */
        assert_int_equal(fill_all(&pass, source, &l), SHMTRAIN_E_DATA);
        assert_string_equal(l.error.text, "t.packed changed while it was being read");
        load_free(&l);
        end(&pass);
        shmt_source_close(source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_text_is_what_the_text_is),
        cmocka_unit_test(a_last_line_without_a_break_is_a_line),
        cmocka_unit_test(a_line_may_be_longer_than_a_chunk),
        cmocka_unit_test(the_first_bad_line_is_named_by_its_number_in_the_text),
        cmocka_unit_test(a_label_is_found_by_its_line),
        cmocka_unit_test(archives_that_are_cut_off_or_changed_are_refused),
        cmocka_unit_test(a_file_that_changes_between_the_passes_is_noticed),
    };
    return cmocka_run_group_tests_name("packed text", tests, make_text, free_text);
}
