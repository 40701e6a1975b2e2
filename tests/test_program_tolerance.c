/* The real program from outside: fits that go on until the optimum is proved (--tolerance). The method itself: test_solve.c;
 * deaths at each point: test_points.c. */
#include "run_program.h"

#include <math.h>
#include <signal.h>

#define FEW  "builtin:sparse:examples=5000,valid=500,features=200,nonzeros=10"    /* columns: by the Hessian */
#define MANY "builtin:sparse:examples=5000,valid=500,features=20000,nonzeros=30"  /* by conjugate gradients */
#define LONG "builtin:sparse:examples=40000,valid=100,features=20000,nonzeros=30" /* longer than some kills take */

static json_t *last_epoch(const json_t *report) {
    const json_t *epochs = json_object_get(report, "epochs");
    assert_true(json_array_size(epochs) > 0);
    return json_array_get(epochs, json_array_size(epochs) - 1);
}

static void the_proof_stands_in_the_text_and_in_json(void **state) {
    (void)state;
    struct program *text = RUN("-w", "2", "--C", "1", "--tolerance", "1e-4", FEW);
    program_assert_status(text, 0);
    assert_non_null(strstr(text->text[OUT], "epoch    objective      gap  valid loss  accuracy     AUC     seconds\n"));
    assert_non_null(strstr(text->text[OUT], "ended where the optimum was proved\n"));
    assert_non_null(strstr(text->text[OUT], "optimum     proved: the objective 0."));
    for (const char *line = text->text[OUT]; *line; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") <= 80);
    struct program *run = RUN("-q", "--json", "-w", "2", "--C", "1", "--tolerance", "1e-4", FEW);
    program_assert_status(run, 0);
    json_t *report = program_json(run), *last = last_epoch(report);
    const double objective = program_number(last, "objective"), bound = program_number(last, "bound"),
                 gap = program_number(last, "gap");
    assert_true(bound > 0 && bound <= objective && gap <= 1e-4);
    assert_true(fabs(gap - (objective - bound) / bound) < 1e-8); /* of ten digits each */
    assert_true(program_number(report, "tolerance") == 1e-4);
    assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "tolerance");
    assert_true(json_is_false(json_object_get(report, "stopped")));
    assert_string_equal(json_string_value(json_object_get(report, "optimizer")), "exact");
    assert_true(fabs(program_number(report, "l2") - 1.0 / 5000) < 1e-18);
    json_decref(report);
}

static void bits_are_the_same_for_all_workers_and_backends(void **state) {
    static const char *const DATA[] = {FEW, MANY};
    static const struct {
        const char *model, *option, *tolerance;
    } FITS[] = {{"logistic", "--C=10", "--tolerance=1e-8"},
                {"svm", "--C=10", "--tolerance=1e-6"},
                {"logistic", "--l1=1e-3", "--tolerance=1e-6"}};
    (void)state;
    for (size_t k = 0; k < 2 * sizeof FITS / sizeof *FITS; k++) {
        char one[17], other[17];
        const char *data = DATA[k % 2], *m = FITS[k / 2].model, *o = FITS[k / 2].option, *t = FITS[k / 2].tolerance;
        HASH(one, "-w", "1", "-M", m, o, t, data);
        HASH(other, "-w", "3", "-M", m, o, t, data);
        assert_string_equal(other, one);
        HASH(other, "-w", "8", "-M", m, o, t, data);
        assert_string_equal(other, one);
        HASH(other, "-w", "3", "--spawn", "threads", "-M", m, o, t, data);
        assert_string_equal(other, one);
        HASH(other, "-w", "1", "--backend", "plain", "-M", m, o, t, data);
        assert_string_equal(other, one);
    }
}

/* What liblinear-train -q -e 1e-10 -c 1 finds, with -s 0, and with -s 11 -p 0. */
static const char TABLE[] =
    "+1 1:0.5 3:1.25 4:-2\n-1 2:1 3:0.25\n+1 1:2 2:-1 4:0.5\n-1 1:-0.75 3:-1 4:1\n+1 2:0.5 3:2\n"
    "-1 1:1 2:1.5 4:-0.5\n";
static const struct {
    const char *model;
    double weight[4];
} FITS[] = {{"logistic", {0.3308052668, -0.8699330461, 0.7972640732, -0.2699761547}},
            {"linear", {0.1407052384, -0.7662172298, 0.6180064270, -0.1031445833}}};

