/* The real program from outside: what a run chooses that nobody has told how to learn. The choice of L2 itself: test_solve.c. */
#include "run_program.h"

#include <math.h>

#include "base/random.h"

enum { ROWS = 600, COLUMNS = 6 };

/* ---- tables ---- */

static double uniform(uint64_t row, uint64_t what) { return shmt_unit(shmt_hash64(11, row, what, 0)); }

/* Column j is of another size each, some far from 0; a tenth of column 2 is 0. */
static double value_at(uint64_t row, int j) {
    static const double SIZE[COLUMNS] = {1e-3, 1, 5, 400, 3e4, 0.2}, OFFSET[COLUMNS] = {0, 3, 0, -1000, 1e5, 0};
    if (j == 2 && uniform(row, 77) < 0.1) return 0;
    return (double)(float)(OFFSET[j] + SIZE[j] * (2 * uniform(row, (uint64_t)j) - 1));
}

enum kind { TWO, SEVERAL, NUMBERS };

static double label_at(uint64_t row, enum kind kind) {
    double score = 0.4 * (uniform(row, 99) - 0.5);
    for (int j = 0; j < COLUMNS; j++) score += (j % 2 ? 1 : -1) * uniform(row, (uint64_t)j);
    return kind == TWO ? (score > 0 ? 1 : -1) : kind == SEVERAL ? floor(fmin(1.5, fmax(-1.5, 2 * score))) : 10 * score;
}

/* As a standard deviation of all rows, with its mean; here by a formula of its own. */
static void spread_of(int j, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < ROWS; i++) sum += value_at(i, j);
    *mean = sum / ROWS;
    for (uint64_t i = 0; i < ROWS; i++) squares += pow(value_at(i, j) - *mean, 2);
    *deviation = sqrt(squares / ROWS);
}

