/* Applications whose locale writes decimal commas: options are parsed, and texts, JSON and model files are written, as
 * everywhere else, and the locale stays the application's. Where no such locale is installed, one is built into a folder of its
 * own; where that cannot be done, the tests say that they skip. */
#include "api_help.h"
#include "skip.h"

#include "fibers/sim.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>

static char g_folder[4000];
static const char *g_locale; /* NULL: there is none, and g_why says why */
static char g_why[200];

static bool has_comma(void) { return strcmp(localeconv()->decimal_point, ",") == 0; }

static bool find_locale(void) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8",
                                        "it_IT.UTF-8", "ru_RU.UTF-8", "pl_PL.UTF-8", "nl_NL.UTF-8"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !g_locale; i++)
        if (setlocale(LC_ALL, NAMES[i]) && has_comma()) g_locale = NAMES[i];
    setlocale(LC_ALL, "C");
    return g_locale != NULL;
}

/* A program, quietly; its exit status. */
static int run_quietly(const char *const *argv) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void build_locale(void) {
    char place[4100];
    snprintf(place, sizeof place, "%s/de_DE.UTF-8", g_folder);
    const int status =
        run_quietly((const char *const[]){"localedef", "--no-archive", "-c", "-i", "de_DE", "-f", "UTF-8", place, NULL});
    setenv("LOCPATH", g_folder, 1);
    if (find_locale()) return;
    unsetenv("LOCPATH");
    snprintf(g_why, sizeof g_why, "no locale with a decimal comma is installed, and localedef cannot build one (status %d)",
             status);
}

static int make_locale(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    alarm(120);
    snprintf(g_folder, sizeof g_folder, "%s/shmtrain-locale-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder)) return -1;
    if (!find_locale()) build_locale();
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    return run_quietly((const char *const[]){"rm", "-rf", g_folder, NULL});
}

static int comma(void **state) {
    (void)state;
    alarm(120);
    if (g_locale) setlocale(LC_ALL, g_locale);
    return 0;
}

static int point(void **state) {
    (void)state;
    setlocale(LC_ALL, "C");
    return 0;
}

#define NEEDS_LOCALE \
    if (!g_locale) SKIP("%s", g_why)

static struct shmtrain_store *make_training(void) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    return store;
}

static const char DATA[] = "builtin:sparse:examples=2000,features=300";

/* ---- options ---- */

static void options_take_points_and_no_commas(void **state) {
    (void)state;
    NEEDS_LOCALE;
    assert_true(has_comma());
    struct shmtrain_store *store = make_training();
    WELL(store, shmtrain_store_set(store, "rate", "0.25"));
    refused(store, shmtrain_store_set(store, "rate", "0,25"), SHMTRAIN_E_USAGE, "rate 0,25: expected a number");
    WELL(store, shmtrain_store_set(store, "l2", "1.5e-3"));
    WELL(store, shmtrain_store_set(store, "valid", "0.125"));
    WELL(store, shmtrain_store_train(store, DATA));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->rate == 0.25 && fabs(r->l2 - 1.5e-3) < 1e-9); /* kept as a float */
    assert_int_equal(r->valid.examples + r->dataset.examples, 2000);
    assert_non_null(strstr(r->valid.name, "0.125 of builtin"));
    shmtrain_store_destroy(store);
}

static void sentences_have_points(void **state) {
    (void)state;
    NEEDS_LOCALE;
    struct shmtrain_store *store = make_training();
    refused(store, shmtrain_store_set(store, "momentum", "2"), SHMTRAIN_E_USAGE, "from 0 to 0.999999");
    WELL(store, shmtrain_store_set(store, "rate", "12345.5"));
    WELL(store, shmtrain_store_set(store, "valid", "0.00001"));
    refused(store, shmtrain_store_train(store, "builtin:sparse:examples=10,features=10,nonzeros=2"), SHMTRAIN_E_DATA,
            "valid 1e-05");
    shmtrain_store_destroy(store);
}

/* ---- texts ---- */

enum { N_TEXTS = 9 };

static void keep(char **text, const char *from) { *text = strdup(from); }

static void write_texts(const struct shmtrain_report *r, const struct shmtrain_evaluation *e, const struct shmtrain_plan *plan,
                        char *text[N_TEXTS]) {
    char line[2000];
    shmtrain_report_heading(r, line, sizeof line);
    keep(&text[0], line);
    shmtrain_report_line(r, &r->epoch[0], line, sizeof line);
    keep(&text[1], line);
    shmtrain_report_opening(r, line, sizeof line);
    keep(&text[2], line);
    shmtrain_report_summary(r, line, sizeof line);
    keep(&text[3], line);
    text[4] = shmtrain_report_json(r);
    text[5] = shmtrain_evaluation_text(e);
    text[6] = shmtrain_evaluation_json(e);
    text[7] = shmtrain_plan_text(plan);
    text[8] = shmtrain_plan_json(plan);
}

