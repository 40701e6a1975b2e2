/* The real program from outside: its commands other than train, and how it is told what to do. */
#include "run_program.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#define DATA "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

/* The label is the sign of what stands at features 2 to 6 or 8 to 14; 400 lines. */
static void write_toy_data(const char *name) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (int i = 0; i < 400; i++) fprintf(f, "%d 1:0.5 %d:1\n", i % 2 ? 3 : -1, i % 2 ? 2 + i % 5 : 8 + i % 7);
    assert_int_equal(fclose(f), 0);
}

static void make_model(void) {
    write_toy_data("toy");
    program_assert_status(RUN("-w", "2", "-q", "-o", "toy.model", "toy"), 0);
}

static void assert_says(const struct program *p, const char *text) {
    if (!strstr(p->text[OUT], text)) fail_msg("\"%s\" is not in:\n%s", text, p->text[OUT]);
}

/* ---- eval ---- */

static void eval_prints_what_the_model_is_worth(void **state) {
    (void)state;
    make_model();
    struct program *p = RUN("eval", "toy.model", "toy", "-w", "2");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    assert_says(p, "model       logistic, 400 examples\nlog loss    0.");
    assert_says(p, "\naccuracy    100.00 %\nAUC         1.0000\n");
    assert_says(p, "\n             -1      3\n      -1    200      0\n       3      0    200\n");
}

static void eval_gives_the_figures_of_validation_in_json(void **state) {
    (void)state;
    write_toy_data("toy");
    struct program *p = RUN("-q", "--json", "-w", "2", "-e", "2", "--valid", "toy", "-o", "json.model", "toy");
    program_assert_status(p, 0);
    json_t *run = program_json(p), *last = json_array_get(json_object_get(run, "epochs"), 1);
    p = RUN("eval", "--json", "json.model", "toy");
    program_assert_status(p, 0);
    json_t *e = program_json(p);
    assert_true(json_number_value(json_object_get(e, "loss")) == json_number_value(json_object_get(last, "valid_loss")));
    assert_true(json_number_value(json_object_get(e, "auc")) == json_number_value(json_object_get(last, "valid_auc")));
    assert_int_equal(json_integer_value(json_object_get(e, "examples")), 400);
    assert_int_equal(json_array_size(json_object_get(e, "confusion")), 2);
    json_decref(e);
    json_decref(run);
}

static void eval_of_a_regression_has_its_error(void **state) {
    (void)state;
    program_write_file("line", "1 1:1\n2 1:2\n3 1:3\n4 1:4\n");
    program_assert_status(
        RUN("-q", "-w", "1", "-M", "linear", "-r", "0.02", "--schedule", "constant", "-e", "300", "-o", "line.model", "line"),
        0);
    struct program *p = RUN("eval", "line.model", "line");
    program_assert_status(p, 0);
    assert_says(p, "\nRMSE        0.");
    assert_null(strstr(p->text[OUT], "accuracy"));
}

/* ---- predict ---- */

static void predict_prints_a_line_for_each_example(void **state) {
    (void)state;
    make_model();
    program_write_file("three", "9 2:1\n0 8:1\n-7 3:1 # any label\n");
    struct program *p = RUN("predict", "toy.model", "three");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    assert_string_equal(p->text[OUT], "3\n-1\n3\n");
    p = RUN("predict", "--probabilities", "toy.model", "three");
    program_assert_status(p, 0);
    double label[3], output[3];
    assert_int_equal(sscanf(p->text[OUT], "%lf %lf\n%lf %lf\n%lf %lf\n", &label[0], &output[0], &label[1], &output[1],
                            &label[2], &output[2]),
                     6);
    assert_true(output[0] > 0.5 && output[0] < 1 && output[1] < 0.5 && output[1] > 0 && output[2] > 0.5);
    const double probability = output[0];
    p = RUN("predict", "--scores", "toy.model", "three");
    program_assert_status(p, 0);
    assert_int_equal(sscanf(p->text[OUT], "%lf %lf", &label[0], &output[0]), 2);
    assert_true(fabs(1 / (1 + exp(-output[0])) - probability) < 1e-6);
}