/* Rows from .. to - 1; `standard`: each column with mean 0 and deviation 1. What is 0 is left out. */
static void write_table(const char *name, enum kind kind, bool standard, uint64_t from, uint64_t to) {
    double mean[COLUMNS] = {0}, deviation[COLUMNS] = {1, 1, 1, 1, 1, 1};
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (int j = 0; j < COLUMNS && standard; j++) spread_of(j, &mean[j], &deviation[j]);
    for (uint64_t i = from; i < to; i++) {
        fprintf(f, "%.9g", label_at(i, kind));
        for (int j = 0; j < COLUMNS; j++) {
            const double x = (value_at(i, j) - mean[j]) / deviation[j];
            if (x != 0) fprintf(f, " %d:%.9g", j + 1, x);
        }
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static const char *word(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* ---- without options ---- */

static void a_run_without_options_chooses_l2_and_says_so(void **state) {
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    struct program *p = RUN("-w", "2", "t");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "steps until it is proved within 0.001 of the optimum,\n"));
    assert_non_null(strstr(p->text[OUT], "l2 chosen on 5 parts of the examples, each held out in turn\n"));
    assert_non_null(strstr(p->text[OUT], "\nchosen      --C "));
    assert_non_null(strstr(p->text[OUT], "optimum     proved: "));
    for (const char *line = p->text[OUT]; *line; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") <= 80);
    json_t *o = REPORT("-w", "2", "t"), *choice = json_object_get(o, "choice");
    assert_string_equal(word(o, "mode"), "sync");
    assert_string_equal(word(o, "optimizer"), "exact");
    assert_true(program_number(choice, "examples") == ROWS && program_number(choice, "parts") == 5 &&
                program_number(choice, "held") == 5);
    assert_true(program_number(choice, "fits") >= 5 && program_number(choice, "loss") > 0);
    assert_true(json_is_true(json_object_get(o, "scaled"))); /* sizes differ by 10^8 */
    json_decref(o);
}

static void it_has_the_same_bits_for_every_number_of_workers(void **state) {
    static const struct {
        enum kind kind;
        const char *model;
    } ALL[] = {{TWO, "logistic"}, {SEVERAL, "softmax"}, {NUMBERS, "linear"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char one[17], other[17];
        write_table("t", ALL[i].kind, false, 0, ROWS);
        HASH(one, "-w", "1", "-M", ALL[i].model, "t");
        HASH(other, "-w", "3", "-M", ALL[i].model, "t");
        assert_string_equal(other, one);
        HASH(other, "-w", "8", "-M", ALL[i].model, "--spawn", "threads", "t");
        assert_string_equal(other, one);
    }
}

/* From a sample: what is chosen, and what is fitted then, are in different memory. */
static void many_examples_are_chosen_from_a_sample(void **state) {
    static char line[64];
    (void)state;
    FILE *f = fopen("many", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 52000; i++) {
        const double x = uniform(i, 1), y = uniform(i, 2);
        snprintf(line, sizeof line, "%d 1:%.4f 2:%.4f\n", x + y + uniform(i, 3) > 1.5 ? 1 : -1, x, 100 * y);
        fputs(line, f);
    }
    assert_int_equal(fclose(f), 0);
    char one[17], other[17];
    HASH(one, "-w", "1", "many");
    HASH(other, "-w", "3", "many");
    assert_string_equal(other, one);
    json_t *o = REPORT("-w", "2", "many"), *choice = json_object_get(o, "choice");
    assert_true(program_number(choice, "examples") == 50000 && program_number(choice, "parts") == 10 &&
                program_number(choice, "held") == 1);
    assert_string_equal(word(o, "parameters_xxh64"), one);
    assert_string_equal(word(o, "stopped_by"), "tolerance");
    json_decref(o);
}

/* Neither the sample nor its parts follow an order of the examples: here every other one is of the same class. */
static void an_order_of_the_examples_does_not_matter(void **state) {
    double loss[2];
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        FILE *f = fopen("many", "w");
        assert_non_null(f);
        for (uint64_t i = 0; i < 100000; i++) {
            const int label = (mixed ? shmt_hash64(3, i, 0, 0) : i) % 2 ? 1 : -1;
            fprintf(f, "%d 1:%.3f 2:%.3f\n", label, uniform(i, 1) + 0.3 * label, uniform(i, 2) - 0.2 * label);
        }
        assert_int_equal(fclose(f), 0);
        json_t *o = REPORT("-w", "2", "many");
        loss[mixed] = program_number(json_object_get(o, "choice"), "loss");
        json_decref(o);
    }
    assert_true(fabs(loss[0] / loss[1] - 1) < 0.1);
}

static void what_is_typed_is_not_chosen(void **state) {
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    json_t *o = REPORT("--l2", "0.03", "t");
    assert_true(json_is_null(json_object_get(o, "choice")) && program_number(o, "l2") == 0.03);
    assert_true(json_is_false(json_object_get(o, "scaled")));
    assert_string_equal(word(o, "optimizer"), "exact");
    json_decref(o);
    o = REPORT("--l1", "0.01", "t");
    assert_true(json_is_null(json_object_get(o, "choice")) && program_number(o, "l1") == 0.01 && program_number(o, "l2") == 0);
    json_decref(o);
    o = REPORT("--scale", "no", "t");
    assert_true(json_is_false(json_object_get(o, "scaled")) && json_is_object(json_object_get(o, "choice")));
    json_decref(o);
    o = REPORT("--C", "2", "--scale", "yes", "t");
    assert_true(json_is_true(json_object_get(o, "scaled")) && fabs(program_number(o, "l2") * 2 * ROWS - 1) < 1e-12);
    json_decref(o);
}

/* The line that says what was chosen says how to have it again. */
static void what_was_chosen_can_be_typed(void **state) {
    char c[32];
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    json_t *o = REPORT("-w", "2", "t");
    const bool scaled = json_is_true(json_object_get(o, "scaled"));
    snprintf(c, sizeof c, "%.4g", 1 / (program_number(o, "l2") * ROWS)); /* as it is shown */
    json_t *again = REPORT("-w", "2", "--C", c, "--scale", scaled ? "yes" : "no", "t");
    const json_t *epochs = json_object_get(o, "epochs"), *others = json_object_get(again, "epochs");
    const double objective = program_number(json_array_get(epochs, json_array_size(epochs) - 1), "objective");
    const double other = program_number(json_array_get(others, json_array_size(others) - 1), "objective");
    assert_true(fabs(objective / other - 1) < 2e-3);
    json_decref(o);
    json_decref(again);
}

static void what_is_about_steps_means_sgd(void **state) {
    static const char *const OPTIONS[][2] = {{"--epochs", "3"},          {"--mode", "async"}, {"--mode", "sync"},
                                             {"--optimizer", "sgd"},     {"--rate", "1e-12"}, {"--batch", "32"},
                                             {"--steps", "9"},           {"--l2", "0"},       {"--log-every", "1000"},
                                             {"--on-death", "continue"}, {"--patience", "2"}, {"--model", "svm"}};
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        json_t *o = REPORT("-w", "2", OPTIONS[i][0], OPTIONS[i][1], "t");
        if (!json_is_null(json_object_get(o, "tolerance"))) fail_msg("%s means a fit", OPTIONS[i][0]);
        json_decref(o);
    }
    json_t *o = REPORT("-w", "2", "builtin:sparse:examples=1000");
    assert_true(json_is_null(json_object_get(o, "tolerance")) && json_array_size(json_object_get(o, "epochs")) == 10);
    json_decref(o);
}

/* ---- steps of SGD ---- */

static double loss_of(const char *model, const char *test) {
    struct program *p = RUN("eval", "--json", "model", test);
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    const double loss = program_number(o, strcmp(model, "linear") == 0 ? "root_mean_square_error" : "loss");
    json_decref(o);
    return loss;
}

/* A run on a table as it is does what one does on the same table that was standardised by hand, and its model is for the table as it
 * is. */
static void steps_are_on_standardised_features_and_the_model_is_for_raw_ones(void **state) {
    static const struct {
        enum kind kind;
        const char *model, *mode;
    } ALL[] = {{TWO, "logistic", "sync"},    {TWO, "svm", "sync"},       {NUMBERS, "linear", "sync"},
               {SEVERAL, "softmax", "sync"}, {TWO, "logistic", "async"}, {SEVERAL, "softmax", "async"}};
    (void)state;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        const char *model = ALL[i].model;
        write_table("raw", ALL[i].kind, false, 0, ROWS);
        write_table("hand", ALL[i].kind, true, 0, ROWS);
#define STEPS "-w", "1", "-e", "4", "--mode", ALL[i].mode, "-M", model, "--rate", "0.05", "-b", "16", "-o", "model"
        json_t *o = REPORT(STEPS, "--scale", "yes", "raw");
        const double of_raw = loss_of(model, "raw");
        assert_true(json_is_true(json_object_get(o, "scaled")));
        json_decref(o);
        o = REPORT(STEPS, "--scale", "no", "hand");
        const double by_hand = loss_of(model, "hand");
        json_decref(o);
        if (!(fabs(of_raw / by_hand - 1) < 1e-3)) fail_msg("%s, %s: %.9g and %.9g", model, ALL[i].mode, of_raw, by_hand);
    }
}

