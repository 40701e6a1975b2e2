/* Numbers that are missing in a table as text: what they count as, the marks that say where, and the plan that keeps both. */
#include "data_file.h"

#include "files/csv_line.h"
#include "files/csv_wish.h"

#define PLAN                                                                                                               \
    "{\"version\":2,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"y\",\"label\"],[\"a\",\"number\"," \
    "1000.5],[\"b\",\"number\",null],[\"c\",\"number\",0.0],[\"d\",\"category\"]]}"
#define OLD_PLAN                                                                                                            \
    "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"y\",\"label\"],[\"a\",\"number\"]," \
    "[\"b\",\"number\"],[\"c\",\"number\"],[\"d\",\"category\"]]}"

/* A line's row by a plan as text: "1:5" is a number, "?1:1" the mark of feature 1, "=1" a category. Room is exact, so that
 * AddressSanitizer sees one nonzero too many. */
static void show_row(const char *plan_text, const char *line, char *out, size_t bytes) {
    struct shmt_csv_plan plan;
    struct shmt_line_fault fault;
    assert_int_equal(shmt_csv_plan_parse(plan_text, &plan, NULL), 0);
    const uint64_t room = shmt_csv_row_max(&plan, strlen(line));
    struct shmt_row row = {.id = malloc(room * sizeof *row.id), .value = malloc(room * sizeof *row.value)};
    assert_int_equal(shmt_csv_parse(&plan, line, g_c_locale, &row, &fault), 0);
    out[0] = '\0';
    for (uint64_t i = 0, n = 0; i < row.n; i++) {
        uint32_t feature;
        const char *before = i > 0 ? " " : "";
        assert_true(i == 0 || row.id[i - 1] < row.id[i]);
        assert_true(row.id[i] >= row.min_id && row.id[i] <= row.max_id);
        if (shmt_csv_is_mark(row.id[i], &feature))
            n += (uint64_t)snprintf(out + n, bytes - n, "%s?%u:%g", before, feature, (double)row.value[i]);
        else if (row.id[i] >= SHMT_CSV_CATEGORY_ID)
            n += (uint64_t)snprintf(out + n, bytes - n, "%s=%g", before, (double)row.value[i]);
        else
            n += (uint64_t)snprintf(out + n, bytes - n, "%s%u:%g", before, (unsigned)row.id[i], (double)row.value[i]);
    }
    free(row.id);
    free(row.value);
    shmt_csv_plan_fini(&plan);
}

static void assert_row(const char *plan, const char *line, const char *row) {
    char shown[256];
    show_row(plan, line, shown, sizeof shown);
    assert_string_equal(shown, row);
}

/* The plan that a table's beginning gives, in which the label is y: what stands behind the numbers' kind. */
static void assert_note(const char *text, const struct shmt_csv_wish *csv, const char *part) {
    const struct shmt_source_wish wish = {.name = g_path, .csv = csv};
    struct shmt_source *source;
    struct shmt_error e = {0};
    write_text(text);
    assert_int_equal(shmt_source_open_as(&wish, &source, &e), 0);
    if (!strstr(shmt_source_note(source), part)) print_error("expected %s in %s\n", part, shmt_source_note(source));
    assert_non_null(strstr(shmt_source_note(source), part));
    shmt_source_close(source);
}

/* ---- rows ---- */

static void a_missing_number_counts_as_what_its_column_says_and_is_marked(void **state) {
    (void)state;
    assert_row(PLAN, "1,,,,\n", "1:1000.5 ?1:1 ?3:1");
    assert_row(PLAN, "1,NA,,3,red\n", "1:1000.5 3:3 ?1:1 =1");
    assert_row(PLAN, "1,2,,\"NaN\" ,\n", "1:2 ?3:1");
    assert_row(PLAN, "1,2,,0,\n", "1:2");
}

static void where_most_are_missing_those_that_are_there_are_marked(void **state) {
    (void)state;
    assert_row(PLAN, "1,2,7,3,\n", "1:2 2:7 3:3 ?2:1");
    assert_row(PLAN, "1,2,0,3,\n", "1:2 3:3 ?2:1");
    assert_row(PLAN, "1,2,\"0.5\",3,\n", "1:2 2:0.5 3:3 ?2:1");
}

static void a_row_has_room_for_marks_that_take_no_byte(void **state) {
    (void)state;
    enum { COLUMNS = 200 };
    char plan[8192] = "{\"version\":2,\"delimiter\":\",\",\"header\":false,\"labels\":null,\"columns\":[[null,\"label\"]";
    char line[COLUMNS + 3] = "1", shown[8192];
    for (int i = 0; i < COLUMNS; i++) {
        strcat(plan, ",[null,\"number\",2.5]");
        strcat(line, ",");
    }
    strcat(plan, "]}");
    strcat(line, "\n");
    show_row(plan, line, shown, sizeof shown);
    assert_non_null(strstr(shown, "200:2.5 ?1:1 "));
    assert_non_null(strstr(shown, " ?200:1"));
}