static void predict_writes_a_file_whole_or_not_at_all(void **state) {
    char text[8] = "";
    (void)state;
    make_model();
    program_write_file("two", "0 2:1\n0 8:1\n");
    program_write_file("bad", "0 2:1\nx\n");
    program_write_file("out", "before");
    program_assert_refused(RUN("predict", "toy.model", "bad", "-o", "out"), 1, "bad:2:1: expected a label");
    FILE *f = fopen("out", "r");
    assert_non_null(f);
    assert_string_equal(fgets(text, sizeof text, f), "before"); /* nothing was predicted: nothing is overwritten */
    fclose(f);
    struct program *p = RUN("predict", "-o", "out", "toy.model", "two");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    f = fopen("out", "r");
    assert_non_null(f);
    assert_string_equal(fgets(text, sizeof text, f), "3\n");
    assert_string_equal(fgets(text, sizeof text, f), "-1\n");
    assert_null(fgets(text, sizeof text, f));
    fclose(f);
    program_assert_refused(RUN("predict", "-o", "/dev/full", "toy.model", "two"), 1,
                           "cannot write the predictions to /dev/full: No space left on device");
    program_assert_refused(RUN("predict", "-o", "none/out", "toy.model", "two"), 1,
                           "cannot write the predictions to none/out: No such file");
}

static void a_reader_that_leaves_ends_predict_quietly(void **state) {
    (void)state;
    program_assert_status(RUN("-w", "2", "-q", "-e", "1", "-o", "sparse.model", DATA), 0);
    const char *const script[] = {
        "bash", "-c",
        "\"$TEST_BUILDDIR\"/shmtrain predict sparse.model builtin:sparse:examples=200000,features=400 | head -n 1; "
        "echo ${PIPESTATUS[0]}",
        NULL};
    struct program *p = program_run(NULL, script);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    assert_says(p, "\n141\n"); /* SIGPIPE, as any program before `head` */
}

/* Which data it takes for eval to be caught at work depends on the machine: mostly the first. */
static void a_signal_ends_eval(void **state) {
    static const char *const DATA_OF[] = {"builtin:sparse:examples=300000,features=400,nonzeros=40",
                                          "builtin:sparse:examples=1200000,features=400,nonzeros=40",
                                          "builtin:sparse:examples=5000000,features=400,nonzeros=40"};
    struct program *p = NULL;
    (void)state;
    program_assert_status(RUN("-w", "2", "-q", "-e", "1", "-o", "sparse.model", DATA), 0);
    for (int i = 0; i < 3 && (!p || p->status == 0); i++) {
        p = START("eval", "-w", "1", "sparse.model", DATA_OF[i]);
        (void)program_worker_unless_over(p, 0);
        kill(p->pid, SIGTERM);
        program_finish(p);
    }
    program_assert_status(p, 143);
    assert_non_null(strstr(p->text[ERR], "shmtrain: stopped while "));
}

/* ---- help ---- */

static void help_has_a_page_for_each_command(void **state) {
    (void)state;
    static const char *const COMMANDS[] = {"train", "eval", "predict", "topo", "compare", "ls", "rm", "join", "watch", "help"};
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        char text[64];
        struct program *p = RUN("help", COMMANDS[i]);
        program_assert_status(p, 0);
        snprintf(text, sizeof text, "Usage: shmtrain %s", COMMANDS[i]);
        assert_says(p, text);
        for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n"))
            if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
    }
    struct program *p = RUN("eval", "--help");
    program_assert_status(p, 0);
    assert_says(p, "-w, --workers ");
    assert_null(strstr(p->text[OUT], "--rate"));
}

static bool is_in(const struct program *p, const char *option) { return strstr(p->text[OUT], option) != NULL; }