static double final_loss(const json_t *o) {
    const json_t *epochs = json_object_get(o, "epochs");
    return program_number(json_array_get(epochs, json_array_size(epochs) - 1), "valid_loss");
}

/* The validation data is standardised by what training data is like, and the last epoch's loss is that of the saved model. */
static void validation_is_on_the_same_scale(void **state) {
    (void)state;
    write_table("some", TWO, false, 0, 400);
    write_table("valid", TWO, false, 400, ROWS);
    json_t *o = REPORT("-w", "1", "--mode", "sync", "--valid", "valid", "-o", "model", "some");
    assert_true(json_is_true(json_object_get(o, "scaled")));
    assert_true(fabs(final_loss(o) / loss_of("logistic", "valid") - 1) < 1e-3);
    assert_true(final_loss(o) < 0.5);
    json_decref(o);
    o = REPORT("-w", "2", "--mode", "async", "--valid", "0.25", "some");
    assert_true(json_is_true(json_object_get(o, "scaled")) && final_loss(o) < 0.5);
    assert_true(program_number(json_object_get(o, "dataset"), "nonzeros") +
                    program_number(json_object_get(o, "valid"), "nonzeros") <
                400 * COLUMNS);
    json_decref(o);
}

/* Sparse data is not centred; a feature of the size of the others stays as it is, and a huge one does not drown them. */
static void a_huge_feature_of_sparse_data_does_not_drown_the_others(void **state) {
    (void)state;
    for (int huge = 0; huge < 2; huge++) {
        FILE *f = fopen("s", "w");
        assert_non_null(f);
        for (uint64_t i = 0; i < 2000; i++) {
            const unsigned k = (unsigned)(uniform(i, 0) * 50);
            fprintf(f, "%d %u:1", k % 2 && uniform(i, 1) < 0.9 ? 1 : -1, k + 1);
            if (huge && uniform(i, 2) < 0.3) fprintf(f, " 60:%.1f", 1e6 * uniform(i, 3));
            fprintf(f, "\n");
        }
        assert_int_equal(fclose(f), 0);
        json_t *o = REPORT("-w", "1", "--mode", "sync", "--valid", "s", "s");
        assert_true(json_is_true(json_object_get(o, "scaled")) == (huge == 1));
        assert_true(final_loss(o) < 0.35);
        json_decref(o);
    }
}

