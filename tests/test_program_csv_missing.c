/* The real program from outside: tables in which numbers are missing, from training to predictions. */
#include "csv_help.h"
#include "seal_help.h"

#include <math.h>

enum { EXAMPLES = 2000 };

static uint32_t random_below(uint64_t *seed, uint32_t n) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

/* Numbers near 1000, of which a fifth is missing; the label is "yes" nine times in ten where one is missing, and else one time in
 * ten. As a table; by hand as LIBSVM text, with the mean for what is missing, and its mark; and with nothing missing in the first
 * rows, by far more than a first look sees. */
static int make_missing(void **state) {
    if (program_make_folder(state) < 0) return -1;
    FILE *table = fopen("m.csv", "w"), *hand = fopen("hand.svm", "w"), *late = fopen("late.csv", "w");
    uint64_t seed = 3;
    fputs("y,wage,age\n", table);
    fputs("y,wage,age\n", late);
    for (int i = 0; i < 20000; i++) fprintf(late, "no,%d,7\n", 990 + i % 21);
    for (int i = 0; i < EXAMPLES; i++) {
        const uint32_t wage = 990 + random_below(&seed, 21), age = 20 + random_below(&seed, 50);
        const bool missing = random_below(&seed, 5) == 0, yes = (random_below(&seed, 10) == 0) != missing;
        char text[16] = "";
        if (!missing) snprintf(text, sizeof text, "%u", wage);
        fprintf(table, "%s,%s,%u\n", yes ? "yes" : "no", text, age);
        fprintf(hand, "%d 1:%s 2:%u%s\n", yes, missing ? "1000" : text, age, missing ? " 3:1" : "");
        fprintf(late, "%s,%s,%u\n", yes ? "yes" : "no", text, age);
    }
    fclose(table);
    fclose(hand);
    fclose(late);
    return RUN("-q", "-w", "2", "-o", "model", "m.csv")->status;
}

static double loss_of(const char *line) {
    char *said = said_by_shell(line);
    const double loss = strtod(said, NULL);
    free(said);
    assert_true(loss > 0 && loss < 2);
    return loss;
}

/* What can be known: 0.325, the entropy of one in ten. */
static void a_model_learns_what_missing_says_as_from_marks_by_hand(void **state) {
    (void)state;
    static const char *const HOW[] = {"", "--mode sync", "--mode async", "-M softmax"};
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        char line[2][200];
        const char *const data[] = {"m.csv", "hand.svm"};
        for (int k = 0; k < 2; k++)
            snprintf(line[k], sizeof line[k],
                     "\"$TEST_BUILDDIR\"/shmtrain -q -w 2 %s -o x %s && \"$TEST_BUILDDIR\"/shmtrain eval --json x %s | sed "
                     "'s/.*\"loss\":\\([0-9.]*\\).*/\\1/'",
                     HOW[i], data[k], data[k]);
        const double table = loss_of(line[0]), hand = loss_of(line[1]);
        if (fabs(table - hand) > 0.01 * hand) print_error("%s: %g, by hand %g\n", HOW[i], table, hand);
        assert_true(table < 0.345);
        assert_true(fabs(table - hand) < 0.01 * hand);
    }
}

static void where_numbers_are_missing_is_said(void **state) {
    (void)state;
    assert_says(RUN(TRAIN, "m.csv"), 0,
                "m.csv: numbers are missing in 1 column (column \"wage\"): it has a feature that says where\n");
    assert_null(strstr(RUN(TRAIN, "hand.svm")->text[ERR], "missing"));
    char *text = SAID("data", "info", "m.csv"), *json = SAID("data", "info", "--json", "m.csv");
    assert_non_null(strstr(text, "2 numbers    wage, id 1, missing in 3"));
    assert_non_null(strstr(text, "3 numbers    age, id 2\n"));
    assert_non_null(strstr(json, "\"name\":\"age\",\"kind\":\"numbers\",\"id\":2,\"missing\":0,"));
    free(text);
    free(json);
    write_text("rare.csv", "y,a\n1,\n0,\n1,5\n0,\n");
    text = SAID("data", "info", "rare.csv");
    assert_non_null(strstr(text, "numbers    a, id 1, missing in 3\n"));
    free(text);
}

