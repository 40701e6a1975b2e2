/* cli: the page of a comparison carries what it draws from, as JSON that nothing can break out of, and needs nothing but itself. How it
 * looks is tests/check_html's: with the name of a folder this program writes its pages there, for a browser. */
#include "compare_help.h"

#include "cli/compare/page.h"

static void put_html(const struct comparison *c, FILE *out) { assert_int_equal(compare_put_html(c, out), 0); }
static void put_json(const struct comparison *c, FILE *out) { assert_int_equal(compare_put_json(c, out), 0); }

static unsigned count(const char *text, const char *words) {
    unsigned n = 0;
    for (; (text = strstr(text, words)); text += strlen(words)) n++;
    return n;
}

/* An object that the page carries, as a browser takes it. */
static json_t *object_of(const char *page, const char *id) {
    char tag[64];
    snprintf(tag, sizeof tag, "<script type=\"application/json\" id=\"%s\">", id);
    assert_int_equal(count(page, tag), 1);
    char *text = strdup(strstr(page, tag) + strlen(tag));
    *strstr(text, "</script") = '\0';
    for (const char *at = text; *at; at++) assert_true(*at >= ' ' && *at < 0x7f && *at != '<');
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    free(text);
    return o;
}

static json_t *page_object_of(const struct comparison *c) {
    char *page = text_of(put_html, c);
    json_t *o = object_of(page, "page");
    free(page);
    return o;
}

static const char *word(json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static json_t *part(json_t *o, const char *key, size_t i) { return json_array_get(json_object_get(o, key), i); }
static const char *item(json_t *list, size_t i) { return json_string_value(json_array_get(list, i)); }

/* ---- comparisons ---- */

static const struct made QUICK = {"async", {0.40, 0.36, 0.34, 0.33}, 0.5, 0, 0, 3};
static const struct made SLOW = {"sync", {0.38, 0.33, 0.32, 0.32}, 2, 0.5, 0, 0};

static struct comparison *begin(void) {
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->data = "x";
    snprintf(c->title, sizeof c->title, "x");
    c->target = NAN;
    c->seeds = 1;
    return c;
}

static struct comparison *make_three_seeds(void) {
    struct comparison *c = begin();
    c->seeds = 3;
    c->first_seed = UINT64_MAX / 2 - 2; /* more than JavaScript can count to */
    add_made(c, &QUICK);
    add_made(c, &SLOW);
    for (unsigned k = 1; k < 3; k++) {
        add_seed(&c->run[0], &QUICK, 1 + 0.001 * k, 1);
        add_seed(&c->run[1], &SLOW, 1 + 0.001 * k, 1);
    }
    compare_letter(c);
    compare_work_out(c);
    return c;
}

static struct comparison *make_three_numbers(void) {
    struct comparison *c = begin();
    c->n_workers = 3;
    memcpy(c->workers, (uint32_t[]){1, 2, 4}, 3 * sizeof *c->workers);
    for (unsigned i = 0; i < 3; i++) add_workers(c, &QUICK, c->workers[i], 1.0 / (i + 1));
    for (unsigned i = 0; i < 3; i++) add_workers(c, &SLOW, c->workers[i], 1);
    assert_int_equal(c->n_modes, 2);
    compare_letter(c);
    compare_work_out(c);
    return c;
}

static struct comparison *make_nothing(void) {
    struct comparison *c = begin();
    add_refused(c, "ssp", SHMTRAIN_E_USAGE, "<no> & \"never\"");
    compare_work_out(c);
    return c;
}

/* As many modes as there may be, and losses that are hardly any. */
static struct comparison *make_large(void) {
    struct comparison *c = make_comparison();
    static const struct made ODD = {"ssp:123456789012", {NAN, 1e-9, 1e9, INFINITY}, 1e-9, 0.5, 0, 1e12};
    while (c->n < COMPARE_MODES) add_made(c, &ODD);
    compare_letter(c);
    compare_work_out(c);
    return c;
}

#define BREAK_OUT "</script><!--<script></noscript><b>\xe2\x80\xa8 \" & '"
#define NO_UTF8   "/data/gr\xc3\xbc\xc3\x9f\xff"

/* Names that would be markup, or the end of what they stand in. */
static struct comparison *make_hostile(void) {
    static char *argv[] = {(char *)"./shmtrain", (char *)"compare", (char *)BREAK_OUT, (char *)NO_UTF8, NULL};
    static const struct arguments arguments = {.argv = argv, .argc = 4};
    struct comparison *c = make_comparison();
    c->arguments = &arguments;
    snprintf(c->title, sizeof c->title, "%s", BREAK_OUT);
    snprintf(c->run[3].why, sizeof c->run[3].why, "cannot open %s", BREAK_OUT);
    snprintf(c->replacing, sizeof c->replacing, "--late %s", BREAK_OUT);
    c->run[0].kept->report.mode = "sync"; /* so that the sentence about what replaces it is said */
    return c;
}

static struct comparison *(*const MAKE[])(void) = {make_comparison, make_three_seeds, make_three_numbers,
                                                   make_nothing,    make_large,       make_hostile};
static const char *const NAMES[] = {"made_all", "made_seeds", "made_workers", "made_nothing", "made_large", "made_hostile"};
#define N_MADE (sizeof MAKE / sizeof *MAKE)

/* ---- the page ---- */

static void the_page_is_the_file_with_the_comparison_in_its_places(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MADE; i++) {
        struct comparison *c = MAKE[i]();
        char *page = text_of(put_html, c);
        const size_t head = (size_t)(strstr(COMPARE_PAGE, "@NAME@") - COMPARE_PAGE);
        const char *tail = strstr(COMPARE_PAGE, "@PAGE@") + strlen("@PAGE@");
        assert_memory_equal(page, "<!DOCTYPE html>\n", 16);
        assert_memory_equal(page, COMPARE_PAGE, head);
        assert_string_equal(page + strlen(page) - strlen(tail), tail);
        static const char *const PLACES[] = {"@NAME@", "@TEXT@", "@COMPARISON@", "@PAGE@"};
        for (size_t k = 0; k < 4; k++) assert_null(strstr(page, PLACES[k]));
        free(page);
        destroy_comparison(c);
    }
}