/* A gap of 1e-12 leaves of each weight sqrt(2 gap P / l2) at most: with P below 1 and l2 of 1/12 and more, 5e-6. */
static void weights_are_those_of_liblinear(void **state) {
    (void)state;
    program_write_file("train.svm", TABLE);
    for (size_t i = 0; i < sizeof FITS / sizeof *FITS; i++) {
        program_assert_status(RUN("-q", "--bias=0", "-M", FITS[i].model, "--C=1", "--tolerance=1e-12", "-o", "m", "train.svm"),
                              0);
        program_assert_status(RUN("model", "convert", "m", "-o", "m.csv", "--format", "csv"), 0);
        FILE *f = fopen("m.csv", "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "feature,weight"), 0);
        for (int j = 0; j < 4; j++) {
            double weight;
            int feature;
            assert_int_equal(fscanf(f, " %d,%lf", &feature, &weight), 2);
            assert_true(feature == j + 1 && fabs(weight - FITS[i].weight[j]) < 5e-6);
        }
        fclose(f);
    }
}

/* Some are killed while they wait for worker 0, who does the longest phases of dual ascent and of L1 alone. */
static void a_killed_worker_changes_no_bit(void **state) {
    static const struct {
        const char *model, *option, *tolerance;
        unsigned workers;
    } RUNS[] = {{"logistic", "--C=1000", "--tolerance=1e-9", 3},
                {"svm", "--C=1", "--tolerance=1e-3", 2},
                {"logistic", "--l1=1e-4", "--tolerance=1e-5", 2}};
    (void)state;
    for (size_t k = 0; k < sizeof RUNS / sizeof *RUNS; k++) {
        char usual[17], workers[8];
        const char *m = RUNS[k].model, *o = RUNS[k].option, *t = RUNS[k].tolerance;
        snprintf(workers, sizeof workers, "%u", RUNS[k].workers);
        HASH(usual, "-w", "2", "-M", m, o, t, LONG);
        struct program *run = START("--json", "--quiet", "-w", workers, "--max-respawns", "1000", "-M", m, o, t, LONG);
        for (unsigned i = 0; i < 14; i++) {
            const pid_t pid = program_worker_if_any(run, i % 3 ? RUNS[k].workers - 1 : i % RUNS[k].workers);
            if (pid > 0) (void)kill(pid, SIGKILL);
            usleep(15000);
        }
        program_finish(run);
        program_assert_status(run, 0);
        json_t *report = program_json(run);
        if (strcmp(json_string_value(json_object_get(report, "parameters_xxh64")), usual) != 0)
            fail_msg("%s %s: a killed worker changed the result", m, o);
        assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "tolerance");
        json_decref(report);
    }
}

/* However many of their changes are lost. */
static void workers_that_ascend_at_once_prove_the_same_optimum(void **state) {
    static const char *const MODELS[] = {"logistic", "svm", "linear"}, *const MODES[] = {"hogwild", "async"};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        const char *model = MODELS[k / 2], *mode = MODES[k % 2];
        json_t *of[2];
        for (int live = 0; live < 2; live++) {
            struct program *run = RUN("--json", "-q", "-w", live ? "8" : "1", "--mode", live ? mode : "sync", "-M", model,
                                      "--C=1", "--tolerance=1e-4", FEW);
            program_assert_status(run, 0);
            of[live] = program_json(run);
            const char *end = json_string_value(json_object_get(of[live], "stopped_by"));
            if (!end || strcmp(end, "tolerance") != 0)
                fail_msg("%s, %s: ended by %s", model, mode, end ? end : "its last epoch");
        }
        assert_string_equal(json_string_value(json_object_get(of[1], "mode")), mode);
        assert_string_equal(json_string_value(json_object_get(of[1], "write")), k % 2 ? "atomic" : "racy");
        const double here = program_number(last_epoch(of[0]), "objective"),
                     there = program_number(last_epoch(of[1]), "objective");
        assert_true(fabs(there - here) <= 1e-4 * here);
        for (int live = 0; live < 2; live++) json_decref(of[live]);
    }
}

/* As they watch other runs; who would join has nothing to do. */
static void others_may_watch_a_fit_and_none_may_join(void **state) {
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "test_program_tolerance-%d", (int)getpid());
    struct program *run = START("-w", "2", "-M", "svm", "--C=100", "--tolerance=1e-9", "--name", name, LONG);
    program_wait_for_epoch(run);
    program_assert_refused(RUN("join", "-q", name), 2, " is of an exact fit: it can be observed, but not joined");
    struct program *watch = START("watch", name);
    program_wait_for_epoch(watch);
    assert_int_equal(kill(run->pid, SIGINT), 0);
    program_finish(run);
    program_finish(watch);
    program_assert_status(watch, 0);
    assert_non_null(strstr(watch->text[OUT], "model       svm, steps until it is proved within 1e-09 of the optimum,"));
    assert_non_null(strstr(watch->text[OUT], "epoch    objective      gap  valid loss"));
    assert_non_null(strstr(watch->text[OUT], "optimum     NOT proved: the objective is "));
    program_assert_status(RUN("rm", name), 0);
}