static void a_model_as_csv_names_the_marks(void **state) {
    (void)state;
    program_assert_status(RUN(TRAIN, "m.csv", "-o", "named", "--format", "csv"), 0);
    free(said_by_shell("grep -q '^wage,' named && grep -q '^wage is missing,' named && ! grep -q '^age is' named"));
    write_text("odd.csv", "y,\"a, b\",c\n1,,2\n0,1,\n1,2,\n0,1,\n");
    program_assert_status(RUN(TRAIN, "odd.csv", "-o", "odd", "--format", "csv"), 0);
    free(said_by_shell("grep -q '^\"a, b is missing\",' odd && grep -q '^c is there,' odd"));
    write_text("bare.csv", "1,,2\n0,1,3\n1,2,2\n");
    program_assert_status(RUN(TRAIN, "bare.csv", "-o", "bare", "--format", "csv"), 0);
    free(said_by_shell("grep -q '^1 is missing,' bare"));
}

/* Not by their ids, which are the program's own. */
static void data_info_calls_marks_by_their_names(void **state) {
    (void)state;
    char *text = SAID("data", "info", "m.csv"), *json = SAID("data", "info", "--json", "m.csv");
    assert_non_null(strstr(text, "features    3, of which 3 occur\n"));
    assert_non_null(strstr(text, "wage is missing ("));
    assert_non_null(strstr(json, "{\"id\":null,\"mark_of\":1,\"examples\":"));
    assert_non_null(strstr(json, "\"first_id\":1,\"last_id\":null"));
    assert_null(strstr(text, "46116860"));
    assert_null(strstr(json, "46116860"));
    free(text);
    free(json);
    write_text("odd.csv", "y,a,c\n1,,2\n0,1,\n1,2,\n0,1,\n");
    text = SAID("data", "info", "odd.csv");
    assert_non_null(strstr(text, "c is there (25 %)"));
    free(text);
    write_text("bare.csv", "1,,2\n0,1,3\n1,2,2\n");
    text = SAID("data", "info", "bare.csv");
    assert_non_null(strstr(text, "mark of id 1 (33.3 %)"));
    free(text);
}

/* They have a line for each id up to the largest. */
static void liblinears_format_refuses_marks_and_categories_by_name(void **state) {
    (void)state;
    static const char MARK[] =
        "format liblinear: numbers are missing in column \"wage\", which LIBLINEAR's models have no room for: use csv or "
        "safetensors\n";
    assert_says(RUN(TRAIN, "m.csv", "-o", "m.ll", "--format", "liblinear"), 2, MARK);
    assert_says(RUN("model", "convert", "model", "-o", "m.ll", "--format", "liblinear"), 2, MARK);
    write_text("city.csv", "y,a,city\n1,1,Rome\n0,2,Oslo\n1,1,Rome\n0,2,Oslo\n");
    assert_says(RUN(TRAIN, "city.csv", "-o", "m.ll", "--format", "liblinear"), 2,
                "format liblinear: column \"city\" has categories, which LIBLINEAR's models have no room for: use csv or "
                "safetensors\n");
    program_assert_status(RUN(TRAIN, "city.csv", "--ignore", "city", "-o", "m.ll", "--format", "liblinear"), 0);
}

/* A first look is of 64 KB. */
static void numbers_that_are_missing_far_behind_the_beginning_are_marked(void **state) {
    (void)state;
    assert_says(RUN(TRAIN, "late.csv", "-o", "late", "--format", "csv"), 0,
                "late.csv: numbers are missing in 1 column (column \"wage\"): it has a feature that says where\n");
    free(said_by_shell("grep -q '^wage is missing,' late"));
}

