/* The LIBSVM reader: what is accepted, and every refusal with its sentence. */
#include "data_file.h"

#include <math.h>
#include <sys/stat.h>

/* ---- what is accepted ---- */

static void labels_and_features_are_read(void **state) {
    (void)state;
    write_text("+1 1:0.5 3:-2e-1 10:3\n-1 2:1e3\n");
    struct loaded l;
    assert_loads(&l, 1);
    const uint64_t start[] = {0, 3, 4};
    const uint32_t id[] = {1, 3, 10, 2};
    const float value[] = {0.5f, -0.2f, 3, 1000}, label[] = {1, -1};
    assert_int_equal(l.totals.n_examples, 2);
    assert_int_equal(l.totals.n_nonzeros, 4);
    assert_memory_equal(l.arrays.start, start, sizeof start);
    assert_memory_equal(l.arrays.id, id, sizeof id);
    assert_memory_equal(l.arrays.value, value, sizeof value);
    assert_memory_equal(l.arrays.label, label, sizeof label);
    assert_int_equal(l.totals.min_id, 1);
    assert_int_equal(l.totals.max_id, 10);
    assert_false(l.totals.all_ones);
    assert_true(l.totals.label_low == -1 && l.totals.label_high == 1);
    load_free(&l);
}

/* Each of these texts is the same as "1 2:3 4:5" and "0". */
static void blanks_comments_and_query_ids_change_nothing(void **state) {
    (void)state;
    static const char *const same[] = {
        "1 2:3 4:5\n0\n",
        "1 2:3 4:5\n0",
        "1 2:3 4:5\r\n0\r\n",
        "1\t2:3\t \t4:5 \t\n\n   \n\t0   ",
        "  1 2:3 4:5\n 0\n\n\n",
        "# head\n1 2:3 4:5 # end\n  # middle\n0#\n#",
        "1 2:3 4:5#6:7\n0 # \001 \377 anything \"\n",
        "1 qid:3 2:3 4:5\n0 qid:12345678901234567890\n",
        "\r\n1 2:3 4:5\r\n\r\n0",
        "+1.0e+0 002:3.0 4:0.5E1\n-0 7:0 9:0.0e5\n",
    };
    write_text(same[0]);
    struct loaded first, other;
    assert_loads(&first, 1);
    for (size_t i = 1; i < sizeof same / sizeof *same; i++) {
        write_text(same[i]);
        assert_loads(&other, 2);
        assert_int_equal(other.totals.n_examples, 2);
        assert_memory_equal(first.arrays.start, other.arrays.start, 3 * sizeof(uint64_t));
        assert_memory_equal(first.arrays.id, other.arrays.id, 2 * sizeof(uint32_t));
        assert_memory_equal(first.arrays.value, other.arrays.value, 2 * sizeof(float));
        assert_true(other.arrays.label[0] == 1 && other.arrays.label[1] == 0);
        load_free(&other);
    }
    load_free(&first);
}

static void zeros_are_no_nonzeros_but_their_ids_count(void **state) {
    (void)state;
    write_text("1 0:0 3:1 7:1 9:-0.0\n1 2:1e-60\n");
    struct loaded l;
    assert_loads(&l, 2);
    assert_int_equal(l.totals.n_nonzeros, 2);
    assert_int_equal(l.arrays.id[0], 3);
    assert_int_equal(l.totals.min_id, 0);
    assert_int_equal(l.totals.max_id, 9);
    assert_true(l.totals.all_ones);
    assert_null(l.arrays.value);
    load_free(&l);
}

static void examples_may_have_no_feature_at_all(void **state) {
    (void)state;
    write_text("1\n2\n");
    struct loaded l;
    assert_loads(&l, 3);
    assert_int_equal(l.totals.n_examples, 2);
    assert_int_equal(l.totals.n_nonzeros, 0);
    assert_true(l.totals.min_id > l.totals.max_id);
    assert_int_equal(l.arrays.start[2], 0);
    load_free(&l);
}

