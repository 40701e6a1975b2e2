/* shmtrain compare from outside: what it prints, writes and refuses, and how it ends. */
#include "run_program.h"
#include "skip.h"
#include "pty_job.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DATA "builtin:sparse:examples=4000,features=400,nonzeros=10"

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

static unsigned count(const char *text, const char *words) {
    unsigned n = 0;
    for (; (text = strstr(text, words)); text += strlen(words)) n++;
    return n;
}

/* ---- what it prints ---- */

static int speak_ascii(void) { return setenv("LC_ALL", "C", 1); }

static void it_prints_a_table_and_two_plots_of_at_most_80_columns(void **state) {
    (void)state;
    struct program *p = RUN_IN(speak_ascii, "compare", "-w", "2", "-e", "3", "--modes", "async,sync,ssp:4", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "\na async ");
    assert_says(p->text[OUT], "\ns sync ");
    assert_says(p->text[OUT], "\np ssp:4 ");
    assert_says(p->text[OUT], "\nTarget: validation loss ");
    assert_says(p->text[OUT], "\nFastest to ");
    assert_says(p->text[OUT], "\nvalidation loss over epochs   a async   s sync   p ssp:4   - - target\n");
    assert_says(p->text[OUT], "\nvalidation loss over time");
    for (char *at = p->text[OUT]; *at; at++) assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
    for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
}

