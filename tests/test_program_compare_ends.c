/* shmtrain compare that does not come to its end: an error at a later run, a signal; what is told of what was done before, and the
 * exit status. */
#include "run_program.h"
#include "sanitized.h"

#include <signal.h>
#include <unistd.h>

#define SEEDS 30 /* more than are waited for */

static void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

/* Separable, and long enough: it goes away while it is trained on. */
static void write_data(void) {
    char line[64], *text = calloc(4000, sizeof line);
    assert_non_null(text);
    for (unsigned i = 0, used = 0; i < 4000; i++)
        used += (unsigned)sprintf(text + used, "%c1 1:%.3f 2:%.3f\n", i % 2 ? '+' : '-', i % 2 ? 1.0 : -0.5, 0.001 * (i % 100));
    program_write_file("gone.svm", text);
    free(text);
}

static struct program *lose_data(struct program *p, const char *after) {
    program_wait_for(p, ERR, after);
    assert_int_equal(unlink("gone.svm"), 0);
    program_finish(p);
    return p;
}

/* The first mode has its row; the sentence is the system's, and stands on stderr; no signal is made of it. */
static void an_error_at_a_later_trial_has_its_sentence_and_its_status(void **state) {
    (void)state;
    write_data();
    struct program *p = START("compare", "-w", "1", "-e", SANITIZED ? "600" : "3000", "--progress", "plain", "--modes",
                              "sync,local:2", "gone.svm");
    lose_data(p, "1 of 2, sync: ");
    program_assert_status(p, 1);
    assert_says(p->text[ERR], "shmtrain: cannot open gone.svm: No such file or directory\n");
    assert_says(p->text[OUT], "\ns sync  ");
    assert_says(p->text[OUT], "\nl local:2  "); /* "failed: ...", or what its first rate has come to */
    assert_null(strstr(p->text[OUT], "signal"));
}

/* Rounds that were done are shown. */
static void an_error_between_seeds_leaves_those_that_are_done(void **state) {
    (void)state;
    write_data();
    struct program *p = START("compare", "-w", "1", "-e", "200", "--rate", "0.1", "--modes", "sync,local:2", "--seeds", "30",
                              "--progress", "plain", "gone.svm");
    lose_data(p, "seed 2 (2 of 30)");
    program_assert_status(p, 1);
    assert_says(p->text[ERR], "shmtrain: cannot open gone.svm: No such file or directory\n");
    for (char *at = p->text[OUT]; (at = strchr(at, '\n')); at++) *at = ' ';
    assert_says(p->text[OUT], "An error ended it: some modes have ");
    assert_null(strstr(p->text[OUT], "A signal came"));
}

/* What is known is told to programs and on the page, too. */
static void a_signal_leaves_json_and_a_page_of_what_is_known(void **state) {
    (void)state;
    struct program *p = START("compare", "-w", "1", "-e", "20", "--rate", "0.1", "--modes", "sync,local:2", "--seeds", "30",
                              "--json", "--html", "ended.html", "builtin:sparse:examples=20000");
    program_wait_for(p, ERR, "seed 1 (1 of 30)");
    kill(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(p, 130);
    json_t *o = program_json(p), *runs = json_object_get(o, "runs");
    assert_int_equal(json_array_size(runs), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *run = json_array_get(runs, i), *seeds = json_object_get(run, "seeds");
        assert_true(json_array_size(seeds) >= 1 && json_array_size(seeds) < SEEDS);
        assert_true(json_real_value(json_object_get(run, "final_loss")) > 0);
    }
    json_decref(o);
    assert_int_equal(access("ended.html", R_OK), 0);
    assert_int_equal(unlink("ended.html"), 0);
}

/* What it stops in its first epoch has no speed-up, and nothing is said of one. */
static void a_signal_while_rates_are_tried_leaves_what_is_known(void **state) {
    (void)state;
    struct program *p = START("compare", "-w", "1,2", "-e", "3", "--modes", "sync,local:2", "--progress", "plain",
                              "builtin:sparse:examples=200000");
    program_wait_for(p, ERR, "1 of 4, sync -w 1: ");
    kill(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(p, 130);
    assert_says(p->text[OUT], "\ns sync       1 ");
    assert_says(p->text[OUT], "\nl local:2    1  not run\n");
    assert_null(strstr(p->text[OUT], "At most"));
    assert_null(strstr(p->text[OUT], "No gain")); /* with two workers no epoch came to its end */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(an_error_at_a_later_trial_has_its_sentence_and_its_status),
        PROGRAM_TEST(an_error_between_seeds_leaves_those_that_are_done),
        PROGRAM_TEST(a_signal_leaves_json_and_a_page_of_what_is_known),
        PROGRAM_TEST(a_signal_while_rates_are_tried_leaves_what_is_known),
    };
    return cmocka_run_group_tests_name("program_compare_ends", tests, program_make_folder, program_remove_folder);
}
