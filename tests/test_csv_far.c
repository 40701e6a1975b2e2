/* Columns of tables as text whose numbers are far from 0: from where they are counted, and the rows that this gives. */
#include "data_file.h"

#include "files/csv_line.h"
#include "files/csv_wish.h"

#define PLAN                                                                                                                   \
    "{\"version\":2,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"y\",\"label\"],[\"t\",\"number\",2.5," \
    "1700000000],[\"b\",\"number\",null,-5000],[\"c\",\"number\",1.0]]}"

static void assert_row(const char *line, const char *expected) {
    struct shmt_csv_plan plan;
    struct shmt_line_fault fault;
    uint64_t id[16];
    float value[16];
    struct shmt_row row = {.id = id, .value = value};
    char shown[256] = "";
    assert_int_equal(shmt_csv_plan_parse(PLAN, &plan, NULL), 0);
    assert_int_equal(shmt_csv_parse(&plan, line, g_c_locale, &row, &fault), 0);
    for (uint64_t i = 0, n = 0; i < row.n; i++) {
        uint32_t feature;
        const bool is_mark = shmt_csv_is_mark(id[i], &feature);
        n += (uint64_t)snprintf(shown + n, sizeof shown - n, "%s%s%u:%.9g", i > 0 ? " " : "", is_mark ? "?" : "", feature,
                                (double)value[i]);
    }
    assert_string_equal(shown, expected);
    shmt_csv_plan_fini(&plan);
}

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

/* A float near 1.7e9 is a multiple of 128. */
static void numbers_are_counted_from_a_number_among_them(void **state) {
    (void)state;
    assert_row("1,1700000000.25,-5001,1700000001\n", "1:0.25 2:-1 3:1.7e+09 ?2:1");
    assert_row("1,\"1700000003\" ,-5000,0\n", "1:3 ?2:1");
    assert_row("1,17e8,,0\n", "");
    assert_row("1,0,-5e3,2\n", "1:-1.7e+09 3:2 ?2:1");
    assert_row("1,,,\n", "1:2.5 3:1 ?1:1 ?3:1");
}

static void what_is_beyond_all_floats_is_refused(void **state) {
    (void)state;
    struct shmt_csv_plan plan;
    struct shmt_line_fault fault;
    uint64_t id[16];
    float value[16];
    struct shmt_row row = {.id = id, .value = value};
    assert_int_equal(shmt_csv_plan_parse(PLAN, &plan, NULL), 0);
    assert_int_equal(shmt_csv_parse(&plan, "1,1e39,1,1\n", g_c_locale, &row, &fault), SHMTRAIN_E_DATA);
    assert_string_equal(fault.text, "column \"t\": expected a number between -3.4e38 and 3.4e38, found \"1e39\"");
    assert_int_equal(shmt_csv_parse(&plan, "1,17x,1,1\n", g_c_locale, &row, &fault), SHMTRAIN_E_DATA);
    shmt_csv_plan_fini(&plan);
}

static void a_mean_of_a_thousand_spreads_is_far(void **state) {
    (void)state;
    assert_note("y,t\n1,1700000030\n0,1700000050\n", NULL, "[\"t\",\"number\",0.0,1700000040]");
    assert_note("y,t\n1,-1700000030\n0,-1700000050\n0,\n", NULL, "[\"t\",\"number\",0.0,-1700000040]");
    assert_note("y,t\n1,1700000123.5\n0,1700000124.75\n", NULL, "[\"t\",\"number\",0.125,1700000124]");
    assert_note("y,t\n1,1700000123456789\n0,1700000987654321\n", NULL, "1700001000000000]");
    assert_note("y,t\n1,2019\n0,1990\n1,2005\n", NULL, "[\"t\",\"number\",2004.66663]");
    assert_note("y,t\n1,20.0001\n0,20.0002\n", NULL, "[\"t\",\"number\",20.0001507]"); /* a float tells these apart */
    assert_note("y,t\n1,1700000030\n0,1700000050\n0,0\n", NULL, "[\"t\",\"number\",1.13333338e9]");
    assert_note("y,t\n1,1e19\n0,1e19\n", NULL, "[\"t\",\"number\",9.99999998e18]"); /* as it is */
}