static void each_mode_has_a_line_on_stderr_while_it_runs(void **state) {
    (void)state;
    struct program *p = RUN("compare", "-w", "2", "-e", "3", "--modes", "async,sync", DATA);
    program_assert_status(p, 0);
    assert_int_equal(count(p->text[ERR], "\n"), 2);
    assert_says(p->text[ERR], "shmtrain: 1 of 2, async: 3 epochs in ");
    assert_says(p->text[ERR], "shmtrain: 2 of 2, sync: 3 epochs in ");
    p = RUN("compare", "-q", "-w", "2", "-e", "1", "--modes", "async,sync", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    assert_string_equal(p->text[ERR], "");
}

static int speak_utf8(void) { return setenv("LC_ALL", "C.UTF-8", 1); }

static void in_a_utf8_locale_the_axes_are_drawn_as_lines(void **state) {
    (void)state;
    struct program *p = RUN_IN(speak_utf8, "compare", "-w", "1", "-e", "2", "--modes", "async", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "└");
    assert_null(strchr(p->text[OUT], '\033')); /* no terminal: no colours */
}

/* A run is that of `shmtrain train` with the same options; the same mode twice gives sync's bits twice. */
static void json_has_the_runs_as_train_gives_them(void **state) {
    (void)state;
    char hash[17];
    HASH(hash, "--mode", "sync", "--schedule", "cosine", "-w", "2", "-e", "2", "--rate", "0.25", "--seed", "7", DATA);
    struct program *p = RUN("compare", "--json", "-w", "2", "-e", "2", "--rate", "0.25", "--seed", "7", "--modes",
                            "sync,async,sync", "--target", "0.6", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *runs = json_object_get(o, "runs");
    assert_int_equal(json_array_size(runs), 3);
    assert_string_equal(json_string_value(json_object_get(o, "data")), DATA);
    assert_true(fabs(json_real_value(json_object_get(o, "target")) - 0.6) < 1e-12);
    for (size_t i = 0; i < 3; i++) {
        json_t *run = json_array_get(runs, i);
        assert_string_equal(json_string_value(json_object_get(run, "mode")), i == 1 ? "async" : "sync");
        assert_int_equal(json_integer_value(json_object_get(run, "seed")), 7);
        assert_int_equal(json_array_size(json_object_get(run, "epochs")), 2);
        assert_non_null(json_object_get(run, "time_to_target"));
        assert_non_null(json_object_get(run, "epochs_to_target"));
        const char *its = json_string_value(json_object_get(run, "parameters_xxh64"));
        assert_non_null(its);
        if (i != 1) assert_string_equal(its, hash);
    }
    json_decref(o);
}

/* Each rate of the grid is a run as `train` makes it; the best one is shown. */
static void each_mode_has_the_best_rate_of_its_grid(void **state) {
    static const double TIMES[] = {1, 1 / 3.0, 3};
    (void)state;
    struct program *p = RUN("compare", "--json", "-w", "1", "-e", "2", "--modes", "sync,local:2", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *runs = json_object_get(o, "runs");
    for (size_t i = 0; i < 2; i++) {
        json_t *run = json_array_get(runs, i);
        const double shown = json_real_value(json_object_get(run, "final_loss"));
        const char *mode = i == 0 ? "sync" : "local:2";
        double base = 0, least = INFINITY;
        for (size_t k = 0; k < 3; k++) {
            char rate[32];
            snprintf(rate, sizeof rate, "%.9g", TIMES[k] * base);
            struct program *of =
                k == 0
                    ? RUN("-q", "--json", "-w", "1", "-e", "2", "--mode", mode, "--schedule", "cosine", DATA)
                    : RUN("-q", "--json", "-w", "1", "-e", "2", "--mode", mode, "--schedule", "cosine", "--rate", rate, DATA);
            program_assert_status(of, 0);
            json_t *r = program_json(of);
            if (k == 0) base = json_real_value(json_object_get(r, "rate"));
            least =
                fmin(least, json_real_value(json_object_get(json_array_get(json_object_get(r, "epochs"), 1), "valid_loss")));
            json_decref(r);
        }
        assert_true(fabs(shown / least - 1) < 1e-6);
        assert_int_equal(json_integer_value(json_object_get(run, "rates_tried")), 3);
    }
    json_decref(o);
    p = RUN("compare", "--tune", "0", "-w", "1", "-e", "1", "--modes", "sync", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "No verdict: ");
    program_assert_refused(RUN("compare", "--tune", "many", DATA), 2, "--tune many: expected a number of rates from 0 to 15");
}

static int choose_a_mode(void) {
    return setenv("SHMTRAIN_MODE", "sync", 1) || setenv("SHMTRAIN_NAME", "compared", 1) || setenv("SHMTRAIN_EPOCHS", "2", 1) ||
           setenv("SHMTRAIN_CHECKPOINT", "compared.ck", 1) || setenv("SHMTRAIN_RESUME", "1", 1);
}

static void the_environment_counts_as_in_training_but_for_the_mode(void **state) {
    (void)state;
    struct program *p = RUN_IN(choose_a_mode, "compare", "--json", "-q", "-w", "1", "--modes", "async,ssp:2", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *runs = json_object_get(o, "runs");
    assert_string_equal(json_string_value(json_object_get(json_array_get(runs, 0), "mode")), "async");
    assert_string_equal(json_string_value(json_object_get(json_array_get(runs, 1), "mode")), "ssp");
    assert_int_equal(json_array_size(json_object_get(json_array_get(runs, 0), "epochs")), 2);
    json_decref(o);
    p = RUN("rm", "compared"); /* the runs had no name */
    program_assert_status(p, 2);
    assert_int_not_equal(access("compared.ck", F_OK), 0); /* nor do several take turns at one folder */
}

static int limit_steps(void) { return setenv("SHMTRAIN_STEPS", "9", 1); }

static void a_limit_of_steps_would_give_modes_different_budgets(void **state) {
    (void)state;
    struct program *p = RUN_IN(limit_steps, "compare", "-w", "1", "--modes", "async", DATA);
    program_assert_refused(p, 2, "SHMTRAIN_STEPS=9: compare does not use it: a step is a work item in one mode");
    p = RUN("help", "compare");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "--steps"));
}

static int bound_staleness(void) { return setenv("SHMTRAIN_STALENESS", "3", 1); }

/* The name of a row is what was asked for; what an axis made of it is another thing. */
static void a_mode_that_an_option_has_changed_is_not_passed_off_as_itself(void **state) {
    (void)state;
#define SHORT "compare", "-w", "2", "-e", "1"
    struct program *p = RUN(SHORT, "--modes", "async,sync", "--write", "locked", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "\"sync\" is locked, staleness 0");
    assert_says(p->text[OUT], "(--write locked).");
    p = RUN_IN(bound_staleness, SHORT, "--modes", "sync,ssp:4", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "Here \"sync\" is ");
    assert_says(p->text[OUT], "\"ssp:4\" is ssp:3");
    p = RUN(SHORT, "--modes", "local:4", "--replicas", "one", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "Here \"local:4\" is ");
    p = RUN(SHORT, "--modes", "async,sync,ssp:4,backup:1,backup,local:4,local", DATA);
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "Here \""));
}

