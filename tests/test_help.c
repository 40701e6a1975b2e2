/* cli: shmtrain --help is one screen, its examples run, and it leads to the pages of commands and topics. */
#include "run_program.h"

#include <shmtrain/store.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/topics.h"

#define MOST_LINES       45
#define MOST_COLUMNS     80
#define MOST_TOPIC_LINES 24

static const char *help(const char *option) {
    struct program *p = RUN(option);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    return p->text[OUT];
}

static const char *help_of(const char *topic) {
    struct program *p = RUN("help", topic);
    program_assert_status(p, 0);
    return p->text[OUT];
}

static void it_is_one_screen(void **state) {
    (void)state;
    unsigned lines = 0;
    const char *text = help("--help");
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1, lines++) {
        const size_t n = strcspn(at, "\n");
        if (n > MOST_COLUMNS) fail_msg("%zu columns: %.*s", n, (int)n, at);
        for (size_t i = 0; i < n; i++) assert_in_range((unsigned char)at[i], ' ', '~');
    }
    if (lines > MOST_LINES) fail_msg("--help has %u lines", lines);
    assert_string_equal(help("help"), text);
    assert_string_equal(help("-h"), text);
}

/* A command stands in a line's left or right half, with the words about it. */
static void it_names_every_command_and_topic(void **state) {
    (void)state;
    const struct command *c;
    const struct topic *t;
    const char *text = help("--help");
    for (size_t i = 0; (c = command_at(i)); i++) {
        char left[64], right[64];
        snprintf(left, sizeof left, "\n  %-9s %s", c->name, c->about);
        snprintf(right, sizeof right, "  %-7s %s\n", c->name, c->about);
        if (!strstr(text, left) && !strstr(text, right)) fail_msg("--help has nothing about %s", c->name);
        if (strlen(c->about) > 27) fail_msg("%s: too many words: %s", c->name, c->about);
    }
    for (size_t i = 0; (t = topic_at(i)); i++) {
        char name[32];
        snprintf(name, sizeof name, " %s", t->name);
        const char *at = strstr(strstr(text, "\nMore\n"), name);
        if (!at || !strchr(" \n", at[strlen(name)])) fail_msg("--help does not name the topic %s", t->name);
    }
}

static void it_has_the_options_that_people_use(void **state) {
    (void)state;
    static const char *const WANTED[] = {"\n  -w, --workers N ",
                                         "\n  -t, --threads N ",
                                         "\n  -e, --epochs N ",
                                         "\n      --mode NAME ",
                                         "\n  -b, --batch N ",
                                         "\n  -M, --model NAME ",
                                         "\n  -r, --rate X ",
                                         "\n      --l2 X ",
                                         "\n      --valid PATH|X ",
                                         "\n      --checkpoint DIR ",
                                         "\n  -o, --output FILE ",
                                         "\n      --json ",
                                         "\n  -q, --quiet ",
                                         " [cores]\n",
                                         " [logistic]\n"};
    const char *text = help("--help");
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (!strstr(text, WANTED[i])) fail_msg("--help does not say \"%s\"", WANTED[i]);
}

/* The command of a line "  shmtrain ARGUMENT ...   what it does"; at most 15 arguments. */
static void run_example(const char *line, size_t n) {
    static char words[MOST_COLUMNS + 1];
    const char *argv[17] = {NULL};
    const char *end = strstr(line + 2, "  ");
    assert_true(end && end < line + n); /* words follow */
    snprintf(words, sizeof words, "%.*s", (int)(end - line), line);
    size_t n_words = 0;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(n_words < 16);
        argv[n_words++] = word;
    }
    assert_string_equal(argv[0], "shmtrain");
    struct program *p = program_run(NULL, argv);
    if (p->status != 0) fail_msg("%.*s: exit status %d: %s", (int)(end - line), line, p->status, p->text[ERR]);
}

static void every_example_runs(void **state) {
    (void)state;
    program_write_file("train.svm", "1 1:1 3:0.5\n-1 2:1\n1 1:0.5\n-1 2:2 3:1\n");
    program_write_file("test.svm", "1 1:1\n-1 2:1\n");
    program_write_file("train.csv", "city,visits,bought\nRome,0.9,yes\nOslo,0.1,no\nRome,0.7,yes\n");
    unsigned n = 0;
    const char *at = strstr(help("--help"), "\nExamples\n");
    assert_non_null(at);
    for (at += strlen("\nExamples\n"); *at != '\n'; at += strcspn(at, "\n") + 1, n++) run_example(at, strcspn(at, "\n"));
    assert_int_equal(n, 5);
    assert_int_equal(access("model", R_OK), 0);
}

static void help_topics_says_what_each_is_about(void **state) {
    (void)state;
    const struct topic *t;
    struct program *p = RUN("help", "topics");
    program_assert_status(p, 0);
    for (size_t i = 0; (t = topic_at(i)); i++) {
        char line[128];
        snprintf(line, sizeof line, "\n  %-22s %s\n", t->name, t->about);
        if (!strstr(p->text[OUT], line)) fail_msg("help topics does not say:%s", line);
    }
    program_assert_refused(RUN("help", "topic"), 2, "did you mean topics?");
}

/* Each option is on the page of a command at least; train has all of the library's, with their defaults. */
static void every_topic_is_at_most_24_lines_of_80_columns(void **state) {
    const struct topic *t;
    (void)state;
    for (size_t i = 0; (t = topic_at(i)); i++) {
        unsigned lines = 0;
        for (const char *at = help_of(t->name); *at; at += strcspn(at, "\n") + 1, lines++) {
            const size_t n = strcspn(at, "\n");
            if (n > MOST_COLUMNS) fail_msg("help %s, line %u has %zu columns: %.*s", t->name, lines + 1, n, (int)n, at);
        }
        if (lines > MOST_TOPIC_LINES) fail_msg("help %s has %u lines", t->name, lines);
    }
}

static void every_option_is_on_a_page(void **state) {
    (void)state;
    const struct shmtrain_option *o;
    const struct command *c;
    struct program *train = RUN("help", "train");
    for (size_t i = 0; (o = shmtrain_option_at(i)); i++) {
        char name[64];
        snprintf(name, sizeof name, "--%s ", o->name);
        if (!strstr(train->text[OUT], name)) fail_msg("help train has no --%s", o->name);
    }
    for (size_t i = 0; (o = arguments_option_at(i)); i++) {
        bool is_there = strcmp(o->name, "help") == 0 || strcmp(o->name, "version") == 0; /* every command takes these */
        for (size_t k = 0; !is_there && (c = command_at(k)); k++) {
            char name[64];
            snprintf(name, sizeof name, "--%s ", o->name);
            is_there = command_takes(c, o->name, 1) && strstr(RUN("help", c->name)->text[OUT], name);
        }
        if (!is_there) fail_msg("no page has --%s", o->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(it_is_one_screen),
        PROGRAM_TEST(it_names_every_command_and_topic),
        PROGRAM_TEST(it_has_the_options_that_people_use),
        PROGRAM_TEST(every_example_runs),
        PROGRAM_TEST(help_topics_says_what_each_is_about),
        PROGRAM_TEST(every_topic_is_at_most_24_lines_of_80_columns),
        PROGRAM_TEST(every_option_is_on_a_page),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
