/* Weights of examples from a file: what is accepted, and every refusal with its sentence. */
#include "data_file.h"

#include "data/weights.h"

static void one_number_in_each_line_is_read(void **state) {
    (void)state;
    static const char *const same[] = {"1\n0\n2.5\n1e-3\n", "1\n0\n2.5\n1e-3",
                                       "  1\t\r\n+0\r\n\r\n25e-1 # more\n# less\n\n.001\n", "1.0\n-0\n2.50\n0.0010#\n\n\n"};
    static const float expected[] = {1, 0, 2.5f, 0.001f};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        float weight[4] = {-1, -1, -1, -1};
        write_text(same[i]);
        struct shmt_error e = {0};
        assert_int_equal(shmt_weights_read(g_path, 4, NULL, &e), 0);
        assert_int_equal(shmt_weights_read(g_path, 4, weight, &e), 0);
        assert_memory_equal(weight, expected, sizeof expected);
    }
}

static void what_is_no_weight_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"1\nx\n", "t.svm:2:1: expected a weight (a number of at least 0), found \"x\""},
        {"1\n\n  -0.5\n", "t.svm:3:3: expected a weight (a number of at least 0), found \"-0.5\""},
        {"nan\n1\n", "t.svm:1:1: expected a weight (a number of at least 0), found \"nan\""},
        {"1\ninf\n", "t.svm:2:1: expected a weight (a number of at least 0), found \"inf\""},
        {"1\n1e39\n", "t.svm:2:1: expected a weight of at most 3.4e38, found \"1e39\""},
        {"1 2\n", "t.svm:1:3: expected one weight in each line, found \"2\""},
        {"1,2\n", "t.svm:1:1: expected a weight (a number of at least 0), found \"1,2\""},
        {"1\n2", "t.svm has 2 weights, but the data has 3 examples: each example needs one weight"},
        {"1\n2\n3\n4\n", "t.svm has 4 weights, but the data has 3 examples: each example needs one weight"},
        {"# nothing\n", "t.svm has 0 weights, but the data has 3 examples: each example needs one weight"},
        {"", "t.svm is empty"},
        {"\x1f\x8b\x08", "t.svm is compressed; unpack it with gunzip first"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float weight[3];
        struct shmt_error checked = {0}, read = {0};
        write_text(cases[i].text);
        assert_int_equal(shmt_weights_read(g_path, 3, NULL, &checked), SHMTRAIN_E_DATA);
        assert_int_equal(shmt_weights_read(g_path, 3, weight, &read), SHMTRAIN_E_DATA);
        assert_string_equal(checked.text, cases[i].sentence);
        assert_string_equal(read.text, cases[i].sentence);
    }
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    struct shmt_error e = {0};
    assert_int_equal(shmt_weights_read("missing", 3, NULL, &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot open missing: No such file or directory");
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_weights_read(".", 3, NULL, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, ". is a folder; name a file in it");
}

/* More lines than one buffer of the reader holds. */
static void large_files_are_read_whole(void **state) {
    (void)state;
    enum { N = 200000 };
    float *weight = malloc(N * sizeof *weight);
    FILE *f = fopen(g_path, "wb");
    assert_true(f && weight);
    for (uint32_t i = 0; i < N; i++) fprintf(f, "%u.5\n", i);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(shmt_weights_read(g_path, N, weight, NULL), 0);
    for (uint32_t i = 0; i < N; i++)
        if (weight[i] != (float)i + 0.5f) fail();
    free(weight);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_number_in_each_line_is_read),
        cmocka_unit_test(what_is_no_weight_is_refused_with_its_place),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(large_files_are_read_whole),
    };
    return cmocka_run_group_tests_name("weights", tests, make_folder, remove_folder);
}