/* What ends a run otherwise is no proof. */
static void another_end_proves_nothing(void **state) {
    (void)state;
    struct program *run = RUN("-w", "2", "--steps", "2", "--C", "1", "--tolerance", "1e-6", FEW);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], "optimum     NOT proved: the objective is "));
    run = RUN("-w", "2", "--target-loss", "0.69", "--C", "1", "--tolerance", "1e-6", FEW);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], "ended by --target-loss"));
    assert_non_null(strstr(run->text[OUT], "optimum     NOT proved: the objective is "));
}

static void a_stop_leaves_the_last_point_and_says_that_nothing_is_proved(void **state) {
    (void)state;
    struct program *run = START("-w", "2", "-M", "svm", "--C", "1000", "--tolerance", "1e-12", "-o", "stopped.model", LONG);
    program_wait_for_epoch(run);
    assert_int_equal(kill(run->pid, SIGINT), 0);
    program_finish(run);
    program_assert_status(run, 130);
    assert_non_null(strstr(run->text[OUT], "optimum     NOT proved: the objective is "));
    program_assert_status(RUN("eval", "stopped.model", LONG), 0);
}

static void too_few_epochs_prove_nothing(void **state) {
    (void)state;
    struct program *run = RUN("-w", "2", "-e", "2", "--C", "1", "--tolerance", "1e-6", FEW);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], "optimum     NOT proved: the objective is "));
    assert_non_null(strstr(run->text[OUT], "done: 2 epochs"));
}

static void a_model_goes_on_where_it_ended(void **state) {
    (void)state;
    program_assert_status(RUN("-q", "--C", "1", "--tolerance", "1e-6", "-o", "first.model", MANY), 0);
    struct program *run = RUN("--C", "1", "--tolerance", "1e-6", "--init-from", "first.model", MANY);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], "done: 1 epoch in"));
    assert_non_null(strstr(run->text[OUT], "optimum     proved: "));
}

/* How near it came, why, and what to type: with that it is proved. */
static void what_comes_no_nearer_says_what_to_type(void **state) {
    (void)state;
    program_write_file("far.svm", "+1 1:1e20 2:1\n-1 1:1 2:0.5\n+1 1:2 2:-1\n-1 1:3 2:1\n+1 1:1\n-1 2:1\n");
    program_write_file("near.svm", "+1 1:3 2:1 3:0.3\n-1 1:1 2:-7 3:0.1\n+1 1:0.11 2:0.3 3:0.7\n-1 1:-0.13 2:0.1 3:0.9\n");
    program_write_file("steep.svm", "1e20 1:1e-20\n-1e20 1:2e-20 2:1\n3 2:1e-30\n");
    struct program *run = RUN("-M", "linear", "--C=1e10", "--tolerance=1e-6", "far.svm");
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT],
                           "optimum     NOT proved: no lower bound was found, steps lead no further:\n"
                           "            scale the features to about 1, or use more L2 (a smaller --C)\n"));
    run = RUN("-M", "svm", "--C=1e4", "--tolerance=1e-6", "near.svm");
    program_assert_status(run, 0);
    const char *nearest = strstr(run->text[OUT], "optimum     NOT proved: the gap stays at ");
    assert_non_null(nearest);
    assert_non_null(strstr(nearest, ", floats have no more digits:\n            use --tolerance "));
    char tolerance[16];
    assert_int_equal(sscanf(strstr(nearest, "use --tolerance "), "use --tolerance %15[0-9.e-]", tolerance), 1);
    run = RUN("-M", "svm", "--C=1e4", "--tolerance", tolerance, "near.svm");
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], "optimum     proved: "));
    run = RUN("-M", "linear", "--l1=0.1", "--tolerance=1e-6", "steep.svm");
    program_assert_status(run, 1);
    assert_non_null(
        strstr(run->text[ERR], "is infinite: the optimum is too far away for 32-bit numbers: scale the features and"));
}

static void c_is_l2_in_other_words(void **state) {
    char c[17], l2[17];
    (void)state;
    HASH(c, "-w", "1", "--C", "2", "--tolerance", "1e-6", FEW);
    HASH(l2, "-w", "1", "--l2", "1e-4", "--tolerance", "1e-6", FEW);
    assert_string_equal(c, l2);
    HASH(c, "-w", "1", "--mode", "sync", "--C", "2", FEW);
    HASH(l2, "-w", "1", "--mode", "sync", "--l2", "1e-4", FEW);
    assert_string_equal(c, l2);
}

