/* cli: the page of a comparison is well-formed, needs nothing but itself, and says what the reports say. */
#include "compare_help.h"

#include <ctype.h>

#include "cli/compare/chart.h"
#include "cli/compare/markup.h"

/* ---- a small checker of XML ---- */

#define MOST_DEPTH 64

struct xml {
    const char *at;
    char open[MOST_DEPTH][16]; /* names of the elements that are open */
    unsigned depth, elements;
};

static void bad(const struct xml *x, const char *what) { fail_msg("%s at: %.60s", what, x->at); }

static size_t name_length(const char *at) {
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '-' || at[n] == ':') n++;
    return n;
}

/* & begins one of five entities, < does not stand in values. */
static void take_text(struct xml *x, const char *end) {
    static const char *const ENTITIES[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (; *x->at != '\0' && !strchr(end, *x->at); x->at++) {
        bool known = *x->at != '&';
        for (size_t i = 0; i < sizeof ENTITIES / sizeof *ENTITIES && !known; i++)
            known = strncmp(x->at, ENTITIES[i], strlen(ENTITIES[i])) == 0;
        if (!known) bad(x, "an & that begins nothing");
        if ((unsigned char)*x->at < ' ' && *x->at != '\n') bad(x, "a control character");
    }
}

/* Name="value", each name once. */
static void take_attributes(struct xml *x) {
    char seen[16][24];
    unsigned n = 0;
    while (isspace((unsigned char)*x->at)) {
        x->at += strspn(x->at, " \n");
        const size_t length = name_length(x->at);
        if (length == 0) return;
        if (length >= sizeof *seen || n == 16) bad(x, "more than the checker takes");
        snprintf(seen[n], sizeof *seen, "%.*s", (int)length, x->at);
        for (unsigned i = 0; i < n; i++)
            if (strcmp(seen[i], seen[n]) == 0) bad(x, "an attribute that comes twice");
        n++;
        x->at += length;
        if (strncmp(x->at, "=\"", 2) != 0) bad(x, "an attribute without a value in quotes");
        x->at += 2;
        take_text(x, "\"<");
        if (*x->at++ != '"') bad(x, "an attribute without an end");
    }
}

static void take_tag(struct xml *x) {
    const bool closes = x->at[1] == '/';
    x->at += closes ? 2 : 1;
    const size_t n = name_length(x->at);
    if (n == 0 || n >= sizeof *x->open) bad(x, "a tag without a name");
    if (closes) {
        if (x->depth == 0 || strlen(x->open[x->depth - 1]) != n || strncmp(x->open[x->depth - 1], x->at, n) != 0)
            bad(x, "an end that fits no beginning");
        x->depth--;
        x->at += n;
    } else {
        if (x->depth == MOST_DEPTH) bad(x, "too deep");
        snprintf(x->open[x->depth++], sizeof *x->open, "%.*s", (int)n, x->at);
        x->elements++;
        x->at += n;
        take_attributes(x);
        if (*x->at == '/') {
            x->at++;
            x->depth--;
        }
    }
    if (*x->at++ != '>') bad(x, "a tag without an end");
}

/* Returns how many elements there are. */
static unsigned check_xml(const char *text) {
    struct xml x = {.at = text};
    while (*x.at != '\0') {
        if (*x.at == '<')
            take_tag(&x);
        else
            take_text(&x, "<");
    }
    if (x.depth > 0) fail_msg("<%s> is not closed", x.open[x.depth - 1]);
    return x.elements;
}

#define DOCTYPE "<!DOCTYPE html>\n"

static char *page_of(const struct comparison *c) {
    char *page = text_of(compare_put_html, c);
    assert_int_equal(strncmp(page, DOCTYPE, strlen(DOCTYPE)), 0);
    return page;
}

static unsigned count(const char *text, const char *words) {
    unsigned n = 0;
    for (; (text = strstr(text, words)); text += strlen(words)) n++;
    return n;
}

/* ---- the page ---- */

static void the_page_is_well_formed(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = page_of(c);
    assert_in_range(check_xml(page + strlen(DOCTYPE)), 200, 2000);
    free(page);
    destroy_comparison(c);
}

static void the_page_needs_nothing_but_itself(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = page_of(c);
    assert_int_equal(count(page, "http"), count(page, "xmlns=\"http://www.w3.org/2000/svg\""));
    static const char *const REFERENCES[] = {
        "<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "//fonts"};
    for (size_t i = 0; i < sizeof REFERENCES / sizeof *REFERENCES; i++)
        if (strstr(page, REFERENCES[i])) fail_msg("%s", REFERENCES[i]);
    assert_says(page, "<meta charset=\"utf-8\"/>");
    assert_says(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    assert_says(page, "@media print");
    assert_says(page, "prefers-color-scheme:dark");
    free(page);
    destroy_comparison(c);
}

static void the_page_has_what_the_reports_say(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = page_of(c), cell[32], words[64];
    for (unsigned i = 0; i < 3; i++) {
        int column;
        for (unsigned k = 1; (column = compare_column_at(c, k)) >= 0; k++) {
            const bool best = compare_is_best(c, &c->run[i], (unsigned)column);
            snprintf(words, sizeof words, best ? "\"><b>%s</b></td>" : "\">%s</td>",
                     compare_cell(c, &c->run[i], (unsigned)column, cell));
            assert_says(page, words);
        }
    }
    assert_says(page, "refused: adam cannot be written atomically");
    assert_says(page, "1 % above the lowest of any epoch (sync)");
    assert_says(page, "sync waited 58 % of the time, mostly for worker 3.");
    assert_says(page, "Slowed down</dt><dd>3:5x");
    assert_says(page, "Race window</dt><dd>200 us between load and store, in 1 % of pushes");
    assert_says(page, "a9a: 1000 examples, 123 features, 9000 nonzeros");
    assert_says(page,
                "<span>compare</span> <span>--slow</span> <span>3:5x</span> <span>'a &lt;b&gt; &amp; '\\''c'\\'''</span>");
    assert_int_equal(count(page, "scope=\"row\""), 4 + 3); /* the modes; what ran */
    assert_int_equal(count(page, "<th scope=\"col\""), 8 + 8);
    assert_null(strstr(page, "Every seed"));
    assert_null(strstr(page, "What more workers bring"));
    free(page);
    destroy_comparison(c);
}

static const struct made QUICK = {"async", {0.40, 0.36, 0.34, 0.33}, 0.5, 0, 0, 3};
static const struct made SLOW = {"sync", {0.38, 0.33, 0.32, 0.32}, 2, 0.5, 0, 0};

static struct comparison *begin(void) {
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->data = "x";
    c->target = NAN;
    c->seeds = 1;
    return c;
}

/* Figures of each of them, the ends beside the medians, a band around each curve. */
static void the_page_shows_every_seed(void **state) {
    (void)state;
    struct comparison *c = begin();
    c->seeds = 3;
    c->first_seed = 1;
    add_made(c, &QUICK);
    add_made(c, &SLOW);
    for (unsigned k = 1; k < 3; k++) {
        add_seed(&c->run[0], &QUICK, 1 + 0.001 * k, 1);
        add_seed(&c->run[1], &SLOW, 1 + 0.001 * k, 1);
    }
    compare_letter(c);
    compare_work_out(c);
    char *page = page_of(c);
    check_xml(page + strlen(DOCTYPE));
    assert_says(page, "Every seed");
    assert_says(page, ">3</td><td data-label=\"seconds\">");
    assert_says(page, "<b>0.32032</b><small>0.32000 to 0.32064</small>");
    assert_int_equal(count(page, "<polygon class=\"band"), 4); /* two modes, over epochs and over time */
    free(page);
    destroy_comparison(c);
}

/* A row for each number, a curve for each mode and the perfect one, panels of the most workers alone. */
static void the_page_shows_the_speed_up(void **state) {
    (void)state;
    struct comparison *c = begin();
    c->n_workers = 3;
    memcpy(c->workers, (uint32_t[]){1, 2, 4}, 3 * sizeof *c->workers);
    for (unsigned i = 0; i < 3; i++) add_workers(c, &QUICK, c->workers[i], 1.0 / (i + 1));
    for (unsigned i = 0; i < 3; i++) add_workers(c, &SLOW, c->workers[i], 1);
    assert_int_equal(c->n_modes, 2);
    compare_letter(c);
    compare_work_out(c);
    char *page = page_of(c);
    check_xml(page + strlen(DOCTYPE));
    assert_says(page, "What more workers bring");
    assert_says(page, "<title id=\"t1\">speed-up over -w 1</title>");
    assert_says(page, ">2 cores</text>");
    assert_int_equal(count(page, "class=\"guide\""), 1);
    assert_int_equal(count(page, "<td data-label=\"speed-up\">"), 6);
    assert_int_equal(count(page, "role=\"img\""), 1 + 2 + 2 + 2);
    assert_says(page, "What the workers did with their time, with 4 workers");
    free(page);
    destroy_comparison(c);
}

static void every_figure_says_what_it_shows(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *page = page_of(c);
    const unsigned figures = count(page, "role=\"img\"");
    assert_int_equal(figures, 2 + 3 + 2); /* curves, workers, delays: those of backup were not measured */
    assert_int_equal(count(page, "<svg "), figures + count(page, "aria-hidden=\"true\""));
    for (unsigned i = 1; i <= figures; i++) {
        char words[64];
        snprintf(words, sizeof words, "aria-labelledby=\"t%u d%u\"", i, i);
        assert_int_equal(count(page, words), 1);
        snprintf(words, sizeof words, "<title id=\"t%u\">", i);
        assert_int_equal(count(page, words), 1);
        snprintf(words, sizeof words, "<desc id=\"d%u\">", i);
        assert_int_equal(count(page, words), 1);
    }
    assert_says(page, "not measured");
    assert_says(page, "worker 3: computing 42.0 %");
    free(page);
    destroy_comparison(c);
}

static void a_comparison_of_nothing_is_a_page_too(void **state) {
    (void)state;
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->data = "x";
    c->target = NAN;
    add_refused(c, "ssp", SHMTRAIN_E_USAGE, "<no> & \"never\"");
    compare_work_out(c);
    char *page = page_of(c);
    check_xml(page + strlen(DOCTYPE));
    assert_says(page, "refused: &lt;no&gt; &amp; &quot;never&quot;");
    assert_int_equal(count(page, "role=\"img\""), 0);
    free(page);
    destroy_comparison(c);
}

/* As many modes as there may be, more workers than bars, and losses that are hardly any. */
static void a_large_comparison_is_well_formed(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    static const struct made ODD = {"ssp:123456789012", {NAN, 1e-9, 1e9, INFINITY}, 1e-9, 0.5, 0, 1e12};
    while (c->n < COMPARE_MODES) add_made(c, &ODD);
    compare_letter(c);
    compare_work_out(c);
    char *page = page_of(c);
    check_xml(page + strlen(DOCTYPE));
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf,"));
    free(page);
    destroy_comparison(c);
}

/* ---- escaping ---- */

static void assert_escaped(const char *text, const char *expected) {
    char *got = NULL;
    size_t bytes;
    FILE *out = open_memstream(&got, &bytes);
    assert_non_null(out);
    markup_text(out, text);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got, expected);
    free(got);
}

static void text_is_escaped_and_utf8_afterwards(void **state) {
    (void)state;
    assert_escaped("", "");
    assert_escaped("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c'");
    assert_escaped("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80?", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80?");
    assert_escaped("\xff\xc3(\xe2\x82", "?\?(?\?");      /* no UTF-8, cut off */
    assert_escaped("\xc0\xaf\xed\xa0\x80", "?\?\?\?\?"); /* longer than need be, half a pair */
    assert_escaped("\x1b[2J\x7f\xc2\x9b", "?[2J?\?\?");  /* control characters */
    assert_escaped("\xef\xbf\xbf\xf4\x90\x80\x80", "?\?\?\?\?\?\?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_well_formed),
        cmocka_unit_test(the_page_needs_nothing_but_itself),
        cmocka_unit_test(the_page_has_what_the_reports_say),
        cmocka_unit_test(the_page_shows_every_seed),
        cmocka_unit_test(the_page_shows_the_speed_up),
        cmocka_unit_test(every_figure_says_what_it_shows),
        cmocka_unit_test(a_comparison_of_nothing_is_a_page_too),
        cmocka_unit_test(a_large_comparison_is_well_formed),
        cmocka_unit_test(text_is_escaped_and_utf8_afterwards),
    };
    return cmocka_run_group_tests_name("compare_html", tests, NULL, NULL);
}