static void distinct_labels_are_told_in_order_of_appearance_for_any_number_of_parts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t n;
        float label[4], ascending[4];
        const char *last_at;
    } cases[] = {
        {"5\n5\n5\n", 1, {5}, {5}, "t.svm:1"},
        {"2\n1\n2\n1\n", 2, {2, 1}, {1, 2}, "t.svm:2"},
        {"-0\n0\n", 1, {0}, {0}, "t.svm:1"},
        {"0\n1\n\n1\n0.5\n-7\n", 4, {0, 1, 0.5f, -7}, {-7, 0, 0.5f, 1}, "t.svm:6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t parts = 1; parts < 7; parts++) {
            write_text(cases[i].text);
            struct shmt_source *source;
            struct loaded l;
            char place[100];
            float ascending[SHMT_LABELS_KEPT];
            assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
            assert_int_equal(load_count(&l, source, parts, SHMT_ALL_COLUMNS), 0);
            const struct shmt_labels *labels = &l.totals.labels;
            assert_int_equal(labels->n, cases[i].n);
            shmt_labels_ascending(labels, ascending);
            for (uint32_t j = 0; j < cases[i].n; j++) {
                assert_true(labels->label[j] == cases[i].label[j]);
                assert_true(ascending[j] == cases[i].ascending[j]);
                assert_true(shmt_labels_have(labels, labels->label[j]));
            }
            assert_false(shmt_labels_have(labels, 100) || shmt_labels_have(labels, 0.25f) || shmt_labels_have(labels, -100));
            shmt_source_place(source, labels->at[cases[i].n - 1], place, sizeof place);
            assert_string_equal(place, cases[i].last_at);
            shmt_source_close(source);
        }
    }
}

/* 1,500 labels, each twice, the second time in another order: the first 1,025 of them are kept, and the place of each. */
static void labels_are_kept_up_to_one_more_than_classes_may_be(void **state) {
    (void)state;
    enum { N = 1500 };
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    for (uint32_t i = 0; i < N; i++) fprintf(f, "%u\n", i * 7 % N);
    for (uint32_t i = 0; i < N; i++) fprintf(f, "%u\n", i * 11 % N);
    assert_int_equal(fclose(f), 0);
    struct shmt_source *source;
    struct loaded one, many;
    char place[100];
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    assert_int_equal(load_count(&one, source, 1, SHMT_ALL_COLUMNS), 0);
    assert_int_equal(one.totals.labels.n, SHMTRAIN_MAX_CLASSES + 1);
    for (uint32_t i = 0; i < SHMT_LABELS_KEPT; i++) assert_true(one.totals.labels.label[i] == (float)(i * 7 % N));
    shmt_source_place(source, one.totals.labels.at[SHMTRAIN_MAX_CLASSES], place, sizeof place);
    assert_string_equal(place, "t.svm:1025");
    for (uint32_t parts = 2; parts <= MAX_PARTS; parts++) {
        assert_int_equal(load_count(&many, source, parts, SHMT_ALL_COLUMNS), 0);
        assert_memory_equal(&one.totals, &many.totals, sizeof one.totals);
    }
    shmt_source_close(source);
}

static void ids_outside_the_columns_are_left_out_when_counted_with_them(void **state) {
    (void)state;
    write_text("1 1:2 5:3 6:4\n-1 6:1 4000000000:1\n-1 4294967294:1\n");
    const struct shmt_columns columns = COLUMNS(1, 5);
    struct shmt_source *source;
    struct loaded l;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    assert_int_equal(load_source(&l, source, 2, columns), 0);
    shmt_source_close(source);
    const uint64_t start[] = {0, 2, 2, 2};
    const uint32_t id[] = {0, 4};
    assert_int_equal(l.totals.n_nonzeros, 2);
    assert_memory_equal(l.arrays.start, start, sizeof start);
    assert_memory_equal(l.arrays.id, id, sizeof id);
    assert_true(l.arrays.value[0] == 2 && l.arrays.value[1] == 3);
    assert_int_equal(l.totals.max_id, 4294967294);
    assert_true(l.totals.mean_square == 13.0 / 3);
    load_free(&l);
}

/* ---- what is refused ---- */