/* One value that is a mistake is said, and changes little: its feature is not scaled down to nothing. */
static void a_value_that_is_a_mistake_does_not_cost_its_feature(void **state) {
    double loss[2];
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        FILE *f = fopen("s", "w");
        assert_non_null(f);
        for (uint64_t i = 0; i < 500; i++) {
            const double x = bad && i == 77 ? -8e17 : uniform(i, 0);
            fprintf(f, "%d 1:%.6g 2:%.6g\n", uniform(i, 0) + 0.3 * uniform(i, 1) > 0.6 ? 1 : -1, x, uniform(i, 2));
        }
        assert_int_equal(fclose(f), 0);
        if (!bad) assert_int_equal(rename("s", "good"), 0);
        struct program *p = RUN("-q", "-w", "1", "--mode", "sync", "-o", "model", bad ? "s" : "good");
        program_assert_status(p, 0);
        assert_true((strstr(p->text[ERR], "s: feature 1 has a value of -8e+17 in example 78, and no other one beyond ") !=
                     NULL) == (bad == 1));
        loss[bad] = loss_of("logistic", "good");
    }
    assert_true(fabs(loss[1] / loss[0] - 1) < 0.02);
}

/* Rows by frequency: statistics, ids and parameters are all by place. Also where the training data is a cache in that order. */
static void scales_find_their_features_wherever_rows_stand(void **state) {
    (void)state;
    for (int part = 0; part < 2; part++) {
        FILE *f = fopen(part ? "rare.t" : "rare", "w");
        assert_non_null(f);
        for (uint64_t i = 0; i < 6000; i++) {
            unsigned id = 0;
            fprintf(f, "%d", uniform(i + 9000 * (uint64_t)part, 500) < 0.5 ? 1 : -1);
            for (uint64_t k = 0; k < 12; k++) {
                const double u = uniform(i + 9000 * (uint64_t)part, k);
                id += 1 + (unsigned)(u * u * 9000);
                fprintf(f, " %u:%.4g", id, (id % 7 == 0 ? 1000 : 1) * (0.5 + u));
            }
            fprintf(f, "\n");
        }
        assert_int_equal(fclose(f), 0);
    }
    program_assert_status(RUN("data", "convert", "rare", "-o", "rare.shmcache"), 0);
    for (int cached = 0; cached < 2; cached++)
        for (int sync = 0; sync < 2; sync++) {
            json_t *o = REPORT("-w", "2", "-e", "2", "--mode", sync ? "sync" : "async", "--valid", "rare.t", "-o", "model",
                               cached ? "rare.shmcache" : "rare");
            assert_string_equal(word(o, "columns"), "by frequency");
            assert_true(json_is_true(json_object_get(o, "scaled")));
            assert_true(fabs(final_loss(o) / loss_of("logistic", "rare.t") - 1) < 1e-3);
            json_decref(o);
        }
}

/* The cache of a file belongs to others, too: it stays as it is. */
static void a_cache_stays_as_it_is(void **state) {
    char first[17], second[17];
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    HASH(first, "-w", "1", "--mode", "sync", "--cache", "t");
    HASH(second, "-w", "1", "--mode", "sync", "--cache", "t");
    assert_string_equal(second, first);
}

static void what_is_typed_has_its_size_on_features_as_they_are(void **state) {
    static const char *const OPTIONS[][2] = {{"--rate", "1e-9"}, {"--l2", "0.1"},   {"--C", "0.1"},
                                             {"--l1", "0.1"},    {"--scale", "no"}, {"--checkpoint", "d"}};
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        json_t *o = REPORT("-w", "1", "--mode", "sync", "-e", "1", OPTIONS[i][0], OPTIONS[i][1], "t");
        if (!json_is_false(json_object_get(o, "scaled"))) fail_msg("with %s features are scaled", OPTIONS[i][0]);
        json_decref(o);
    }
    program_drop_folder("d");
}