/* Also of the command that is meant when none is named, when it is. */
static void a_commands_help_lists_what_it_takes(void **state) {
    (void)state;
    for (int behind = 0; behind < 2; behind++) {
        struct program *p = behind ? RUN("train", "--help") : RUN("help", "train");
        program_assert_status(p, 0);
        assert_true(is_in(p, "--rate X") && is_in(p, "--output FILE") && is_in(p, "builtin:line"));
        assert_false(is_in(p, "--force") || is_in(p, "--scores") || is_in(p, "--probabilities"));
        p = behind ? RUN("--help", "rm") : RUN("help", "rm");
        program_assert_status(p, 0);
        assert_true(is_in(p, "--force"));
        assert_false(is_in(p, "--rate") || is_in(p, "--output"));
    }
    struct program *train = RUN("help", "train");
    assert_true(is_in(train, "images (IDX, NumPy, CIFAR-10)"));
    assert_true(is_in(train, "Each option that sets up a run, and --progress"));
    assert_true(is_in(train, "cannot be read, and count them\n")); /* a switch has no default to show */
}

/* ---- progress ---- */

static int show_none(void) { return setenv("SHMTRAIN_PROGRESS", "none", 1); }

static void without_progress_there_is_the_opening_and_the_summary(void **state) {
    (void)state;
    for (int by_variable = 0; by_variable < 2; by_variable++) {
        struct program *p =
            by_variable ? RUN_IN(show_none, "-w", "1", "-e", "2", DATA) : RUN("-w", "1", "-e", "2", "--progress", "none", DATA);
        program_assert_status(p, 0);
        assert_says(p, "model       logistic");
        assert_says(p, "done: 2 epochs");
        assert_null(strstr(p->text[OUT], "\n    1 "));
    }
    struct program *p = RUN_IN(show_none, "-w", "1", "-e", "2", "--progress", "plain", DATA);
    program_assert_status(p, 0);
    assert_says(p, "\n    2 ");
    p = RUN("-w", "1", "-e", "2", "--progress", "bar", DATA); /* no terminal: no bar */
    program_assert_status(p, 0);
    assert_says(p, "\n    2 ");
    assert_null(strchr(p->text[OUT], '\033'));
}

static int show_something_else(void) { return setenv("SHMTRAIN_PROGRESS", "loudly", 1); }

static void an_unknown_kind_of_progress_is_refused(void **state) {
    (void)state;
    program_assert_refused(RUN("--progress", "loudly"), 2, "--progress loudly: expected one of auto|bar|plain|none");
    program_assert_refused(RUN_IN(show_something_else, "-w", "1"), 2, "SHMTRAIN_PROGRESS loudly: expected one of auto|");
    program_assert_refused(RUN("eval", "--progress", "bar", "m", "d"), 2, "eval does not use --progress");
}

/* ---- refusals ---- */

static void mistyped_words_are_answered_with_the_nearest_one(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "there is no command and no file \"evla\": did you mean shmtrain eval?", {"evla", "model", "data"}},
        {2, "there is no command and no file \"toop\": did you mean shmtrain topo?", {"toop"}},
        {2, "there is no command and no file \"predicct\": did you mean shmtrain predict?", {"predicct"}},
        {2, "there is no command and no topic \"evel\": did you mean eval?", {"help", "evel"}},
        {2, "there is no command and no topic \"surprise\"; shmtrain help lists them", {"help", "surprise"}},
        {2, "there is no option --epohcs: did you mean --epochs?", {"--epohcs", "3"}},
        {1, "cannot open surprise: No such file", {"surprise"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void a_file_that_is_called_like_a_command_is_named_with_its_folder(void **state) {
    (void)state;
    write_toy_data("eval");
    write_toy_data("evla"); /* near a command, but a file */
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "./eval"), 0);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "evla"), 0);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "train", "eval"), 0); /* behind a command it is data */
    program_assert_refused(RUN("-w", "1", "eval"), 2, "shmtrain eval MODEL DATA: these are missing");
}

