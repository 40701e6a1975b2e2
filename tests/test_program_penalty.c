/* The real program from outside: L2 that steps of SGD choose where examples are few. */
#include "run_program.h"

#include <math.h>

#include "base/random.h"

static double uniform(uint64_t row, uint64_t what) { return shmt_unit(shmt_hash64(5, row, what, 0)); }

/* Rows of `columns` values, of which the first three say something about the label, which is two classes, three, or a number. */
static void write_noise(const char *name, const char *model, uint64_t from, uint64_t to, int columns) {
    FILE *f = fopen(name, "w");
    const bool numbers = strcmp(model, "linear") == 0;
    assert_non_null(f);
    for (uint64_t i = from; i < to; i++) {
        const double score =
            2 * (uniform(i, 0) + uniform(i, 1) - uniform(i, 2) - 0.5) + 0.8 * (uniform(i, 999) - 0.5) * (numbers ? 4 : 1);
        const double label = numbers                         ? score
                             : strcmp(model, "softmax") == 0 ? floor(fmin(1.5, fmax(-1.4, 2 * score)))
                             : score > 0                     ? 1
                                                             : -1;
        fprintf(f, "%.6g", label);
        for (int j = 0; j < columns; j++) fprintf(f, " %d:%.6g", j + 1, uniform(i, (uint64_t)j));
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static double final_loss(const json_t *o) {
    const json_t *epochs = json_object_get(o, "epochs");
    return program_number(json_array_get(epochs, json_array_size(epochs) - 1), "valid_loss");
}

static const char *const MODELS[] = {"logistic", "softmax", "linear"};

/* 150 rows of 60 columns: whoever fits them without L2 learns the noise. */
static void few_examples_are_learned_with_l2_that_is_chosen(void **state) {
    static const char *const OPTIMIZERS[] = {"sgd", "momentum", "adagrad", "adam", "ftrl"};
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        write_noise("few", MODELS[m], 0, 150, 60);
        write_noise("few.t", MODELS[m], 1000, 2000, 60);
        for (size_t k = 0; k < 5; k++) {
#define STEPS "-w", "1", "-M", MODELS[m], "--mode", "sync", "--optimizer", OPTIMIZERS[k], "--valid", "few.t"
            json_t *chosen = REPORT(STEPS, "few"), *none = REPORT(STEPS, "--l2", "0", "--scale", "yes", "-e", "60", "few");
            const json_t *choice = json_object_get(chosen, "choice");
            assert_true(program_number(choice, "examples") == 150 && program_number(choice, "parts") == 4 &&
                        program_number(choice, "held") == 4);
            assert_true(program_number(choice, "fits") >= 3 && program_number(choice, "loss") > 0 &&
                        program_number(chosen, "l2") > 0);
            if (!(final_loss(chosen) < final_loss(none)))
                fail_msg("%s, %s: %g, without L2 %g", MODELS[m], OPTIMIZERS[k], final_loss(chosen), final_loss(none));
            json_decref(chosen);
            json_decref(none);
        }
    }
}

static void it_has_the_same_bits_for_every_number_of_workers(void **state) {
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        char one[17], other[17];
        write_noise("few", MODELS[m], 0, 300, 20);
        HASH(one, "-w", "1", "-M", MODELS[m], "--mode", "sync", "few");
        HASH(other, "-w", "3", "-M", MODELS[m], "--mode", "sync", "few");
        assert_string_equal(other, one);
        HASH(other, "-w", "8", "--spawn", "threads", "-M", MODELS[m], "--mode", "sync", "few");
        assert_string_equal(other, one);
    }
}