static void few_examples_get_small_batches_and_many_epochs(void **state) {
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    json_t *o = REPORT("-w", "2", "--mode", "sync", "t");
    assert_true(program_number(o, "batch") == 8 && json_array_size(json_object_get(o, "epochs")) == 40);
    assert_string_equal(word(o, "schedule"), "cosine");
    json_decref(o);
    o = REPORT("-w", "2", "--mode", "sync", "-M", "svm", "t"); /* without L2 more would learn the noise */
    assert_true(json_array_size(json_object_get(o, "epochs")) == 20);
    json_decref(o);
    o = REPORT("-w", "2", "--mode", "sync", "-b", "64", "-e", "2", "t");
    assert_true(program_number(o, "batch") == 64 && json_array_size(json_object_get(o, "epochs")) == 2);
    json_decref(o);
}

/* Rules whose steps have a size of their own would take a million of them. */
static void adaptive_rules_learn_large_labels(void **state) {
    static const char *const RULES[] = {"adagrad", "adam", "ftrl"}, *const MODES[] = {"async", "sync"};
    (void)state;
    FILE *f = fopen("t", "w");
    assert_non_null(f);
    for (int i = 0; i < 2000; i++)
        fprintf(f, "%d 1:%g 2:%d\n", 1000000 + 1000 * (i % 7) - 40000 * (i % 3), 0.1 * (i % 7), i % 3);
    assert_int_equal(fclose(f), 0);
    for (int i = 0; i < 6; i++) {
        program_assert_status(
            RUN("-q", "-w", "2", "-M", "linear", "--mode", MODES[i % 2], "--optimizer", RULES[i / 2], "-o", "m", "t"), 0);
        struct program *p = RUN("eval", "--json", "m", "t");
        program_assert_status(p, 0);
        json_t *o = json_loads(p->text[OUT], 0, NULL);
        const double off = program_number(o, "root_mean_square_error"); /* of labels with a standard deviation of 33,000 */
        if (!(off < 1000)) fail_msg("%s, %s: %g", RULES[i / 2], MODES[i % 2], off);
        json_decref(o);
    }
}

/* The model of the best epoch: in sync the same bits as a run has that a target ends there. */
static void the_best_epoch_may_be_kept(void **state) {
    static const char *const MODES[] = {"sync", "async", "local:2"};
    (void)state;
    write_table("t", TWO, false, 0, 300);
    write_table("v", TWO, false, 300, ROWS);
    for (size_t m = 0; m < 3; m++) { /* with a rate that makes the loss jump */
        json_t *o = REPORT("-w", "2", "--mode", MODES[m], "-e", "9", "--scale", "yes", "--rate", "30", "--schedule", "constant",
                           "--keep", "best", "--valid", "v", "-o", "model", "t");
        const json_t *epochs = json_object_get(o, "epochs");
        const size_t kept = (size_t)program_number(o, "kept_epoch");
        double least = INFINITY;
        for (size_t i = 0; i < json_array_size(epochs); i++)
            least = fmin(least, program_number(json_array_get(epochs, i), "valid_loss"));
        assert_true(program_number(json_array_get(epochs, kept - 1), "valid_loss") == least);
        assert_true(fabs(loss_of("logistic", "v") / least - 1) < 1e-3);
        json_decref(o);
    }
    struct program *p = RUN("-w", "1", "--mode", "sync", "-e", "9", "--keep", "best", "--valid", "v", "t");
    program_assert_status(p, 0);
    for (int epoch = 1; epoch <= 9; epoch++) {
        char line[16];
        snprintf(line, sizeof line, "\n    %d   ", epoch);
        assert_non_null(strstr(p->text[OUT], line)); /* nobody keeps the last ones from those who listen */
    }
    program_assert_refused(RUN("--keep", "best", "--checkpoint", "d", "--valid", "v", "t"), 2, "goes without --checkpoint");
    program_assert_refused(RUN("--keep", "best", "--mode", "sync", "t"), 2,
                           "--keep best is of the validation loss: add --valid");
    program_assert_refused(RUN("--keep", "best", "--tolerance", "1e-3", "--valid", "v", "t"), 2, "leave out --keep best");
}

