/* The real program from outside: tables that are kept in caches, with the names of their columns and labels. */
#include "csv_help.h"

/* A model of a cache is the model of its table. */
static void a_table_is_kept_with_its_names_in_a_cache(void **state) {
    (void)state;
    program_assert_status(RUN("data", "convert", "--label", "bought", "t.csv", "-o", "t.cache"), 0);
    assert_says(RUN(TRAIN, "-o", "of_cache", "t.cache"), 0, "t.cache: the label is column \"bought\", 2 columns of numbers,");
    assert_says(RUN(TRAIN, "--cache", "--label", "bought", "-o", "kept1", "t.csv"), 0, "t.csv.shmcache was created from t.csv");
    struct program *p = RUN(TRAIN, "--cache", "--label", "bought", "-o", "kept2", "t.csv");
    assert_says(p, 0, "t.csv: the label is column \"bought\"");
    assert_null(strstr(p->text[ERR], "was made"));
    free(said_by_shell("cmp model of_cache && cmp model kept1 && cmp model kept2"));
    char *own = SAID("eval", "--json", "model", "t.csv"), *cached = SAID("eval", "--json", "model", "t.cache");
    assert_string_equal(strstr(own, "\"accuracy\":"), strstr(cached, "\"accuracy\":"));
    free(own);
    free(cached);
    own = SAID("data", "info", "t.cache");
    assert_non_null(strstr(own, "\n              4 categories city\n              5 label      bought\n"));
    free(own);
}

static void a_cache_is_made_again_when_options_read_the_table_otherwise(void **state) {
    (void)state;
    write_text("kept.csv", "y,a,b\n0,1,2\n1,3,4\n0,1,5\n");
    program_assert_status(RUN(TRAIN, "--cache", "kept.csv"), 0);
    assert_says(RUN(TRAIN, "--cache", "--categorical", "a", "kept.csv"), 0,
                "kept.csv.shmcache was recreated because other options apply, from kept.csv");
    assert_says(RUN(TRAIN, "--cache", "--categorical", "a", "kept.csv"), 0,
                "1 column of numbers, 1 of categories (column \"a\")");
    write_text("other.txt", "y,a,b\n0,1,2\n1,3,4\n");
    for (int i = 0; i < 2; i++) /* the cache has no table's name */
        assert_says(RUN(TRAIN, "--cache", "--input-format", "csv", "other.txt"), 0, "2 columns of numbers");
}

static void a_cache_of_another_table_is_refused(void **state) {
    (void)state;
    write_text("w1.csv", "y,a,b\nno,1,2\nyes,3,4\n");
    write_text("w2.csv", "y,b,a\nno,1,2\nyes,3,4\n");
    write_text("w3.csv", "y,a,b\nnever,1,2\nyes,3,4\n");
    program_assert_status(RUN(TRAIN, "-o", "w1", "w1.csv"), 0);
    program_assert_status(RUN("data", "convert", "w2.csv", "-o", "w2.cache"), 0);
    program_assert_status(RUN("data", "convert", "w3.csv", "-o", "w3.cache"), 0);
    assert_says(RUN("eval", "w1", "w2.cache"), 1,
                "w2.cache is the cache of a table with other features than the model's table: use the table itself\n");
    assert_says(RUN("eval", "w1", "w3.cache"), 1, "w3.cache is the cache of a table with other labels than the model's");
    assert_says(RUN(TRAIN, "w1.csv", "--valid", "w3.cache"), 1,
                "w3.cache is the cache of a table with other labels than the model's");
    program_assert_status(RUN("predict", "w1", "w3.cache"), 0);
    assert_says(RUN(TRAIN, "--label", "y", "--categorical", "b", "w3.cache"), 2,
                "--categorical b: w3.cache is the cache of a table that was read without this option: convert the table again "
                "with it\n");
    program_assert_status(RUN(TRAIN, "--label", "y", "--categorical", "y", "w3.cache"), 0);
    program_assert_status(RUN("eval", "--categorical", "y", "w1", "w1.csv"), 0);
    assert_says(
        RUN(TRAIN, "--label", "a", "w3.cache"), 2,
        "--label a: w3.cache is the cache of a table whose label is column \"y\": convert the table with --label again\n");
}

/* The columns of a pipe are known late, but before the validation data is counted, whether that is kept or not. */
static void a_table_that_validates_a_pipe_is_read_as_that(void **state) {
    (void)state;
    write_text("p.csv", "y,a,b\nno,1,2\nyes,3,4\nno,1,3\n");
    write_text("q.csv", "y,b,a\nyes,1,2\nno,3,4\n");
    char *own = said_by_shell("\"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 p.csv --valid q.csv | grep ^validation");
    for (int i = 0; i < 3; i++) {
        char *piped = said_by_shell(
            "cat p.csv | \"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 --input-format csv --cache --valid q.csv - | grep ^validation");
        assert_string_equal(piped, own);
        free(piped);
    }
    free(own);
    const char *const pipes[] = {
        "bash", "-c", "cat p.csv | \"$TEST_BUILDDIR\"/shmtrain -q -w 1 -e 1 --input-format csv --valid <(cat q.csv) -", NULL};
    assert_says(program_run(NULL, pipes), 2,
                "is read before the columns of standard input are known: save that to a file first");
}