static void a_bad_line_is_named_with_its_place_and_what_was_expected(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"1 1:2\n1 2:3  7x3\n", "t.svm:2:8: expected \"index:value\", found \"7x3\""},
        {"x 1:2\n", "t.svm:1:1: expected a label (a number), found \"x\""},
        {"\n# c\n  1:2 3:4\n", "t.svm:3:3: expected a label (a number), found \"1:2\""},
        {"1,2 1:1\n", "t.svm:1:1: expected a label (a number), found \"1,2\""},
        {"nan 1:1\n", "t.svm:1:1: expected a label (a number), found \"nan\""},
        {"- 1:1\n", "t.svm:1:1: expected a label (a number), found \"-\""},
        {"0x10 1:1\n", "t.svm:1:1: expected a label (a number), found \"0x10\""},
        {"1e39 1:1\n", "t.svm:1:1: expected a label between -3.4e38 and 3.4e38, found \"1e39\""},
        {"1 +02:3\n", "t.svm:1:3: expected \"index:value\", found \"+02:3\""},
        {"1 -1:3\n", "t.svm:1:3: expected \"index:value\", found \"-1:3\""},
        {"1 :3\n", "t.svm:1:3: expected \"index:value\", found \":3\""},
        {"1 3\n", "t.svm:1:3: expected \"index:value\", found \"3\""},
        {"1 1:1,2:1\n", "t.svm:1:5: expected a number after \"1:\", found \"1,2:1\""},
        {"1 1 :2\n", "t.svm:1:3: expected \"index:value\", found \"1\""},
        {"1 1: 2\n", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:#\n", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:inf\n", "t.svm:1:5: expected a number after \"1:\", found \"inf\""},
        {"1 1:3e\n", "t.svm:1:5: expected a number after \"1:\", found \"3e\""},
        {"1 1:.\n", "t.svm:1:5: expected a number after \"1:\", found \".\""},
        {"1 1:1.2.3\n", "t.svm:1:5: expected a number after \"1:\", found \"1.2.3\""},
        {"1 1:-4e38\n", "t.svm:1:5: expected a value between -3.4e38 and 3.4e38, found \"-4e38\""},
        {"1 18446744073709551616:1\n",
         "t.svm:1:3: expected an index of at most 18446744073709551615, found \"18446744073709551616:1\""},
        {"1 99999999999999999999999:1\n",
         "t.svm:1:3: expected an index of at most 18446744073709551615, found \"99999999999999999999999:1\""},
        {"1 3:1 3:2\n", "t.svm:1:7: expected an index above 3 (indices ascend within a line), found \"3:2\""},
        {"1 0:1 0:2\n", "t.svm:1:7: expected an index above 0 (indices ascend within a line), found \"0:2\""},
        {"1 7:1 9:1 5:1\n", "t.svm:1:11: expected an index above 9 (indices ascend within a line), found \"5:1\""},
        {"1 qid:x 1:1\n", "t.svm:1:7: expected a whole number after \"qid:\", found \"x\""},
        {"1 qid: 1:1\n", "t.svm:1:7: expected a whole number after \"qid:\", found nothing"},
        {"1 1:1 qid:3\n", "t.svm:1:7: expected \"index:value\", found \"qid:3\""},
        {"1 1:1\r2 1:1\n", "t.svm:1:5: expected a number after \"1:\", found \"1\\x0d2\""},
        {"1 \xc3\xa9\"\\\n", "t.svm:1:3: expected \"index:value\", found \"\\xc3\\xa9\\\"\\\\\""},
        {"1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
         "t.svm:1:3: expected \"index:value\", found \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].text);
        assert_refused(cases[i].sentence, SHMTRAIN_E_DATA);
    }
}

static void zero_bytes_are_shown_not_swallowed(void **state) {
    (void)state;
    static const char text[] = "1 1:1\n1\0 2:1\n";
    write_bytes(text, sizeof text - 1);
    assert_refused("t.svm:2:1: expected a label (a number), found \"1\\x00\"", SHMTRAIN_E_DATA);
}

static void the_first_bad_line_of_the_file_is_reported_for_any_number_of_parts(void **state) {
    (void)state;
    char text[8000] = "";
    for (int i = 1; i <= 300; i++) strcat(text, i % 100 == 50 ? "1 bad\n" : "1 1:1 2:1 3:1\n");
    write_text(text);
    for (uint32_t parts = 1; parts <= 17; parts++) {
        struct loaded l;
        assert_int_equal(load_name(&l, g_path, 0, false, parts), SHMTRAIN_E_DATA);
        assert_string_equal(l.error.text, "t.svm:50:3: expected \"index:value\", found \"bad\"");
    }
}