static void a_packed_file_and_a_pipe_give_the_same_bits(void **state) {
    (void)state;
    static const char *const SAME[] = {
        "gzip -kf m.csv && \"$TEST_BUILDDIR\"/shmtrain -q -w 1 --mode sync -e 3 -o b m.csv.gz && cmp a b",
        "\"$TEST_BUILDDIR\"/shmtrain -q -w 2 --mode sync -e 3 -o b --input-format csv - < m.csv && cmp a b",
        "(head -n 500 m.csv > m1.csv; tail -n +501 m.csv > m2.csv); \"$TEST_BUILDDIR\"/shmtrain -q -w 2 --mode sync -e 3 -o b "
        "m1.csv m2.csv && cmp a b",
        "cat m.csv | \"$TEST_BUILDDIR\"/shmtrain predict model - > b && \"$TEST_BUILDDIR\"/shmtrain predict model m.csv | cmp "
        "b",
    };
    program_assert_status(RUN("-q", "-w", "2", "--mode", "sync", "-e", "3", "-o", "a", "m.csv"), 0);
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) free(said_by_shell(SAME[i]));
}

/* A column in which nothing was missing in training has no mark. */
static void what_was_never_missing_counts_as_the_mean(void **state) {
    (void)state;
    write_text("mean.csv", "y,a,b\n1,1,7\n0,3,8\n1,2,9\n0,4,7\n1,0,7\n0,2,7\n");
    program_assert_status(RUN("-q", "-w", "1", "-o", "mean", "mean.csv"), 0);
    write_text("gap.csv", "a,b\n,7\n");
    write_text("whole.csv", "a,b\n2,7\n");
    char *gap = SAID("predict", "--scores", "mean", "gap.csv"), *whole = SAID("predict", "--scores", "mean", "whole.csv");
    assert_string_equal(gap, whole);
    free(gap);
    free(whole);
}

/* A model of other data knows no marks. */
static void a_model_of_text_reads_what_is_missing_as_0(void **state) {
    (void)state;
    write_text("a.svm", "1 1:1 2:2\n0 1:3 2:1\n1 1:1 2:3\n0 1:2 2:1\n");
    write_text("some.csv", "y,a,b\n1,,3\n0,2,2\n1,1,1\n");
    write_text("same.svm", "1 2:3\n0 1:2 2:2\n1 1:1 2:1\n");
    program_assert_status(RUN("-q", "-w", "1", "-o", "text", "a.svm"), 0);
    char *table = SAID("predict", "--scores", "text", "some.csv"), *text = SAID("predict", "--scores", "text", "same.svm");
    assert_string_equal(table, text);
    free(table);
    free(text);
    table = said_by_shell("\"$TEST_BUILDDIR\"/shmtrain -w 1 --mode sync a.svm --valid some.csv | grep '^validation  loss'");
    text = said_by_shell("\"$TEST_BUILDDIR\"/shmtrain -w 1 --mode sync a.svm --valid same.svm | grep '^validation  loss'");
    assert_string_equal(table, text);
    free(table);
    free(text);
}

/* Takes out of a model's file what its columns count missing numbers as; the header keeps its length by blanks. */
static void make_older(const char *from, const char *to) {
    static uint8_t whole[65536];
    FILE *f = fopen(from, "rb");
    uint64_t n = fread(whole, 1, sizeof whole, f), header;
    fclose(f);
    memcpy(&header, whole, sizeof header);
    char *text = (char *)whole + 8, *at = memmem(text, header, "version\\\":2", 11);
    assert_non_null(at);
    at[10] = '1';
    while ((at = memmem(text, header, "number\\\",", 9))) {
        char *end = memchr(at, ']', header - (uint64_t)(at - text));
        memmove(at + 8, end, header - (uint64_t)(end - text));
        memset(text + header - (end - at - 8), ' ', (size_t)(end - at - 8));
    }
    make_seal(whole, n);
    f = fopen(to, "wb");
    fwrite(whole, 1, n, f);
    fclose(f);
}