static void the_same_mode_twice_has_two_names(void **state) {
    (void)state;
    struct program *p = RUN(SHORT, "--modes", "sync,sync", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "\ns sync ");
    assert_says(p->text[OUT], "\ny sync (2) ");
    assert_says(p->text[ERR], "2 of 2, sync (2): 1 epoch in ");
}

/* ---- the page ---- */

static char *contents_of(const char *name) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    assert_true(getdelim(&text, &bytes, '\0', f) > 0);
    fclose(f);
    return text;
}

static void html_writes_a_page_and_replaces_it_as_a_whole(void **state) {
    (void)state;
    struct stat before, after;
    program_write_file("page.html", "old");
    assert_int_equal(stat("page.html", &before), 0);
    struct program *p = RUN("compare", "-w", "2", "-e", "2", "--modes", "async,sync", "--html", "page.html", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[ERR], "saved       page.html\n");
    assert_int_equal(stat("page.html", &after), 0);
    assert_true(before.st_ino != after.st_ino);
    char *page = contents_of("page.html");
    assert_int_equal(strncmp(page, "<!DOCTYPE html>\n", 16), 0);
    assert_says(page, "\"--html\",\"page.html\"");
    assert_says(page, "</html>\n");
    free(page);
}

/* Then there is nothing else. */
static void a_page_on_standard_output_is_alone_there(void **state) {
    (void)state;
    struct program *p = RUN("compare", "-w", "1", "-e", "2", "--modes", "async,sync", "--html", "/dev/stdout", DATA);
    program_assert_status(p, 0);
    assert_int_equal(strncmp(p->text[OUT], "<!DOCTYPE html>\n", 16), 0);
    assert_string_equal(strstr(p->text[OUT], "</html>"), "</html>\n");
    assert_says(p->text[ERR], "final loss");
}

static void a_page_that_cannot_be_written_is_refused_before_anything_runs(void **state) {
    (void)state;
    program_write_file("toy", "-1 2:1\n3 8:1\n-1 2:1\n3 8:1\n");
    const struct refusal list[] = {
        {1, "cannot write the page to none/page.html: No such file", {"compare", "--html", "none/page.html", "toy"}},
        {1, "cannot write the page to .: it is a folder; name a file in it", {"compare", "--html", ".", "toy"}},
        {2, "--html /dev/stdout and --json would both go to", {"compare", "--html", "/dev/stdout", "--json", "toy"}},
        {2, "--html toy is read as the data (./toy) and would be replaced", {"compare", "--html", "toy", "./toy"}},
        {2, "--html \"\": expected FILE", {"compare", "--html", "", "toy"}},
    };
    ASSERT_ALL_REFUSED(list);
    struct program *p = RUN("compare", "-w", "1", "-e", "1", "--modes", "async", "--html", "/dev/full", "toy");
    program_assert_status(p, 1);
    assert_says(p->text[ERR], "cannot write the page to /dev/full: No space left on device");
}

/* ---- refusals ---- */

