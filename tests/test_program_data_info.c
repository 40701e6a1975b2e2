/* The real program from outside: what data is like (data info). */
#include "caches_help.h"

static json_t *info(const char *data) {
    struct program *p = RUN("data", "info", "--json", data);
    program_assert_status(p, 0);
    return program_json(p);
}

static long long whole(const json_t *o, const char *key) {
    if (!json_is_integer(json_object_get(o, key))) fail_msg("no whole number %s", key);
    return json_integer_value(json_object_get(o, key));
}

static void info_counts(void **state) {
    (void)state;
    program_write_file("i.svm", "1 1:1 3:2\n-1 1:1\n1 1:1 3:2\n-1 1:1 7:-0.5\n1 1:1 3:2\n-1 1:1 3:20000\n");
    json_t *o = info("i.svm");
    assert_int_equal(whole(o, "examples"), 6);
    assert_int_equal(whole(o, "features"), 7);
    assert_int_equal(whole(o, "features_occurring"), 3);
    assert_int_equal(whole(o, "nonzeros"), 11);
    assert_int_equal(whole(o, "nonzeros_least"), 1);
    assert_int_equal(whole(o, "nonzeros_median"), 2);
    assert_int_equal(whole(o, "nonzeros_most"), 2);
    assert_int_equal(whole(o, "empty_examples"), 0);
    assert_int_equal(whole(o, "duplicates"), 2);
    assert_int_equal(whole(o, "features_once"), 1);
    assert_int_equal(whole(o, "features_constant"), 1);
    assert_true(json_number_value(json_object_get(o, "features_scale")) == 40000);
    assert_true(json_number_value(json_object_get(o, "value_least")) == -0.5);
    assert_true(json_number_value(json_object_get(o, "value_most")) == 20000);
    const json_t *most = json_array_get(json_object_get(o, "most_frequent"), 1);
    assert_int_equal(whole(most, "id"), 3);
    assert_int_equal(whole(most, "examples"), 4);
    const json_t *labels = json_object_get(o, "labels");
    assert_int_equal(json_array_size(labels), 2);
    assert_int_equal(whole(json_array_get(labels, 0), "examples"), 3);
    const json_t *octaves = json_object_get(o, "features_by_examples"); /* 1, 2-3, 4-7 */
    assert_int_equal(json_array_size(octaves), 3);
    assert_int_equal(whole(json_array_get(octaves, 2), "features"), 2);
    json_decref(o);
}

static void info_of_a_cache_is_that_of_its_text(void **state) {
    (void)state;
    convert("t.svm", "t.cache");
    struct program *text = RUN("data", "info", "t.svm"), *cache = RUN("data", "info", "t.cache");
    program_assert_status(text, 0);
    program_assert_status(cache, 0);
    assert_string_equal(strchr(text->text[OUT], '\n'), strchr(cache->text[OUT], '\n')); /* but for the name */
}

static void info_fits_80_columns_and_names_what_may_be_a_mistake(void **state) {
    static const char *const WORDS[] = {"2 examples equal an earlier one", "1 examples have no feature", "features occur once",
                                        "features differ in scale: id 900000 is 2e+06 times as large as id 7",
                                        "4 of 900,000 ids occur"};
    (void)state;
    program_write_file("m.svm", "1 1:1 3:2\n-1 1:1\n1 1:1 3:2\n-1 1:1 7:-0.5\n1 1:1 3:2\n-1 1:1 3:2 900000:1000000\n-1\n");
    struct program *p = RUN("data", "info", "m.svm");
    program_assert_status(p, 0);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strstr(p->text[OUT], WORDS[i])) fail_msg("\"%s\" is not in:\n%s", WORDS[i], p->text[OUT]);
    p = RUN("data", "info", "builtin:sparse:examples=20000,features=100000");
    program_assert_status(p, 0);
    for (const char *line = p->text[OUT]; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("more than 80 columns: %.*s", (int)strcspn(line, "\n"), line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(info_counts),
        PROGRAM_TEST(info_of_a_cache_is_that_of_its_text),
        PROGRAM_TEST(info_fits_80_columns_and_names_what_may_be_a_mistake),
    };
    program_forget_options();
    return cmocka_run_group_tests_name("data info", tests, make_all, program_remove_folder);
}