/* The opening lines say what was chosen, and how to have it again. */
static void what_was_chosen_can_be_typed(void **state) {
    static const char *const OPTIMIZERS[] = {"sgd", "ftrl"};
    (void)state;
    write_noise("few", "logistic", 0, 300, 20);
    write_noise("few.t", "logistic", 1000, 2000, 20);
    for (size_t k = 0; k < 2; k++) {
        struct program *p = RUN("-w", "2", "--mode", "sync", "--optimizer", OPTIMIZERS[k], "few");
        program_assert_status(p, 0);
        assert_non_null(strstr(p->text[OUT], "l2 chosen on 4 parts of the examples, each held out in turn\n"));
        const char *typed = strstr(p->text[OUT], "as by hand with --l2 ");
        assert_non_null(typed);
        for (const char *line = p->text[OUT]; *line; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") <= 80);
        char l2[32], scale[16];
        assert_int_equal(sscanf(typed, "as by hand with --l2 %31s --scale %15s\n", l2, scale), 2);
        assert_string_equal(scale, "yes");
        json_t *o = REPORT("-w", "2", "--mode", "sync", "--optimizer", OPTIMIZERS[k], "--valid", "few.t", "few");
        json_t *again = REPORT("-w", "2", "--mode", "sync", "--optimizer", OPTIMIZERS[k], "--valid", "few.t", "--l2", l2,
                               "--scale", scale, "few");
        assert_true(json_is_null(json_object_get(again, "choice")) &&
                    program_number(again, "rate") == program_number(o, "rate"));
        assert_true(fabs(final_loss(again) / final_loss(o) - 1) < 1e-3);
        json_decref(o);
        json_decref(again);
    }
}

static void what_is_typed_is_not_chosen(void **state) {
    static const char *const OPTIONS[][2] = {{"--rate", "0.1"}, {"--l2", "0.1"}, {"--l2", "0"},
                                             {"--C", "0.1"},    {"--l1", "0.1"}, {"--model", "svm"}};
    static const double L2[] = {0, 0.1, 0, 1 / (0.1 * 300), 0, 0};
    (void)state;
    write_noise("few", "logistic", 0, 300, 20);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        json_t *o = REPORT("-w", "1", "--mode", "sync", "-e", "1", OPTIONS[i][0], OPTIONS[i][1], "few");
        if (!json_is_null(json_object_get(o, "choice"))) fail_msg("%s: L2 is chosen", OPTIONS[i][0]);
        assert_true(fabs(program_number(o, "l2") - L2[i]) < 1e-6);
        json_decref(o);
    }
}

static void of_many_examples_nothing_is_chosen(void **state) {
    (void)state;
    write_noise("many", "logistic", 0, 20000, 3);
    json_t *o = REPORT("-w", "2", "--mode", "async", "-e", "1", "many");
    assert_true(json_is_null(json_object_get(o, "choice")) && program_number(o, "l2") == 0);
    json_decref(o);
    o = REPORT("-w", "2", "--mode", "async", "-e", "1", "--valid", "0.1", "many"); /* of 18,000 */
    assert_true(json_is_object(json_object_get(o, "choice")) && program_number(o, "l2") > 0);
    json_decref(o);
}

/* 500 classes of 60 values: choosing would take as long as a run. */
static void where_it_would_take_too_long_nothing_is_chosen(void **state) {
    (void)state;
    FILE *f = fopen("classes", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 600; i++) {
        fprintf(f, "%d", (int)(i % 500));
        for (int j = 0; j < 60; j++) fprintf(f, " %d:%.3g", j + 1, uniform(i, (uint64_t)j) + 0.1);
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
    struct program *p = RUN("-w", "1", "-M", "softmax", "--mode", "sync", "--steps", "2", "classes");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "l2 chosen"));
    assert_non_null(strstr(p->text[ERR], "no L2 is chosen, as examples are long or classes are many: --l2 X names one\n"));
}

/* Rows that are long: the choice is from a sample, and another --seed draws another one. */
static void the_sample_follows_the_seed(void **state) {
    (void)state;
    write_noise("long", "logistic", 0, 2400, 550);
#define SEEDED(s) REPORT("-w", "1", "--mode", "sync", "-e", "1", "--seed", s, "long")
    json_t *one = SEEDED("1"), *same = SEEDED("1"), *other = SEEDED("2");
    const double examples = program_number(json_object_get(one, "choice"), "examples");
    assert_true(examples < 2400 && program_number(json_object_get(other, "choice"), "examples") == examples);
    assert_true(program_number(json_object_get(same, "choice"), "loss") ==
                program_number(json_object_get(one, "choice"), "loss"));
    assert_true(program_number(json_object_get(other, "choice"), "loss") !=
                program_number(json_object_get(one, "choice"), "loss"));
    json_decref(one);
    json_decref(same);
    json_decref(other);
}