static void what_cannot_be_proved_is_refused(void **state) {
    static const struct refusal ALL[] = {

        {2,
         "--tolerance needs L2 or L1, without which there may be no optimum: add --C X, --l2 X or --l1 X",
         {"--tolerance", "1e-3", "-Msvm", FEW}},
        {2,
         "--tolerance needs L2 or L1, without which there may be no optimum: add --C X, --l2 X or --l1 X",
         {"--tolerance", "1e-3", "--l2=0", FEW}},
        {2, "--tolerance is for softmax with L2 alone: leave out --l1", {"-Msoftmax", "--l1=1", "--tolerance=1e-3", FEW}},
        {2, "leave out --scale, or --name", {"--scale=yes", "--mode=async", "--name=x", FEW}},
        {2, "--scale is for logistic, softmax and linear with L2 alone", {"--scale=yes", "--l1=1", "--tolerance=1", FEW}},
        {2, "--tolerance is for svm with L2 alone: leave out --l1", {"-Msvm", "--l1=1e-3", "--C=1", "--tolerance=1e-3", FEW}},
        {2, "which have no rate: leave out --rate or --tolerance", {"--rate=1", "--C=1", "--tolerance=1e-3", FEW}},
        {2,
         "the modes sync, async and hogwild: leave out --mode or --tolerance",
         {"--mode=ssp:2", "--C=1", "--tolerance=1", FEW}},
        {2,
         "--mode async does not choose L2: add --C X or --l2 X, or leave out --mode",
         {"--mode=async", "--tolerance=1", FEW}},
        {2, "--mode async is for L2 alone: leave out --mode or --l1", {"--mode=async", "--l1=1", "--tolerance=1", FEW}},
        {2, "--mode hogwild is for logistic, svm and linear", {"--mode=hogwild", "-Msoftmax", "--C=1", "--tolerance=1", FEW}},
        {2,
         "of features as they are: leave out --mode or --scale",
         {"--mode=async", "--scale=yes", "--C=1", "--tolerance=1", FEW}},
        {2,
         "the modes sync, async and hogwild: leave out --replicas or --tolerance",
         {"--replicas=worker", "--C=1", "--tolerance=1e-3", FEW}},
        {2, "nobody can join a run, but others can watch", {"--guests=1", "--C=1", "--tolerance=1e-3", FEW}},
        {2,
         "--mode async begins at nothing, as all dual ascent: leave out --init-from, or --mode",
         {"--init-from=x", "--mode=async", "--C=1", "--tolerance=1", FEW}},
        {2,
         "svm begins at nothing, as all dual ascent: leave out --init-from, or --tolerance",
         {"--init-from=x", "-Msvm", "--C=1", "--tolerance=1", FEW}},
        {2,
         "needs all its workers: use --on-death respawn, or abort",
         {"--on-death=continue", "--C=1", "--tolerance=1e-3", FEW}},
        {2, "which have no slow: leave out --slow or --tolerance", {"--slow=0:2x", "--C=1", "--tolerance=1e-3", FEW}},
        {2, "ftrl sums losses: use --l2 with --optimizer ftrl", {"--optimizer=ftrl", "--C=1", FEW}},
        {2, "its modes take steps of SGD, and --tolerance takes others", {"compare", "--C=1", "--tolerance=1e-3", FEW}},
        {2, "--C and --l2 both say how large L2 is: leave out one of them", {"--C=1", "--l2=1", FEW}},
        {2, "--tolerance 0: expected a number from 1e-12 to 1, or none", {"--tolerance=0", FEW}},
    };
    (void)state;
    ASSERT_ALL_REFUSED(ALL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(the_proof_stands_in_the_text_and_in_json),
        PROGRAM_TEST(bits_are_the_same_for_all_workers_and_backends),
        PROGRAM_TEST(workers_that_ascend_at_once_prove_the_same_optimum),
        PROGRAM_TEST(others_may_watch_a_fit_and_none_may_join),
        PROGRAM_TEST(weights_are_those_of_liblinear),
        PROGRAM_TEST(a_killed_worker_changes_no_bit),
        PROGRAM_TEST(another_end_proves_nothing),
        PROGRAM_TEST(a_stop_leaves_the_last_point_and_says_that_nothing_is_proved),
        PROGRAM_TEST(too_few_epochs_prove_nothing),
        PROGRAM_TEST(a_model_goes_on_where_it_ended),
        PROGRAM_TEST(what_comes_no_nearer_says_what_to_type),
        PROGRAM_TEST(c_is_l2_in_other_words),
        PROGRAM_TEST(what_cannot_be_proved_is_refused),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