static void texts_are_the_same_in_every_locale(void **state) {
    const struct shmtrain_evaluation *e;
    const struct shmtrain_plan *plan;
    char *with_comma[N_TEXTS], *with_point[N_TEXTS];
    (void)state;
    NEEDS_LOCALE;
    struct shmtrain_store *store = make_training();
    WELL(store, shmtrain_store_set(store, "rate", "0.75"));
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_plan(store, DATA, &plan));
    WELL(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=1000,features=300", &e));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    write_texts(r, e, plan, with_comma);
    assert_true(has_comma());
    setlocale(LC_ALL, "C");
    write_texts(r, e, plan, with_point);
    for (int i = 0; i < N_TEXTS; i++) {
        assert_string_equal(with_comma[i], with_point[i]);
        if (i >= 1 && i <= 6) assert_non_null(strchr(with_point[i], '.')); /* there was something to get wrong */
        free(with_comma[i]);
        free(with_point[i]);
    }
    shmtrain_store_destroy(store);
}

/* ---- model files ---- */

static void a_model_may_be_loaded_in_another_locale(void **state) {
    char path[4100], data[4100];
    const struct shmtrain_evaluation *e;
    (void)state;
    NEEDS_LOCALE;
    snprintf(path, sizeof path, "%s/model", g_folder);
    snprintf(data, sizeof data, "%s/data", g_folder);
    FILE *f = fopen(data, "w");
    assert_non_null(f);
    fputs("-0.5 1:0.25\n2.5 1:1.75\n-0.5 1:0.5\n2.5 1:2.25\n", f);
    assert_int_equal(fclose(f), 0);
    struct shmtrain_store *store = make_training();
    WELL(store, shmtrain_store_set(store, "class-weight", "-0.5:1.5,2.5:0.75"));
    WELL(store, shmtrain_store_train(store, data));
    WELL(store, shmtrain_store_save(store, path));
    setlocale(LC_ALL, "C");
    WELL(store, shmtrain_store_load(store, path));
    WELL(store, shmtrain_store_evaluate(store, data, &e));
    assert_true(e->n_classes == 2 && e->classes[0] == -0.5f && e->classes[1] == 2.5f);
    setlocale(LC_ALL, g_locale);
    WELL(store, shmtrain_store_load(store, path));
    WELL(store, shmtrain_store_evaluate(store, data, &e));
    assert_true(e->n_classes == 2 && e->classes[0] == -0.5f && e->classes[1] == 2.5f);
    shmtrain_store_destroy(store);
}

/* ---- whose locale it is ---- */

static int g_commas, g_calls;

/* The text that is made of what was measured is parsed again. */
static void what_is_measured_has_points(void **state) {
    const struct shmt_sim_found found = {.example_ns = 1.5, .sigma = 0.25, .line_ns = 80.5, .bandwidth = 2.5};
    char text[SHMT_SIM_TEXT];
    (void)state;
    assert_true(shmt_sim_complete("measured", &found, text, sizeof text));
    assert_string_equal(text, "example=lognormal:1.5ns:0.25,pull=0ns,push=0ns,line=80.5ns,next=0ns,bandwidth=2.5GB/s");
}

static void note_locale(void *arg, const char *line) {
    (void)arg;
    (void)line;
    g_calls++;
    g_commas += has_comma();
}
static void note_begin(void *arg, const struct shmtrain_report *r) {
    (void)r;
    note_locale(arg, "");
}
static void note_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    (void)r;
    (void)epoch;
    note_locale(arg, "");
}

static void listeners_are_called_in_the_applications_locale(void **state) {
    (void)state;
    NEEDS_LOCALE;
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .begin = note_begin, .epoch = note_epoch, .note = note_locale};
    struct shmtrain_store *store = make("threads", "3", "3", 640);
    WELL(store, shmtrain_store_set(store, "chunks", "2")); /* which deserves a note */
    shmtrain_store_listen(store, &listener);
    g_commas = g_calls = 0;
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_int_equal(g_calls, 5);
    assert_int_equal(g_commas, 5);
    assert_true(has_comma());
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, comma, point)
    const struct CMUnitTest tests[] = {
        TEST(options_take_points_and_no_commas),  TEST(sentences_have_points),
        TEST(texts_are_the_same_in_every_locale), TEST(a_model_may_be_loaded_in_another_locale),
        TEST(what_is_measured_has_points),        TEST(listeners_are_called_in_the_applications_locale),
    };
    return cmocka_run_group_tests(tests, make_locale, remove_folder);
}
