/* The real program from outside: tables with a column whose numbers are far from 0, as times in seconds are. */
#include <math.h>

#include "csv_help.h"

enum { EXAMPLES = 3000 };

/* Times of some minutes in 2023, which say something of the label; the same times counted from the first; and a table of later
 * ones. */
static int make_far(void **state) {
    if (program_make_folder(state) < 0) return -1;
    FILE *far = fopen("far.csv", "w"), *near = fopen("near.csv", "w"), *later = fopen("later.csv", "w");
    uint64_t seed = 11;
    fputs("y,time,size\n", far);
    fputs("y,time,size\n", near);
    fputs("y,time,size\n", later);
    for (int i = 0; i < EXAMPLES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int time = (int)((seed >> 33) % 400) - 200, size = (int)((seed >> 44) % 10), noise = (int)((seed >> 50) % 200);
        const int yes = time + 20 * size + noise > 190;
        fprintf(far, "%d,%d,%d\n", yes, 1700000000 + time, size);
        fprintf(near, "%d,%d,%d\n", yes, time, size);
        fprintf(later, "%d,%d,%d\n", yes, 1700001000 + time, size);
    }
    fclose(far);
    fclose(near);
    fclose(later);
    return RUN("-q", "-w", "2", "-o", "model", "far.csv")->status;
}

static double loss_of(const char *how, const char *data) {
    char line[300];
    snprintf(line, sizeof line,
             "\"$TEST_BUILDDIR\"/shmtrain -q -w 2 %s -o x %s && \"$TEST_BUILDDIR\"/shmtrain eval --json x %s | sed "
             "'s/.*\"loss\":\\([0-9.]*\\).*/\\1/'",
             how, data, data);
    char *said = said_by_shell(line);
    const double loss = strtod(said, NULL);
    free(said);
    assert_true(loss > 0 && loss < 2);
    return loss;
}

static void a_saved_model_is_as_good_as_one_of_near_numbers(void **state) {
    (void)state;
    static const char *const HOW[] = {"", "--mode sync", "--mode async", "-M softmax", "-M linear"};
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        const double far = loss_of(HOW[i], "far.csv"), near = loss_of(HOW[i], "near.csv");
        if (fabs(far - near) > 0.01 * near) print_error("%s: %g, near %g\n", HOW[i], far, near);
        assert_true(fabs(far - near) < 0.01 * near);
    }
}

static void from_where_a_column_is_counted_is_said_and_shown(void **state) {
    (void)state;
    assert_says(RUN(TRAIN, "far.csv"), 0, ", 2 columns of numbers; column \"time\" is counted from 1700000000\n");
    assert_null(strstr(RUN(TRAIN, "near.csv")->text[ERR], "counted"));
    char *text = SAID("data", "info", "far.csv"), *json = SAID("data", "info", "--json", "far.csv");
    assert_non_null(strstr(text, "2 numbers    time, id 1, counted from 1700000000\n"));
    assert_non_null(strstr(text, "3 numbers    size, id 2\n"));
    assert_non_null(strstr(json, "\"missing\":0,\"counted_from\":1700000000"));
    free(text);
    free(json);
}

static void other_formats_name_it_or_are_refused(void **state) {
    (void)state;
    program_assert_status(RUN("model", "convert", "model", "-o", "m.csv", "--format", "csv"), 0);
    free(said_by_shell("grep -q '^time - 1700000000,' m.csv && grep -q '^size,' m.csv"));
    static const char WHY[] =
        "format liblinear: column \"time\" is counted from 1700000000, which LIBLINEAR's models have no room "
        "for: use csv or safetensors\n";
    assert_says(RUN("model", "convert", "model", "-o", "m.ll", "--format", "liblinear"), 2, WHY);
    assert_says(RUN(TRAIN, "far.csv", "-o", "m.ll", "--format", "liblinear"), 2, WHY);
    program_assert_status(RUN(TRAIN, "far.csv", "--bias", "0", "-o", "m.ll", "--format", "liblinear"), 0);
}

static void a_run_that_begins_with_a_model_counts_as_that_model(void **state) {
    (void)state;
    assert_says(RUN(TRAIN, "later.csv", "--init-from", "model"), 0, "column \"time\" is counted from 1700000000\n");
    assert_says(RUN(TRAIN, "later.csv"), 0, "column \"time\" is counted from 1700001000\n");
    program_assert_status(RUN(TRAIN, "--checkpoint", "ck", "far.csv"), 0);
    assert_says(RUN("-w", "2", "--mode", "sync", "-e", "5", "--checkpoint", "ck", "--resume", "far.csv"), 0,
                "resuming from ck");
    free(said_by_shell("rm -r ck"));
}