/* Whatever rate is typed: a run that has learned nothing but large numbers does not end well. */
static void a_run_that_diverged_fails(void **state) {
    static const char *const MODELS[] = {"linear", "logistic", "softmax"};
    unsigned failed = 0;
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        write_table("t", m == 0 ? NUMBERS : m == 1 ? TWO : SEVERAL, false, 0, ROWS);
        for (int power = -8; power <= 8; power += 2) {
            char rate[16];
            snprintf(rate, sizeof rate, "1e%d", power);
            struct program *p =
                RUN("--json", "-q", "-w", "1", "--mode", "sync", "-e", "3", "-M", MODELS[m], "--rate", rate, "t");
            program_finish(p);
            if (p->status == 0) {
                json_t *o = program_json(p), *epochs = json_object_get(o, "epochs");
                const double loss = program_number(json_array_get(epochs, 2), "train_loss");
                if (!(loss < 1e4)) fail_msg("%s, rate %s: %g", MODELS[m], rate, loss);
                json_decref(o);
            } else {
                assert_non_null(strstr(p->text[ERR], "use a smaller rate than"));
                failed++;
            }
        }
    }
    assert_true(failed > 3);
}

static void a_loss_that_still_falls_gets_a_hint(void **state) {
    (void)state;
    write_table("t", TWO, false, 0, ROWS);
    struct program *p = RUN("-w", "1", "--mode", "sync", "-e", "4", "--scale", "yes", "--rate", "0.02", "t");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "hint        the loss still falls, by "));
    assert_non_null(strstr(p->text[OUT], ": try -e 8\n"));
    p = RUN("-w", "1", "--mode", "sync", "-e", "60", "t");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "hint"));
    p = RUN("-w", "2", "--mode", "async", "-e", "2", "--scale", "yes", "--rate", "0.0005", "t");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], " % in the last epoch: try -e 4\n"));
    p = RUN("-w", "1", "--mode", "sync", "-e", "3", "--scale", "yes", "--rate", "0.01", "--valid", "0.2", "--patience", "2",
            "t");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], " % in the last two epochs: try -e 6\n"));
}

/* As a matrix it would be 320 GB. */
static void softmax_reads_sparse_data_as_it_is(void **state) {
    (void)state;
    FILE *f = fopen("wide", "w");
    assert_non_null(f);
    for (unsigned i = 0; i < 200000; i++) fprintf(f, "%u %u:1 %u:1 %u:1\n", i % 3, 1 + i % 3, 10 + 2 * i, 11 + 2 * i);
    assert_int_equal(fclose(f), 0);
    struct program *p = RUN("-w", "1", "-M", "softmax", "--mode", "async", "--item", "2000", "-e", "2", "-o", "m", "wide");
    program_assert_status(p, 0);
    if (!strstr(p->text[OUT], "updates of 2000 examples")) fail_msg("%s", p->text[OUT]);
    p = RUN("eval", "m", "wide");
    program_assert_status(p, 0);
    if (!strstr(p->text[OUT], "accuracy    100.00 %")) fail_msg("%s", p->text[OUT]);
    program_assert_status(RUN("-q", "-w", "1", "-M", "softmax", "--tolerance", "1e-3", "--C", "1", "wide"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_run_without_options_chooses_l2_and_says_so),
        PROGRAM_TEST(it_has_the_same_bits_for_every_number_of_workers),
        PROGRAM_TEST(many_examples_are_chosen_from_a_sample),
        PROGRAM_TEST(an_order_of_the_examples_does_not_matter),
        PROGRAM_TEST(what_is_typed_is_not_chosen),
        PROGRAM_TEST(what_was_chosen_can_be_typed),
        PROGRAM_TEST(what_is_about_steps_means_sgd),
        PROGRAM_TEST(steps_are_on_standardised_features_and_the_model_is_for_raw_ones),
        PROGRAM_TEST(validation_is_on_the_same_scale),
        PROGRAM_TEST(a_huge_feature_of_sparse_data_does_not_drown_the_others),
        PROGRAM_TEST(a_value_that_is_a_mistake_does_not_cost_its_feature),
        PROGRAM_TEST(scales_find_their_features_wherever_rows_stand),
        PROGRAM_TEST(a_cache_stays_as_it_is),
        PROGRAM_TEST(what_is_typed_has_its_size_on_features_as_they_are),
        PROGRAM_TEST(the_best_epoch_may_be_kept),
        PROGRAM_TEST(a_run_that_diverged_fails),
        PROGRAM_TEST(a_loss_that_still_falls_gets_a_hint),
        PROGRAM_TEST(softmax_reads_sparse_data_as_it_is),
        PROGRAM_TEST(few_examples_get_small_batches_and_many_epochs),
        PROGRAM_TEST(adaptive_rules_learn_large_labels),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