static void what_is_no_file_of_text_is_refused(void **state) {
    (void)state;
    struct loaded l;
    static const struct {
        const char *name, *sentence;
        int status;
    } names[] = {
        {"missing.svm", "cannot open missing.svm: No such file or directory", SHMTRAIN_E_SYSTEM},
        {"/", "/ is a folder; name a file in it", SHMTRAIN_E_USAGE},
        {"/dev/null", "/dev/null is empty", SHMTRAIN_E_DATA},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(load_name(&l, names[i].name, 0, false, 1), names[i].status);
        assert_string_equal(l.error.text, names[i].sentence);
    }
    write_text("1 1:1\n");
    assert_int_equal(load_name(&l, g_path, 0, true, 1), SHMTRAIN_E_USAGE);
    assert_string_equal(l.error.text, "t.svm has no held-out examples of its own; name a second file that has them");
    write_text("");
    assert_refused("t.svm is empty", SHMTRAIN_E_DATA);
    write_text("# nothing\n\n  \n");
    assert_refused("t.svm has no examples, only blank lines and comments", SHMTRAIN_E_DATA);
}

static void opening_a_pipe_does_not_wait_for_its_writer(void **state) {
    (void)state;
    unlink(g_path);
    assert_int_equal(mkfifo(g_path, 0600), 0);
    struct shmt_source *source;
    alarm(10);
    assert_int_equal(shmt_source_open(g_path, 1, 0, &source, NULL), 0);
    assert_true(shmt_source_flows(source) && shmt_source_is_once(source));
    shmt_source_close(source);
    alarm(0);
    unlink(g_path);
}

static void a_file_that_may_not_be_read_is_refused(void **state) {
    (void)state;
    write_text("1 1:1\n");
    assert_int_equal(chmod(g_path, 0), 0);
    const bool root = geteuid() == 0; /* root may read everything */
    if (root) assert_int_equal(seteuid(65534), 0);
    assert_refused("cannot open t.svm: Permission denied", SHMTRAIN_E_SYSTEM);
    if (root) assert_int_equal(seteuid(0), 0);
    unlink(g_path);
}

static void a_long_path_is_shown_by_its_end(void **state) {
    (void)state;
    char path[600];
    memset(path, 'a', sizeof path);
    for (size_t i = 100; i < 599; i += 100) path[i] = '/';
    strcpy(path + 590, "/e\r\xc3\xa9.svm");
    struct loaded l;
    assert_int_equal(load_name(&l, path, 0, false, 1), SHMTRAIN_E_SYSTEM);
    assert_true(strncmp(l.error.text, "cannot open ...a/aaaa", 21) == 0);
    assert_non_null(strstr(l.error.text, "/e?\xc3\xa9.svm: No such file or directory"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_features_are_read),
        cmocka_unit_test(blanks_comments_and_query_ids_change_nothing),
        cmocka_unit_test(zeros_are_no_nonzeros_but_their_ids_count),
        cmocka_unit_test(examples_may_have_no_feature_at_all),
        cmocka_unit_test(distinct_labels_are_told_in_order_of_appearance_for_any_number_of_parts),
        cmocka_unit_test(labels_are_kept_up_to_one_more_than_classes_may_be),
        cmocka_unit_test(ids_outside_the_columns_are_left_out_when_counted_with_them),
        cmocka_unit_test(a_bad_line_is_named_with_its_place_and_what_was_expected),
        cmocka_unit_test(zero_bytes_are_shown_not_swallowed),
        cmocka_unit_test(the_first_bad_line_of_the_file_is_reported_for_any_number_of_parts),
        cmocka_unit_test(what_is_no_file_of_text_is_refused),
        cmocka_unit_test(opening_a_pipe_does_not_wait_for_its_writer),
        cmocka_unit_test(a_file_that_may_not_be_read_is_refused),
        cmocka_unit_test(a_long_path_is_shown_by_its_end),
    };
    return cmocka_run_group_tests_name("libsvm", tests, make_folder, remove_folder);
}