static void a_model_of_before_reads_tables_as_it_did(void **state) {
    (void)state;
    write_text("old.csv", "y,a,b\n1,1,7\n0,3,8\n1,2,9\n0,4,7\n");
    program_assert_status(RUN("-q", "-w", "1", "-o", "now", "old.csv"), 0);
    make_older("now", "old");
    write_text("gap.csv", "a,b\n,7\n2,\n");
    write_text("zero.csv", "a,b\n0,7\n2,0\n");
    char *gap = SAID("predict", "--scores", "old", "gap.csv"), *zero = SAID("predict", "--scores", "old", "zero.csv");
    assert_string_equal(gap, zero);
    free(gap);
    free(zero);
    program_assert_status(RUN("data", "convert", "m.csv", "-o", "m.cache"), 0);
    program_assert_status(RUN("data", "convert", "old.csv", "-o", "old.cache"), 0);
    program_assert_status(RUN("eval", "old", "old.cache"), 0);
    write_text("gaps.csv", "y,a,b\n1,,7\n0,3,8\n1,2,9\n0,4,7\n");
    program_assert_status(RUN("data", "convert", "gaps.csv", "-o", "gaps.cache"), 0);
    assert_says(
        RUN("eval", "old", "gaps.cache"), 1,
        "gaps.cache is the cache of a table with other values for missing numbers than the model's table: use the table "
        "itself\n");
    assert_says(RUN("eval", "now", "gaps.cache"), 1, "other values for missing numbers");
    program_assert_status(RUN("eval", "now", "gaps.csv"), 0);
    program_assert_status(RUN("eval", "model", "m.cache"), 0);
}

static void columns_with_little_or_nothing_are_no_failure(void **state) {
    (void)state;
    static const char *const TABLES[] = {
        "y,a,b\n1,,2\n0,NA,3\n1,?,1\n0,,4\n",   "y,a\n1,\n0,NA\n1,?\n0,\n",
        "y,a,b\n1,7,2\n0,,3\n1,7,1\n0,,4\n",    "y,a\n1,8e17\n0,\n1,7e17\n0,1\n",
        "y,a,b\n1,red,\n0,,3\n1,red,1\n0,?,\n", "y,a\n1,3e38\n0,\n1,3e38\n0,-3e38\n",
    };
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
        write_text("few.csv", TABLES[i]);
        program_assert_status(RUN("-q", "-w", "2", "-o", "few", "few.csv"), 0);
        char *scores = SAID("predict", "--scores", "few", "few.csv");
        assert_null(strstr(scores, "nan"));
        assert_null(strstr(scores, "inf"));
        free(scores);
    }
    write_text("few.csv", "y,a\n1,1\n,2\n0,\n");
    assert_says(RUN(TRAIN, "few.csv"), 1, "few.csv:3:1: column \"y\": expected a label, found nothing; --skip-bad-lines");
}

static void missing_numbers_that_training_had_not_are_named_without_their_ids(void **state) {
    (void)state;
    write_text("full.csv", "y,a,b\n1,1,2\n0,2,3\n1,3,1\n0,1,4\n");
    write_text("gap.csv", "y,a,b\n1,,2\n0,2,3\n");
    program_assert_status(RUN(TRAIN, "-o", "full", "full.csv"), 0);
    struct program *p = RUN("predict", "full", "gap.csv");
    assert_says(p, 0, "gap.csv: numbers are missing in columns where none was in training");
    assert_null(strstr(p->text[ERR], "46116860"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_model_learns_what_missing_says_as_from_marks_by_hand),
        PROGRAM_TEST(where_numbers_are_missing_is_said),
        PROGRAM_TEST(a_model_as_csv_names_the_marks),
        PROGRAM_TEST(data_info_calls_marks_by_their_names),
        PROGRAM_TEST(liblinears_format_refuses_marks_and_categories_by_name),
        PROGRAM_TEST(numbers_that_are_missing_far_behind_the_beginning_are_marked),
        PROGRAM_TEST(a_packed_file_and_a_pipe_give_the_same_bits),
        PROGRAM_TEST(what_was_never_missing_counts_as_the_mean),
        PROGRAM_TEST(a_model_of_text_reads_what_is_missing_as_0),
        PROGRAM_TEST(a_model_of_before_reads_tables_as_it_did),
        PROGRAM_TEST(missing_numbers_that_training_had_not_are_named_without_their_ids),
        PROGRAM_TEST(columns_with_little_or_nothing_are_no_failure),
    };
    return cmocka_run_group_tests_name("missing numbers", tests, make_missing, program_remove_folder);
}