static void by_an_older_plan_what_is_missing_is_absent(void **state) {
    (void)state;
    assert_row(OLD_PLAN, "1,,,,\n", "");
    assert_row(OLD_PLAN, "1,NA,7,3,red\n", "2:7 3:3 =1");
}

/* ---- plans ---- */

static void a_column_counts_what_is_missing_as_its_mean(void **state) {
    (void)state;
    assert_note("y,a,b\n1,1,7\n0,,7\n1,4,7\n", NULL, "[[\"y\",\"label\"],[\"a\",\"number\",2.5],[\"b\",\"number\",7.0]]");
    assert_note("y,a\n1,0.1\n0,0.1\n", NULL, "[\"a\",\"number\",0.100000001]");
    assert_note("y,a\n1,1e99\n0,3\n", NULL, "[\"a\",\"number\",3.0]"); /* the other one is for the parser to refuse */
    assert_note("1,1\n0,\n1,4\n", NULL, "[[null,\"label\"],[null,\"number\",2.5]]");
}

static void a_column_in_which_most_are_missing_says_so(void **state) {
    (void)state;
    assert_note("y,a,b\n1,1,7\n0,,7\n1,,7\n", NULL, "[\"a\",\"number\",null],[\"b\",\"number\",7.0]");
    assert_note("y,a,b\n1,?,7\n0,NA,7\n", NULL, "[\"a\",\"number\",null],[\"b\",\"number\",7.0]");
    assert_note("y,a,b\n1,1,7\n0,,7\n", NULL, "[\"a\",\"number\",1.0],[\"b\",\"number\",7.0]");
}

/* A table that is cut into files behind its first rows has the same plan. */
static void the_mean_is_of_the_first_rows(void **state) {
    (void)state;
    char text[4096] = "y,a\n";
    for (int i = 0; i < 256; i++) strcat(text, i % 2 ? "0,1\n" : "1,2\n");
    assert_note(text, NULL, "[\"a\",\"number\",1.5]");
    for (int i = 0; i < 100; i++) strcat(text, "0,100\n");
    assert_note(text, NULL, "[\"a\",\"number\",1.5]");
}

static void a_table_that_is_read_for_another_model_has_no_marks(void **state) {
    (void)state;
    const struct shmt_csv_wish unmarked = {.unmarked = true}, old = {.plan = OLD_PLAN};
    assert_note("y,a\n1,1\n0,\n", &unmarked,
                "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":["
                "[\"y\",\"label\"],[\"a\",\"number\"]]}");
    assert_note("y,d,c,b,a\n1,1,1,1,1\n", &old, OLD_PLAN);
}

static void a_plan_comes_back_from_its_text_and_no_other_is_taken(void **state) {
    (void)state;
    static const char *const GOOD[] = {PLAN, OLD_PLAN};
    static const char *const BAD[] = {"[\"a\",\"number\"]",        "[\"a\",\"number\",\"1\"]", "[\"a\",\"number\",true]",
                                      "[\"a\",\"number\",1e39]",   "[\"a\",\"number\",1,1,1]", "[\"a\",\"category\",1]",
                                      "[\"a\",\"category\",null]", "[\"a\",\"ignored\",1]"};
    struct shmt_csv_plan plan;
    char text[256];
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        assert_int_equal(shmt_csv_plan_parse(GOOD[i], &plan, NULL), 0);
        char *again = shmt_csv_plan_text(&plan);
        assert_string_equal(again, GOOD[i]);
        free(again);
        shmt_csv_plan_fini(&plan);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        snprintf(text, sizeof text, "{\"version\":2,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[%s]}",
                 BAD[i]);
        assert_int_equal(shmt_csv_plan_parse(text, &plan, NULL), SHMTRAIN_E_DATA);
    }
}

static int make_table_folder(void **state) {
    const int rc = make_folder(state);
    strcpy(g_path, "t.csv");
    return rc;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_number_counts_as_what_its_column_says_and_is_marked),
        cmocka_unit_test(where_most_are_missing_those_that_are_there_are_marked),
        cmocka_unit_test(a_row_has_room_for_marks_that_take_no_byte),
        cmocka_unit_test(by_an_older_plan_what_is_missing_is_absent),
        cmocka_unit_test(a_column_counts_what_is_missing_as_its_mean),
        cmocka_unit_test(a_column_in_which_most_are_missing_says_so),
        cmocka_unit_test(the_mean_is_of_the_first_rows),
        cmocka_unit_test(a_table_that_is_read_for_another_model_has_no_marks),
        cmocka_unit_test(a_plan_comes_back_from_its_text_and_no_other_is_taken),
    };
    return cmocka_run_group_tests(tests, make_table_folder, remove_folder);
}