static void options_and_words_that_a_command_does_not_use_are_refused(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "eval does not use --rate: shmtrain help eval lists what it does", {"eval", "--rate", "3", "m", "d"}},
        {2, "eval does not use --output", {"-o", "x", "eval", "m", "d"}},
        {2, "train does not use --probabilities", {"--probabilities"}},
        {2, "help does not use --workers", {"-w", "2", "help"}},
        {2, "shmtrain eval MODEL DATA: the last one is missing", {"eval", "m"}},
        {2, "shmtrain eval MODEL DATA: what is \"x\"?", {"eval", "m", "d", "x"}},
        {2, "shmtrain ls: what is \"x\"?", {"ls", "x"}},
        {2, "shmtrain predict MODEL DATA: these are missing", {"predict"}},
        {2, "take --scores or --probabilities, not both", {"predict", "--scores", "--probabilities", "m", "d"}},
        {2, "--workers 0: expected", {"eval", "-w", "0", "m", "d"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void what_is_no_model_is_refused(void **state) {
    (void)state;
    make_model();
    program_write_file("empty.model", "");
    program_write_file("other", "5 1:1\n");
    program_assert_status(RUN("-q", "-w", "1", "-M", "svm", "-o", "svm.model", "toy"), 0);
    const struct refusal list[] = {
        {1, "cannot open the model none: No such file or directory", {"eval", "none", "toy"}},
        {1, "toy: byte 0: not a model file, or one cut short", {"eval", "toy", "toy.model"}},
        {1, "empty.model has 0 bytes: not a model file", {"predict", "empty.model", "toy"}},
        {1, ". is a folder: name a model file", {"predict", ".", "toy"}},
        {1, "other:1: label 5 is not one of the model's labels, which are -1 and 3", {"eval", "toy.model", "other"}},
        {1, "cannot open none: No such file or directory", {"predict", "toy.model", "none"}},
        {2, "model svm has no probabilities: use its scores", {"predict", "--probabilities", "svm.model", "toy"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static int ask_for_posix(void) { return setenv("POSIXLY_CORRECT", "1", 1); }

static void options_may_stand_anywhere_and_end_at_two_dashes(void **state) {
    (void)state;
    make_model();
    program_write_file("-w", "0 2:1\n");
    const char *const expected = "3\n";
    struct program *p = RUN("-w", "2", "predict", "toy.model", "--", "-w");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], expected);
    p = RUN_IN(ask_for_posix, "predict", "toy.model", "./-w", "-w", "2");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(eval_prints_what_the_model_is_worth),
        PROGRAM_TEST(eval_gives_the_figures_of_validation_in_json),
        PROGRAM_TEST(eval_of_a_regression_has_its_error),
        PROGRAM_TEST(predict_prints_a_line_for_each_example),
        PROGRAM_TEST(predict_writes_a_file_whole_or_not_at_all),
        PROGRAM_TEST(a_reader_that_leaves_ends_predict_quietly),
        PROGRAM_TEST(a_signal_ends_eval),
        PROGRAM_TEST(help_has_a_page_for_each_command),
        PROGRAM_TEST(a_commands_help_lists_what_it_takes),
        PROGRAM_TEST(without_progress_there_is_the_opening_and_the_summary),
        PROGRAM_TEST(an_unknown_kind_of_progress_is_refused),
        PROGRAM_TEST(mistyped_words_are_answered_with_the_nearest_one),
        PROGRAM_TEST(a_file_that_is_called_like_a_command_is_named_with_its_folder),
        PROGRAM_TEST(options_and_words_that_a_command_does_not_use_are_refused),
        PROGRAM_TEST(what_is_no_model_is_refused),
        PROGRAM_TEST(options_may_stand_anywhere_and_end_at_two_dashes),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