static void the_page_needs_nothing_but_itself(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = text_of(put_html, c);
    assert_int_equal(count(page, "http"), count(page, "\"http://www.w3.org/2000/svg\"") + count(page, "http-equiv"));
    assert_says(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    static const char *const REFERENCES[] = {
        "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "import(", "fetch", "//fonts"};
    for (size_t i = 0; i < sizeof REFERENCES / sizeof *REFERENCES; i++)
        if (strstr(page, REFERENCES[i])) fail_msg("%s", REFERENCES[i]);
    assert_says(page, "<meta charset=\"utf-8\">");
    assert_says(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    assert_says(page, "@media print");
    assert_says(page, "prefers-color-scheme: dark");
    free(page);
    destroy_comparison(c);
}

static void the_page_carries_the_object_of_json(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MADE; i++) {
        struct comparison *c = MAKE[i]();
        char *page = text_of(put_html, c), *line = text_of(put_json, c);
        json_t *carried = object_of(page, "comparison"), *printed = json_loads(line, 0, NULL);
        assert_true(json_equal(carried, printed));
        json_decref(carried);
        json_decref(printed);
        free(line);
        free(page);
        destroy_comparison(c);
    }
}

static void no_name_breaks_out_of_its_place(void **state) {
    (void)state;
    struct comparison *c = make_hostile();
    char *page = text_of(put_html, c);
    assert_int_equal(count(page, "<script"), count(COMPARE_PAGE, "<script"));
    assert_int_equal(count(page, "</script"), count(COMPARE_PAGE, "</script"));
    assert_int_equal(count(page, "</noscript"), 1);
    assert_int_equal(count(page, "<!--"), count(COMPARE_PAGE, "<!--"));
    assert_null(strstr(page, "<b>\xe2"));
    json_t *o = object_of(page, "page");
    assert_string_equal(item(json_object_get(o, "command"), 1), BREAK_OUT);
    assert_string_equal(item(json_object_get(o, "command"), 2), "/data/gr?\?\?\?\?");
    assert_string_equal(word(o, "name"), strrchr(BREAK_OUT, '/') + 1);
    assert_non_null(strstr(word(part(o, "runs", 3), "why"), BREAK_OUT));
    json_decref(o);
    free(page);
    destroy_comparison(c);
}

/* The terminal's table. */
static void readers_without_scripts_have_the_table_and_the_sentences(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = text_of(put_html, c), *table = text_of(compare_put_table, c), *shown;
    assert_true(asprintf(&shown, "<pre>%s</pre>\n</noscript>", table) > 0); /* there is nothing in it to escape */
    assert_says(page, shown);
    assert_says(table, "\nFastest to ");
    free(shown);
    free(table);
    free(page);
    destroy_comparison(c);
}

/* ---- what has been put into words ---- */

static void cells_and_sentences_are_those_of_the_terminal(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    json_t *o = page_object_of(c);
    char cell[32];
    for (unsigned i = 0; i < 3; i++) {
        json_t *cells = json_object_get(part(o, "runs", i), "cells");
        int column;
        for (unsigned k = 1; (column = compare_column_at(c, k)) >= 0; k++) {
            json_t *its = json_array_get(cells, k - 1);
            assert_string_equal(word(its, "text"), compare_cell(c, &c->run[i], (unsigned)column, cell));
            assert_true(json_is_true(json_object_get(its, "best")) == compare_is_best(c, &c->run[i], (unsigned)column));
            assert_string_equal(word(its, "ends"), "");
        }
        assert_int_equal(json_array_size(cells), 7);
        assert_true(json_is_null(json_object_get(part(o, "runs", i), "why")));
    }
    assert_int_equal(json_array_size(json_object_get(o, "columns")), 8);
    assert_string_equal(item(part(o, "columns", 1), 0), "seconds");
    assert_string_equal(item(part(o, "columns", 1), 1), "to the target");
    assert_int_equal(strncmp(word(part(o, "runs", 3), "why"), "refused: adam cannot be written atomically", 42), 0);
    assert_non_null(strstr(item(json_object_get(o, "sentences"), 0), "1 % above the lowest of any epoch (sync)"));
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    const unsigned n = compare_sentences(c, sentence);
    assert_int_equal(json_array_size(json_object_get(o, "sentences")), n);
    for (unsigned i = 0; i < n; i++) assert_string_equal(item(json_object_get(o, "sentences"), i), sentence[i]);
    assert_string_equal(word(o, "name"), "a9a");
    assert_string_equal(word(o, "seed"), "1");
    assert_string_equal(item(json_object_get(o, "command"), 3), "a <b> & 'c'");
    json_decref(o);
    destroy_comparison(c);
}

/* Figures of each of them, and the ends beside the medians. */
static void every_seed_has_its_figures(void **state) {
    (void)state;
    struct comparison *c = make_three_seeds();
    json_t *o = page_object_of(c), *run = part(o, "runs", 1), *loss = part(run, "cells", 6), *seed = part(run, "seeds", 2);
    assert_int_equal(json_array_size(json_object_get(run, "seeds")), 3);
    assert_string_equal(word(loss, "text"), "0.32032");
    assert_string_equal(word(loss, "ends"), "0.32000 to 0.32064");
    assert_true(json_is_true(json_object_get(loss, "best")));
    assert_int_equal(json_array_size(seed), 6);
    assert_string_equal(item(seed, 0), "3");
    assert_string_equal(item(seed, 3), "0.32064");
    assert_string_equal(item(seed, 5), "2.0000");
    assert_int_equal(json_integer_value(json_object_get(o, "seeds")), 3);
    assert_string_equal(word(o, "seed"), "9223372036854775805 to 9223372036854775807");
    json_decref(o);
    destroy_comparison(c);
}

/* ---- curves ---- */

static json_t *plot_of(json_t *o, const char *name) { return json_object_get(json_object_get(o, "plots"), name); }
static double real(json_t *list, size_t i) { return json_number_value(json_array_get(list, i)); }

static void curves_have_axes_that_hold_them(void **state) {
    static const char *const PLOTS[] = {"epochs", "seconds"};
    (void)state;
    struct comparison *c = make_comparison();
    json_t *o = page_object_of(c);
    for (size_t i = 0; i < 2; i++) {
        json_t *plot = plot_of(o, PLOTS[i]), *curves = json_object_get(plot, "curves"), *x = json_object_get(plot, "x");
        assert_string_equal(word(plot, "x_title"), i == 0 ? "epochs" : "seconds of training");
        assert_int_equal(json_array_size(curves), 3);
        assert_true(json_array_size(json_object_get(x, "ticks")) >= 2);
        for (size_t k = 0; k < 3; k++) {
            json_t *points = json_object_get(json_array_get(curves, k), "points");
            assert_string_equal(word(json_array_get(curves, k), "name"), c->run[k].label);
            assert_int_equal(json_array_size(points), MADE_EPOCHS);
            const double last = real(json_array_get(points, MADE_EPOCHS - 1), 0);
            assert_int_equal(json_array_size(json_array_get(points, 0)), 2);
            NEAR(real(json_array_get(points, MADE_EPOCHS - 1), 1), c->run[k].final_loss);
            assert_int_equal(json_integer_value(json_object_get(json_array_get(curves, k), "look")), k);
            assert_true(last <= json_number_value(json_object_get(x, "to")));
        }
        NEAR(json_number_value(json_object_get(plot, "target")), c->target);
    }
    assert_true(json_is_null(plot_of(o, "speed_up")));
    json_decref(o);
    destroy_comparison(c);
}

static void of_several_seeds_each_point_has_ends(void **state) {
    (void)state;
    struct comparison *c = make_three_seeds();
    json_t *o = page_object_of(c), *points = json_object_get(part(plot_of(o, "epochs"), "curves", 0), "points");
    assert_int_equal(json_array_size(json_array_get(points, 0)), 4);
    NEAR(real(json_array_get(points, 3), 2), 0.33);
    NEAR(real(json_array_get(points, 3), 3), 0.33 * 1.002);
    json_decref(o);
    destroy_comparison(c);
}

/* A curve for each mode and the perfect one; of losses those of the most workers alone. */
static void several_numbers_of_workers_have_a_speed_up(void **state) {
    (void)state;
    struct comparison *c = make_three_numbers();
    json_t *o = page_object_of(c), *plot = plot_of(o, "speed_up");
    assert_string_equal(word(plot, "title"), "speed-up over 1 worker");
    assert_string_equal(word(plot, "at_name"), "2 cores");
    NEAR(json_number_value(json_object_get(plot, "at")), 2);
    assert_int_equal(json_array_size(json_object_get(plot, "curves")), 3);
    assert_true(json_is_true(json_object_get(part(plot, "curves", 2), "guide")));
    assert_true(json_is_false(json_object_get(part(plot, "curves", 1), "guide")));
    assert_int_equal(json_array_size(json_object_get(plot_of(o, "epochs"), "curves")), 2);
    assert_int_equal(json_integer_value(json_object_get(o, "most_workers")), 4);
    for (size_t i = 0; i < 6; i++) assert_true(json_is_true(json_object_get(part(o, "runs", i), "shown")) == (i % 3 == 2));
    json_decref(o);
    destroy_comparison(c);
}

static void what_has_no_figures_has_no_plots(void **state) {
    (void)state;
    struct comparison *c = make_nothing();
    json_t *o = page_object_of(c);
    assert_string_equal(word(part(o, "runs", 0), "why"), "refused: <no> & \"never\"");
    assert_true(json_is_null(plot_of(o, "epochs")) && json_is_null(plot_of(o, "seconds")) &&
                json_is_null(plot_of(o, "speed_up")));
    assert_int_equal(json_array_size(json_object_get(o, "sentences")), 0);
    json_decref(o);
    destroy_comparison(c);
}

/* ---- escaping ---- */

static void assert_escaped(const char *text, const char *expected) {
    char *got = NULL;
    size_t bytes;
    FILE *out = open_memstream(&got, &bytes);
    assert_non_null(out);
    compare_put_escaped(out, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    free(got);
}

static void text_is_escaped_and_utf8_afterwards(void **state) {
    (void)state;
    assert_escaped("", "");
    assert_escaped("a<b>&\"c'", "a&#60;b&#62;&#38;&#34;c'");
    assert_escaped("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80?", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80?");
    assert_escaped("\xff\xc3(\xe2\x82", "?\?(?\?");      /* no UTF-8, cut off */
    assert_escaped("\xc0\xaf\xed\xa0\x80", "?\?\?\?\?"); /* longer than need be, half a pair */
    assert_escaped("\x1b[2J\x7f\xc2\x9b", "?[2J?\?\?");  /* control characters */
    assert_escaped("\xef\xbf\xbf\xf4\x90\x80\x80", "?\?\?\?\?\?\?");
}

/* ---- for a browser ---- */

static int write_pages(const char *folder) {
    char path[4096];
    int status = 0;
    for (size_t i = 0; i < N_MADE; i++) {
        struct comparison *c = MAKE[i]();
        snprintf(path, sizeof path, "%s/%s.html", folder, NAMES[i]);
        FILE *out = fopen(path, "w");
        if (!out || compare_put_html(c, out) != 0 || fclose(out) != 0) status = 1;
        destroy_comparison(c);
    }
    return status;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_the_file_with_the_comparison_in_its_places),
        cmocka_unit_test(the_page_needs_nothing_but_itself),
        cmocka_unit_test(the_page_carries_the_object_of_json),
        cmocka_unit_test(no_name_breaks_out_of_its_place),
        cmocka_unit_test(readers_without_scripts_have_the_table_and_the_sentences),
        cmocka_unit_test(cells_and_sentences_are_those_of_the_terminal),
        cmocka_unit_test(every_seed_has_its_figures),
        cmocka_unit_test(curves_have_axes_that_hold_them),
        cmocka_unit_test(of_several_seeds_each_point_has_ends),
        cmocka_unit_test(several_numbers_of_workers_have_a_speed_up),
        cmocka_unit_test(what_has_no_figures_has_no_plots),
        cmocka_unit_test(text_is_escaped_and_utf8_afterwards),
    };
    if (argc > 1) return write_pages(argv[1]);
    return cmocka_run_group_tests_name("compare_html", tests, NULL, NULL);
}