static void bad_lists_and_targets_are_answered_in_one_line(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2,
         "--modes async,fast: mode \"fast\" is not one of async, hogwild, sync, allreduce, ",
         {"compare", "--modes", "async,fast"}},
        {2, "mode \"\" is not one of ", {"compare", "--modes", "async,"}},
        {2, "--modes ssp:x: mode ssp:x: the number is a staleness bound", {"compare", "--modes", "ssp:x"}},
        {2, "--modes \"\": expected LIST", {"compare", "--modes", ""}},
        {2, "--target low: expected a loss above 0, as in 0.35", {"compare", "--target", "low"}},
        {2, "--target 0.3x: expected a loss", {"compare", "--target", "0.3x"}},
        {2, "--target -1: expected a loss above 0", {"compare", "--target", "-1"}},
        {2, "--target 0: expected a loss above 0", {"compare", "--target", "0"}},
        {2, "--progress loudly: expected one of auto|bar|plain|none", {"compare", "--progress", "loudly"}},
        {2, "compare does not use --mode: name modes by --modes, as in --modes async,sync", {"compare", "--mode", "sync"}},
        {2, "compare does not use --steps: a step is a work item in one mode and a batch", {"compare", "--steps", "9"}},
        {2, "compare does not use --name", {"compare", "--name", "x"}},
        {2, "compare does not use --trace", {"compare", "--trace", "x"}},
        {2, "compare does not use --output", {"compare", "-o", "x"}},
        {2, "train does not use --modes", {"--modes", "async"}},
        {1, "cannot open a: No such file or directory", {"compare", "a", "b"}},
        {2,
         "compare reads its data once for each mode, and standard input can be read once only: save it to a file first",
         {"compare", "-"}},
        {2,
         "async,sync,async: at most 16 modes are compared",
         {"compare", "--modes",
          "async,sync,async,sync,async,sync,async,sync,async,sync,async,sync,async,sync,async,sync,async"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void a_mode_that_cannot_be_is_refused_in_its_row_and_the_others_go_on(void **state) {
    (void)state;
    struct program *p = RUN("compare", "-w", "2", "-e", "2", "--optimizer", "adam", "--modes", "ssp:4,sync", DATA);
    program_assert_status(p, 0);
    assert_says(p->text[OUT], "\ns ssp:4  refused: adam cannot be written atomically: ");
    assert_says(p->text[OUT], "\ny sync ");
    assert_says(p->text[ERR], "shmtrain: 1 of 2, ssp:4: adam cannot");
    p = RUN("compare", "--json", "-q", "-w", "2", "-e", "2", "--optimizer", "adam", "--modes", "ssp:4,sync", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *refused = json_array_get(json_object_get(o, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(refused, "asked_for")), "ssp:4");
    assert_non_null(json_object_get(refused, "refused"));
    json_decref(o);
}

static void what_no_mode_can_do_is_said_once(void **state) {
    (void)state;
    program_assert_refused(RUN("compare", "none"), 1, "cannot open none: No such file or directory");
    program_assert_refused(RUN("compare", "--seeds", "3", "-w", "1,2", "none"), 1,
                           "cannot open none: No such file or directory");
    program_assert_refused(RUN("compare", "-q", "-M", "tree", DATA), 2, "tree");
    struct program *p = RUN("compare", "-q", "-w", "2", "--optimizer", "adam", "--modes", "ssp:2,ssp:4", DATA);
    program_assert_refused(p, 2, "adam cannot be written atomically");
}

/* ---- Ctrl-C ---- */

static void a_signal_ends_the_mode_and_what_there_is_is_printed(void **state) {
    (void)state;
    struct program *p = START("compare", "-w", "2", "-e", "1000000", "--modes", "async,sync", "--progress", "plain", DATA);
    (void)program_worker(p, 0);
    usleep(500000);
    kill(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(p, 130);
    if (strstr(p->text[ERR], "reading data")) SKIP("a slow machine: there is nothing to print yet");
    assert_says(p->text[OUT], " *\n");
    assert_says(p->text[OUT], "sync   not run\n");
    assert_says(p->text[OUT], "\n* stopped before its end\n");
    assert_says(p->text[OUT], "validation loss over time");
}

static void a_signal_before_there_is_anything_ends_it_quietly(void **state) {
    (void)state;
    struct program *p = START("compare", "-w", "1", "--modes", "async,sync", "builtin:sparse:examples=20000000,nonzeros=40");
    program_wait_for_readers(p);
    kill(p->pid, SIGTERM);
    program_finish(p);
    program_assert_status(p, 143);
    assert_string_equal(p->text[OUT], "");
    assert_says(p->text[ERR], "async: stopped while ");
}

/* ---- on a terminal ---- */

static int perform(int cues, const void *arg) {
    char path[4096];
    snprintf(path, sizeof path, "%s/shmtrain", getenv("TEST_BUILDDIR"));
    close(cues);
    program_forget_options();
    execv(path, (char *const *)(uintptr_t)arg);
    return 127;
}
#define COMPARE(...) ((const char *const[]){"shmtrain", "compare", __VA_ARGS__, NULL})

static void on_a_wide_terminal_plots_are_wide_and_nothing_lives_in_the_end(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 130, 100, perform, COMPARE("-w", "2", "-e", "3", "--modes", "async,sync", DATA));
    pty_wait_for_end(&s);
    pty_wait_for_words(&s, " seconds");
    assert_true(terminal_shows(&s.screen, " 1/2  async"));
    assert_true(terminal_shows(&s.screen, " 2/2  sync"));
    assert_true(terminal_shows(&s.screen, "      3 epochs in "));
    assert_true(s.screen.n_coloured > 0);
    assert_int_equal(s.screen.n_wrapped, 0);
    unsigned widest = 0;
    for (unsigned row = 0; row < terminal_height(&s.screen); row++) {
        const unsigned n = (unsigned)strlen(terminal_line(&s.screen, row));
        if (strstr(terminal_line(&s.screen, row), "epochs") && n > widest) widest = n;
    }
    assert_true(WIFEXITED(s.status));
    assert_int_equal(WEXITSTATUS(s.status), 0);
    assert_int_equal(widest, 120);
    pty_end(&s);
}

static void ctrl_c_leaves_what_there_is(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 100, perform, COMPARE("-w", "2", "-e", "1000000", "--modes", "sync,async", DATA));
    pty_wait_for_words(&s, "computing");
    pty_type(&s, "\003");
    pty_wait_for_end(&s);
    pty_wait_for_words(&s, "not run");
    assert_true(WIFEXITED(s.status));
    assert_int_equal(WEXITSTATUS(s.status), 130);
    assert_false(terminal_shows(&s.screen, "computing"));
    assert_int_equal(s.screen.n_wrapped, 0);
    pty_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(it_prints_a_table_and_two_plots_of_at_most_80_columns),
        PROGRAM_TEST(each_mode_has_a_line_on_stderr_while_it_runs),
        PROGRAM_TEST(in_a_utf8_locale_the_axes_are_drawn_as_lines),
        PROGRAM_TEST(json_has_the_runs_as_train_gives_them),
        PROGRAM_TEST(each_mode_has_the_best_rate_of_its_grid),
        PROGRAM_TEST(the_environment_counts_as_in_training_but_for_the_mode),
        PROGRAM_TEST(a_limit_of_steps_would_give_modes_different_budgets),
        PROGRAM_TEST(a_mode_that_an_option_has_changed_is_not_passed_off_as_itself),
        PROGRAM_TEST(the_same_mode_twice_has_two_names),
        PROGRAM_TEST(html_writes_a_page_and_replaces_it_as_a_whole),
        PROGRAM_TEST(a_page_on_standard_output_is_alone_there),
        PROGRAM_TEST(a_page_that_cannot_be_written_is_refused_before_anything_runs),
        PROGRAM_TEST(bad_lists_and_targets_are_answered_in_one_line),
        PROGRAM_TEST(a_mode_that_cannot_be_is_refused_in_its_row_and_the_others_go_on),
        PROGRAM_TEST(what_no_mode_can_do_is_said_once),
        PROGRAM_TEST(a_signal_ends_the_mode_and_what_there_is_is_printed),
        PROGRAM_TEST(a_signal_before_there_is_anything_ends_it_quietly),
        cmocka_unit_test(on_a_wide_terminal_plots_are_wide_and_nothing_lives_in_the_end),
        cmocka_unit_test(ctrl_c_leaves_what_there_is),
    };
    return cmocka_run_group_tests_name("program_compare", tests, program_make_folder, program_remove_folder);
}