/* The plan of the training data outlives its source, which is opened again. */
static void a_damaged_cache_of_a_table_is_made_again_beside_a_pipe(void **state) {
    (void)state;
    write_text("d.csv", "y,a,b\nno,1,2\nyes,3,4\nno,1,3\n");
    program_assert_status(RUN(TRAIN, "--cache", "d.csv"), 0);
    FILE *f = fopen("d.csv.shmcache", "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 4100, SEEK_SET), 0); /* of the rows */
    fputc(0x5a, f);
    fclose(f);
    const char *const script[] = {"bash", "-c",
                                  "\"$TEST_BUILDDIR\"/shmtrain -q -w 1 -e 1 --input-format csv --cache --valid <(cat d.csv) "
                                  "d.csv",
                                  NULL};
    struct program *p = program_run(NULL, script);
    assert_says(p, 0, "d.csv.shmcache was recreated because it was damaged, from d.csv");
}

static void a_cache_is_not_converted_as_if_it_were_read_otherwise(void **state) {
    (void)state;
    write_text("c.csv", "y,a,b\n0,1,2\n1,3,4\n");
    program_assert_status(RUN("data", "convert", "c.csv", "-o", "c.cache"), 0);
    assert_says(
        RUN("data", "convert", "--label", "a", "c.cache", "-o", "c2.cache"), 2,
        "--label a: c.cache is the cache of a table whose label is column \"y\": convert the table with --label again\n");
    assert_int_equal(access("c2.cache", F_OK), -1);
}

/* The missing number of such a column counts as 0 there, and in the model as the mean that it knows. */
static void a_cache_with_a_column_of_nothing_is_refused_for_a_model_with_its_mean(void **state) {
    (void)state;
    write_text("whole.csv", "y,a,b\n0,1,2\n1,3,4\n0,1,5\n1,3,1\n");
    write_text("hole.csv", "y,a,b\n0,,2\n1,,4\n0,,5\n");
    program_assert_status(RUN(TRAIN, "-o", "whole", "whole.csv"), 0);
    program_assert_status(RUN("data", "convert", "hole.csv", "-o", "hole.cache"), 0);
    assert_says(RUN("eval", "whole", "hole.cache"), 1, "with other values for missing numbers than the model's table");
}

static void a_kept_cache_does_not_change_how_a_model_of_text_scores_a_table(void **state) {
    (void)state;
    program_assert_status(RUN(TRAIN, "-o", "of_text", "n.svm"), 0);
    write_text("k.csv", "y,age,height\n1,0.5,0.25\n0,,0.5\n1,1,\n");
    char *own = SAID("eval", "--json", "of_text", "k.csv");
    struct program *p = RUN("eval", "--json", "--cache", "of_text", "k.csv");
    assert_says(p, 0, "--cache has no effect on k.csv: a cache keeps a table's own numbers");
    assert_non_null(strstr(own, "\"loss\":"));
    const char *loss = strstr(own, "\"loss\":");
    assert_memory_equal(strstr(p->text[OUT], "\"loss\":"), loss, strcspn(loss, ","));
    free(own);
}

static void a_cache_that_marks_missing_numbers_is_refused_beside_data_without_columns(void **state) {
    (void)state;
    static const char WHY[] =
        "marked.cache is the cache of a table with missing numbers, but the model is of data without columns: "
        "use the table itself\n";
    write_text("marked.csv", "y,age,height\n1,0.5,0.25\n0,,0.5\n1,1,\n");
    program_assert_status(RUN("data", "convert", "marked.csv", "-o", "marked.cache"), 0);
    program_assert_status(RUN(TRAIN, "-o", "of_svm", "n.svm"), 0);
    assert_says(RUN("eval", "of_svm", "marked.cache"), 1, WHY);
    assert_says(RUN(TRAIN, "n.svm", "--valid", "marked.cache"), 1, WHY);
    program_assert_status(RUN("data", "convert", "n.csv", "-o", "n.cache"), 0);
    program_assert_status(RUN("eval", "of_svm", "n.cache"), 0);
}

static void a_table_validates_text_alike_whether_that_comes_through_a_pipe(void **state) {
    (void)state;
    write_text("v.csv", "y,age,height\n1,0.5,0.25\n0,,0.5\n1,1,\n");
    char *own = said_by_shell("\"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 n.svm --valid v.csv | grep ^validation");
    char *piped = said_by_shell("cat n.svm | \"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 --valid v.csv - | grep ^validation");
    assert_string_equal(piped, own);
    free(piped);
    free(own);
}

static void predict_makes_no_cache_of_a_table_without_labels(void **state) {
    (void)state;
    write_text("l.svm", "1 1:1 2:2\n-1 1:3 2:1\n");
    write_text("u.csv", "1,2\n3,1\n");
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "-o", "l", "l.svm"), 0);
    struct program *p = RUN("predict", "--label", "none", "--cache", "l", "u.csv");
    assert_says(p, 0, "--cache has no effect on u.csv: a cache has labels, but labels are not read here\n");
    assert_int_equal(access("u.csv.shmcache", F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_table_is_kept_with_its_names_in_a_cache),
        PROGRAM_TEST(a_cache_is_made_again_when_options_read_the_table_otherwise),
        PROGRAM_TEST(a_cache_of_another_table_is_refused),
        PROGRAM_TEST(a_table_that_validates_a_pipe_is_read_as_that),
        PROGRAM_TEST(a_damaged_cache_of_a_table_is_made_again_beside_a_pipe),
        PROGRAM_TEST(a_cache_is_not_converted_as_if_it_were_read_otherwise),
        PROGRAM_TEST(a_cache_with_a_column_of_nothing_is_refused_for_a_model_with_its_mean),
        PROGRAM_TEST(a_kept_cache_does_not_change_how_a_model_of_text_scores_a_table),
        PROGRAM_TEST(a_cache_that_marks_missing_numbers_is_refused_beside_data_without_columns),
        PROGRAM_TEST(a_table_validates_text_alike_whether_that_comes_through_a_pipe),
        PROGRAM_TEST(predict_makes_no_cache_of_a_table_without_labels),
    };
    return cmocka_run_group_tests_name("tables in caches", tests, make_all, program_remove_folder);
}
