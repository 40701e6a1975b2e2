/* cli: the texts of shmtrain help TOPIC fit a screen, and speak of options, choices and commands that there are. */
#include "run_program.h"

#include <ctype.h>

#include <shmtrain/store.h>

#include "cli/topics.h"

#define MOST_LINES   24
#define MOST_COLUMNS 80

/* What people see, with the library's own lists in it. */
static const char *seen(const struct topic *t) {
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    topic_print(t, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void texts_fit_a_screen(void **state) {
    (void)state;
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++) {
        unsigned lines = 0;
        const char *text = seen(t);
        assert_true(text[0] != '\0' && text[strlen(text) - 1] == '\n');
        for (const char *at = text; *at; at += strcspn(at, "\n") + 1, lines++) {
            const size_t n = strcspn(at, "\n");
            if (n > MOST_COLUMNS) fail_msg("%s: %zu columns: %.*s", t->name, n, (int)n, at);
            for (size_t k = 0; k < n; k++) assert_in_range((unsigned char)at[k], ' ', '~'); /* for every locale */
        }
        if (lines > MOST_LINES) fail_msg("%s has %u lines", t->name, lines);
        assert_in_range(2 + 23 + strlen(t->about), 1, MOST_COLUMNS);
    }
}

/* A paragraph's lines begin at the margin. One of a single word before another line was left by a change that did not wrap. */
static void no_paragraph_has_a_line_of_one_word(void **state) {
    (void)state;
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++)
        for (const char *at = seen(t), *next; *at; at = next) {
            const size_t n = strcspn(at, "\n");
            next = at + n + 1;
            if (n > 0 && strcspn(at, " ") >= n && *next && !strchr(" \n", *next))
                fail_msg("%s: a line of one word: %.*s", t->name, (int)n, at);
        }
}

static void the_output_is_explained_figure_by_figure(void **state) {
    (void)state;
    static const char *const ROWS[] = {
        "\n  train loss                  mean of the epoch's losses, each before its update\n",
        "\n  valid loss, accuracy, AUC   of the parameters at the end of the epoch\n",
        "\n  examples/s, seconds         of training, without evaluation\n",
        "\n  parameters   XXH64 of the final parameters: equal for equal bits\n",
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!strstr(seen(topic_named("output")), ROWS[i])) fail_msg("help output lacks the row:%s", ROWS[i]);
}

static void a_topic_is_found_by_its_name(void **state) {
    (void)state;
    const char *const names[] = {"modes",       "axes",  "costs",  "optimizers", "files",    "models",
                                 "numa",        "named", "output", "formats",    "progress", "trace",
                                 "environment", "exit",  "cache",  "objective",  "deaths",   "optimum"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_non_null(topic_named(names[i]));
        assert_string_equal(topic_named(names[i])->name, names[i]);
    }
    assert_null(topic_named("weather"));
    assert_null(topic_named(""));
}

/* The program's own options are not the library's: these are all that texts speak of. */
static bool is_option(const char *name) {
    static const char *const OWN[] = {"output", "format", "quiet",         "json",  "progress", "modes",   "target",
                                      "html",   "scores", "probabilities", "force", "help",     "restarts"};
    const struct shmtrain_option *o;
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (strcmp(OWN[i], name) == 0) return true;
    for (size_t i = 0; (o = shmtrain_option_at(i)); i++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

static void options_that_are_named_exist(void **state) {
    (void)state;
    const struct topic *t;
    unsigned n = 0;
    for (size_t i = 0; (t = topic_at(i)); i++)
        for (const char *at = seen(t); (at = strstr(at, "--")); n++) {
            char name[32] = "";
            at += 2;
            for (size_t k = 0;
                 k + 1 < sizeof name && (isalpha((unsigned char)at[k]) || isdigit((unsigned char)at[k]) || at[k] == '-'); k++)
                name[k] = at[k];
            if (!is_option(name)) fail_msg("%s: there is no option --%s", t->name, name);
        }
    assert_true(n > 40);
}

/* "--option word" where the word is a choice: the library must take it. */
static void choices_that_are_named_are_taken(void **state) {
    (void)state;
    static const struct {
        const char *topic, *option, *words;
    } CHOICES[] = {{"modes", "mode", "async sync ssp backup local node"},
                   {"axes", "write", "racy atomic locked aggregate"},
                   {"axes", "staleness", "0 inf"},
                   {"axes", "late", "drop fold"},
                   {"axes", "replicas", "worker node"},
                   {"axes", "merge", "mean sum elastic"},
                   {"optimizers", "optimizer", "sgd momentum nesterov adagrad rmsprop adadelta adam adamw lamb ftrl"},
                   {"optimizers", "schedule", "constant inverse step cosine one-cycle auto"},
                   {"numa", "numa", "auto interleave bind off"},
                   {"numa", "bind", "core node none"},
                   {"numa", "hugepages", "auto 2M off"}};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof CHOICES / sizeof *CHOICES; i++) {
        const char *at = CHOICES[i].words;
        while (*at) {
            char word[32];
            snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
            at += strcspn(at, " ");
            at += strspn(at, " ");
            assert_non_null(strstr(seen(topic_named(CHOICES[i].topic)), word));
            assert_int_equal(shmtrain_store_set(store, CHOICES[i].option, word), 0);
        }
    }
    const struct shmtrain_model *model;
    for (size_t i = 0; (model = shmtrain_store_model_at(store, i)); i++)
        assert_non_null(strstr(seen(topic_named("models")), model->name));
    shmtrain_store_destroy(store);
}

/* A mode of a file of its own is in the help without a word of anybody's. */
static void every_mode_is_in_the_help(void **state) {
    (void)state;
    const char *text = seen(topic_named("modes"));
    const struct shmtrain_mode *m;
    for (size_t i = 0; (m = shmtrain_mode_at(i)); i++) {
        char line[32];
        snprintf(line, sizeof line, "\n  %-9s ", m->form);
        if (!strstr(text, line)) fail_msg("there is no word about mode %s", m->name);
    }
    assert_null(strchr(text, '@'));
}

static void the_program_prints_each_of_them(void **state) {
    (void)state;
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++) {
        struct program *p = RUN("help", t->name);
        program_assert_status(p, 0);
        assert_string_equal(p->text[OUT], seen(t));
        assert_string_equal(p->text[ERR], "");
    }
    program_assert_refused(RUN("help", "mode"), 2, "there is no command and no topic \"mode\": did you mean modes?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_fit_a_screen),
        cmocka_unit_test(no_paragraph_has_a_line_of_one_word),
        cmocka_unit_test(the_output_is_explained_figure_by_figure),
        cmocka_unit_test(a_topic_is_found_by_its_name),
        cmocka_unit_test(options_that_are_named_exist),
        cmocka_unit_test(choices_that_are_named_are_taken),
        cmocka_unit_test(every_mode_is_in_the_help),
        PROGRAM_TEST(the_program_prints_each_of_them),
    };
    return cmocka_run_group_tests_name("topics", tests, program_make_folder, program_remove_folder);
}