/* Rows in the order of a slow clock; but a column of ones may be there to be learned as a bias. */
static void numbers_that_are_equal_at_the_beginning_are_far_where_floats_lack_whole_numbers(void **state) {
    (void)state;
    assert_note("y,t\n1,1700000123\n0,1700000123\n", NULL, "[\"t\",\"number\",0.0,1700000123]");
    assert_note("y,t\n1,2020\n0,2020\n", NULL, "[\"t\",\"number\",2020.0]");
    assert_note("y,t\n1,1\n0,1\n", NULL, "[\"t\",\"number\",1.0]");
}

static void numbers_are_as_they_are_for_models_that_need_it(void **state) {
    (void)state;
    const struct shmt_csv_wish as_they_are = {.as_they_are = true}, unmarked = {.unmarked = true};
    assert_note("y,t\n1,1700000030\n0,1700000050\n", &as_they_are, "[\"t\",\"number\",1.7e9]");
    assert_note("y,t\n1,1700000030\n0,1700000050\n", &unmarked, "[\"t\",\"number\"]]");
}

/* As columns of the table that the parameters come from with which a run begins. */
static void numbers_count_as_in_the_table_of_before(void **state) {
    (void)state;
    static const char OLD[] =
        "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"y\",\"label\"],"
        "[\"t\",\"number\"]]}";
    const struct shmt_csv_wish before = {.before = PLAN}, old = {.before = OLD}, none = {.before = "{"};
    assert_note("y,new,t,b\n1,3,1800000030,1\n0,4,1800000050,2\n", &before,
                "[\"new\",\"number\",3.5],[\"t\",\"number\",2.5,1700000000],[\"b\",\"number\",null,-5000]]");
    assert_note("1,1800000030,1\n0,1800000050,2\n", &before, "[null,\"number\",2.5,1700000000],[null,\"number\",null,-5000]]");
    assert_note("y,t\n1,1700000030\n0,1700000050\n", &old, "[\"t\",\"number\"]]");
    assert_note("y,t\n1,1700000030\n0,1700000050\n", &none, "1700000040]");
}

static void a_plan_comes_back_from_its_text_and_no_other_is_taken(void **state) {
    (void)state;
    static const char *const BAD[] = {"0", "1.5", "1e9", "\"7\"", "null", "5000000000000000000", "7,7"};
    struct shmt_csv_plan plan;
    char text[256];
    assert_int_equal(shmt_csv_plan_parse(PLAN, &plan, NULL), 0);
    char *again = shmt_csv_plan_text(&plan);
    assert_string_equal(again, PLAN);
    free(again);
    shmt_csv_plan_fini(&plan);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        snprintf(text, sizeof text,
                 "{\"version\":2,\"delimiter\":\",\",\"header\":true,\"labels\":null,\"columns\":[[\"a\",\"number\",1.0,%s]]}",
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
        cmocka_unit_test(numbers_are_counted_from_a_number_among_them),
        cmocka_unit_test(what_is_beyond_all_floats_is_refused),
        cmocka_unit_test(a_mean_of_a_thousand_spreads_is_far),
        cmocka_unit_test(numbers_that_are_equal_at_the_beginning_are_far_where_floats_lack_whole_numbers),
        cmocka_unit_test(numbers_are_as_they_are_for_models_that_need_it),
        cmocka_unit_test(numbers_count_as_in_the_table_of_before),
        cmocka_unit_test(a_plan_comes_back_from_its_text_and_no_other_is_taken),
    };
    return cmocka_run_group_tests(tests, make_table_folder, remove_folder);
}