static void a_cache_that_counts_from_elsewhere_is_refused(void **state) {
    (void)state;
    program_assert_status(RUN("data", "convert", "far.csv", "-o", "far.cache"), 0);
    program_assert_status(RUN("data", "convert", "later.csv", "-o", "later.cache"), 0);
    char *table = SAID("eval", "--json", "model", "far.csv"), *cache = SAID("eval", "--json", "model", "far.cache");
    assert_string_equal(strstr(table, "\"accuracy\":"), strstr(cache, "\"accuracy\":"));
    free(table);
    free(cache);
    assert_says(
        RUN("eval", "model", "later.cache"), 1,
        "later.cache is the cache of a table with other zero points of columns than the model's table: use the table itself\n");
}

/* Its weights are of numbers as they are, for which these are so bad that the run says so. */
static void a_run_that_begins_with_a_model_of_text_counts_from_0(void **state) {
    (void)state;
    write_text("few.svm", "0 1:1 2:3\n1 1:2 2:1\n");
    program_assert_status(RUN(TRAIN, "-o", "of_svm", "few.svm"), 0);
    struct program *p = RUN(TRAIN, "--init-from", "of_svm", "far.csv");
    assert_says(p, 1, "2 columns of numbers\n");
    assert_null(strstr(p->text[ERR], "counted from"));
    program_assert_status(RUN("data", "convert", "far.csv", "-o", "far2.cache"), 0);
    assert_says(RUN(TRAIN, "--init-from", "of_svm", "far2.cache"), 1,
                "far2.cache is the cache of a table with zero points of columns, but the model is of data without columns");
}

static void training_refuses_a_cache_that_counts_from_elsewhere_than_it_would(void **state) {
    (void)state;
    assert_says(
        RUN(TRAIN, "--init-from", "model", "later.cache"), 1,
        "later.cache is the cache of a table with other zero points of columns than the model that training begins with: "
        "use the table itself\n");
    program_assert_status(RUN(TRAIN, "--init-from", "model", "far.cache"), 0);
    assert_says(RUN(TRAIN, "--bias", "0", "far.cache"), 2,
                "--bias 0: far.cache is the cache of a table whose column \"time\" is counted from 1700000000: use the table "
                "itself, or learn a bias\n");
}

static void text_for_a_model_that_counts_from_elsewhere_is_named(void **state) {
    (void)state;
    static const char SAYS[] =
        "far.svm is no table, but column \"time\" is counted from 1700000000 in the model's: feature 1 must be "
        "counted from there\n";
    free(said_by_shell("awk -F, 'NR > 1 { print $1 \" 1:\" $2 \" 2:\" $3 }' far.csv > far.svm"));
    assert_says(RUN("eval", "model", "far.svm"), 0, SAYS);
    assert_says(RUN(TRAIN, "far.csv", "--valid", "far.svm"), 0, SAYS);
    assert_null(strstr(RUN("eval", "model", "far.csv")->text[ERR], "no table"));
}

/* Parameters go by the place of a feature. */
static void zero_points_are_found_by_name_in_any_case_but_not_by_number(void **state) {
    (void)state;
    free(said_by_shell("sed '1s/.*/y,TIME,Size/' later.csv > upper.csv; sed '1s/.*/y,3,2/' later.csv > numbers.csv"));
    assert_says(RUN(TRAIN, "upper.csv", "--init-from", "model"), 0, "column \"TIME\" is counted from 1700000000\n");
    assert_says(RUN(TRAIN, "numbers.csv", "--init-from", "model"), 0, "column \"3\" is counted from 1700000000\n");
}

static void a_model_of_a_wide_table_can_be_read_again(void **state) {
    (void)state;
    FILE *f = fopen("wide.csv", "w");
    fputs("y", f);
    for (int i = 0; i < 40000; i++) fprintf(f, ",gene%d", i);
    for (int row = 0; row < 4; row++) {
        fprintf(f, "\n%d", row % 2);
        for (int i = 0; i < 40000; i++) fprintf(f, ",%d", (row + i) % 3 + 1);
    }
    fputc('\n', f);
    fclose(f);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "-o", "wide", "wide.csv"), 0);
    program_assert_status(RUN("eval", "wide", "wide.csv"), 0);
    free(said_by_shell("rm wide wide.csv"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_saved_model_is_as_good_as_one_of_near_numbers),
        PROGRAM_TEST(from_where_a_column_is_counted_is_said_and_shown),
        PROGRAM_TEST(other_formats_name_it_or_are_refused),
        PROGRAM_TEST(a_run_that_begins_with_a_model_counts_as_that_model),
        PROGRAM_TEST(a_cache_that_counts_from_elsewhere_is_refused),
        PROGRAM_TEST(a_run_that_begins_with_a_model_of_text_counts_from_0),
        PROGRAM_TEST(training_refuses_a_cache_that_counts_from_elsewhere_than_it_would),
        PROGRAM_TEST(text_for_a_model_that_counts_from_elsewhere_is_named),
        PROGRAM_TEST(zero_points_are_found_by_name_in_any_case_but_not_by_number),
        PROGRAM_TEST(a_model_of_a_wide_table_can_be_read_again),
    };
    return cmocka_run_group_tests_name("columns far from 0", tests, make_far, program_remove_folder);
}