/* A run that goes on has the L2 that was chosen, without another choice: the same bits as one that was not interrupted. */
/* Two million columns, of which all but a hundred are empty. */
static void columns_that_do_not_occur_change_nothing(void **state) {
    (void)state;
    FILE *f = fopen("words", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 300; i++) {
        fprintf(f, "%d", uniform(i, 0) + uniform(i, 1) > uniform(i, 200) + 0.5);
        for (uint64_t j = 0; j < 100; j++)
            if (uniform(i, j) > 0.8 || j < 2) fprintf(f, " %d:%.6g", (int)j + 1, uniform(i, j));
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
    json_t *o = REPORT("-w", "1", "--mode", "sync", "-e", "1", "words"), *hashed;
    hashed = REPORT("-w", "1", "--mode", "sync", "-e", "1", "--hash-bits", "21", "words");
    assert_true(program_number(o, "l2") > 0 && program_number(hashed, "l2") == program_number(o, "l2"));
    json_decref(hashed);
    json_decref(o);
}

static void a_run_that_is_resumed_keeps_it(void **state) {
    char whole[17], resumed[17];
    (void)state;
    write_noise("few", "logistic", 0, 300, 20);
    HASH(whole, "-w", "2", "--mode", "sync", "-e", "6", "--checkpoint", "d", "few");
    program_drop_folder("d");
    program_assert_status(RUN("-w", "2", "--mode", "sync", "-e", "6", "--steps", "60", "--checkpoint", "d", "few"), 0);
    struct program *p = RUN("-w", "2", "--mode", "sync", "-e", "6", "--resume", "--checkpoint", "d", "few");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "l2 chosen"));
    HASH(resumed, "-w", "2", "--mode", "sync", "-e", "6", "--resume", "--checkpoint", "d", "few");
    assert_string_equal(resumed, whole);
    program_drop_folder("d");
}

/* Runs that leave features as they are, fits among them, name a value that may be a mistake. */
static void a_value_that_may_be_a_mistake_is_named_by_all_runs(void **state) {
    (void)state;
    FILE *f = fopen("wrong", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 100; i++)
        fprintf(f, "%d 1:%.6g 3:%.6g\n", i % 2 ? 1 : -1, uniform(i, 0), i == 40 ? -8e17 : uniform(i, 2));
    assert_int_equal(fclose(f), 0);
#define NAMED "wrong: feature 3 has a value of -8e+17 in example 41, and no other one beyond "
    struct program *p = RUN("-q", "-w", "1", "wrong");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], NAMED));
    assert_non_null(strstr(p->text[ERR], ": is it a mistake?\n"));
    p = RUN("-q", "-w", "1", "--mode", "async", "--scale", "no", "--rate", "1e-12", "-e", "1", "wrong");
    assert_non_null(strstr(p->text[ERR], NAMED));
    p = RUN("-q", "-w", "1", "--mode", "async", "-e", "1", "wrong");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], NAMED));
    assert_non_null(strstr(p->text[ERR], ": it counts as the mean here, but not when the model scores: correct it, "));
}

static void a_plan_says_that_it_is_of_a_new_run(void **state) {
    (void)state;
    write_noise("few", "logistic", 0, 100, 3);
    struct program *p = RUN("topo", "few", "-w", "1", "--checkpoint", "d", "--resume");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "the plan is of a new run: one that --resume goes on with keeps to its kind"));
    p = RUN("topo", "few", "-w", "1", "--checkpoint", "d");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[ERR], "the plan is of a new run"));
}

/* A smaller rate is no help where the squares of labels are too large. */
static void labels_that_are_too_large_are_to_be_scaled(void **state) {
    (void)state;
    FILE *f = fopen("large", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 100; i++) fprintf(f, "%.6ge25 1:%.6g\n", uniform(i, 1) - uniform(i, 0), uniform(i, 0));
    assert_int_equal(fclose(f), 0);
    struct program *p = RUN("-q", "-w", "1", "-M", "linear", "--mode", "sync", "large");
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[ERR], "the loss became infinite in epoch 1: labels are as large as "));
    assert_non_null(strstr(p->text[ERR], "e+24: scale them to about 1\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(few_examples_are_learned_with_l2_that_is_chosen),
        PROGRAM_TEST(it_has_the_same_bits_for_every_number_of_workers),
        PROGRAM_TEST(what_was_chosen_can_be_typed),
        PROGRAM_TEST(what_is_typed_is_not_chosen),
        PROGRAM_TEST(of_many_examples_nothing_is_chosen),
        PROGRAM_TEST(where_it_would_take_too_long_nothing_is_chosen),
        PROGRAM_TEST(the_sample_follows_the_seed),
        PROGRAM_TEST(a_value_that_may_be_a_mistake_is_named_by_all_runs),
        PROGRAM_TEST(labels_that_are_too_large_are_to_be_scaled),
        PROGRAM_TEST(a_plan_says_that_it_is_of_a_new_run),
        PROGRAM_TEST(columns_that_do_not_occur_change_nothing),
        PROGRAM_TEST(a_run_that_is_resumed_keeps_it),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
