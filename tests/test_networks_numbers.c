/* Networks that learn numbers (--loss squared): what no linear model can, in every mode and with the same bits in `sync`; evaluated,
 * predicted, saved and observed as a regression; and what does not go together is refused. Models of the application change by their
 * options likewise. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>

enum { TRAIN = 1000, VALID = 200 };

/* y = shift + size * x1 * x2, of points in the square from -1 to 1. */
static void write_products(const char *path, int n, uint32_t seed, double shift, double size) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < n; i++) {
        double x[2];
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525 + 1013904223;
            x[k] = (double)(seed >> 8) / (1 << 23) - 1;
        }
        fprintf(f, "%.9g 1:%.6f 2:%.6f\n", shift + size * x[0] * x[1], x[0], x[1]);
    }
    assert_int_equal(fclose(f), 0);
}

static int begin(void **state) {
    deadline(state);
    write_products("train.svm", TRAIN, 1, 0, 1);
    write_products("valid.svm", VALID, 2, 0, 1);
    return 0;
}

static struct shmtrain_store *store_of(const char *mode, const char *workers) {
    struct shmtrain_store *store;
    const char *const set[][2] = {{"model", "mlp"},     {"loss", "squared"},    {"layers", "2-32-1"},      {"mode", mode},
                                  {"workers", workers}, {"batch", "20"},        {"optimizer", "momentum"}, {"epochs", "40"},
                                  {"scale", "no"},      {"valid", "valid.svm"}, {"schedule", "constant"},  {"rate", "0.02"}};
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

/* ---- learning ---- */

/* The labels' variance is 1/9, so half of it is the loss of the mean, and of the best linear model. */
static void a_network_learns_a_product(void **state) {
    static const char *const MODES[] = {"sync", "async", "hogwild", "ssp:2", "backup:1", "local:2"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct shmtrain_store *store = store_of(MODES[i], "2");
        if (i > 0 && i != 4) WELL(store, shmtrain_store_set(store, "item", "20"));
        WELL(store, shmtrain_store_train(store, "train.svm"));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        const struct shmtrain_epoch *last = &r->epoch[r->n_epochs - 1];
        if (!(last->valid_loss < 0.005)) fail_msg("%s: loss %g", MODES[i], last->valid_loss);
        assert_true(isnan(last->valid_accuracy) && isnan(last->valid_auc));
        assert_int_equal(r->with_accuracy, 0);
        shmtrain_store_destroy(store);
    }
    struct shmtrain_store *store = store_of("sync", "2");
    WELL(store, shmtrain_store_set(store, "layers", "2-1"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_true(shmtrain_store_report(store)->epoch[39].valid_loss > 0.04);
    shmtrain_store_destroy(store);
}

static uint64_t sum_of(const char *workers) {
    struct shmtrain_store *store = store_of("sync", workers);
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

static void in_sync_bits_do_not_follow_workers(void **state) {
    (void)state;
    const uint64_t sum = sum_of("1");
    assert_true(sum_of("3") == sum);
}

/* As linear regression: the way to labels that are far from 0 is not learned. */
static void labels_may_be_far_from_zero(void **state) {
    struct shmtrain_store *store = store_of("sync", "2");
    (void)state;
    write_products("far.svm", TRAIN, 3, 5000, 1);
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_train(store, "far.svm"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->epoch[0].train_loss < 1);
    assert_true(r->epoch[39].train_loss < 0.01);
    shmtrain_store_destroy(store);
}

/* Rates are of labels with deviation 1, whatever they are. */
static void labels_may_be_large_or_small(void **state) {
    static const double SIZES[] = {1e6, 1e-4};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = store_of("sync", "2");
        write_products("sized.svm", TRAIN, 3, 10 * SIZES[i], SIZES[i]);
        WELL(store, shmtrain_store_set(store, "valid", "none"));
        WELL(store, shmtrain_store_set(store, "rate", "auto"));
        WELL(store, shmtrain_store_train(store, "sized.svm"));
        assert_true(shmtrain_store_report(store)->epoch[39].train_loss < 0.01 * SIZES[i] * SIZES[i]);
        shmtrain_store_destroy(store);
    }
}

static void weights_of_examples_count(void **state) {
    static const float X[] = {1, 1, 1, 1}, Y[] = {0, 0, 0, 4}, W[] = {1, 1, 1, 3};
    const struct shmtrain_arrays arrays = {
        .size = sizeof arrays, .borrowed = 1, .n_examples = 4, .n_features = 1, .dense = X, .label = Y, .weight = W};
    struct shmtrain_store *store = store_of("sync", "1");
    float answer[4];
    const struct shmtrain_predictions into = {.size = sizeof into, .n_examples = 4, .label = answer};
    (void)state;
    WELL(store, shmtrain_store_arrays(store, "four", &arrays));
    WELL(store, shmtrain_store_set(store, "layers", "1-1"));
    WELL(store, shmtrain_store_set(store, "optimizer", "sgd"));
    WELL(store, shmtrain_store_set(store, "rate", "0.2"));
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_train(store, "arrays:four"));
    WELL(store, shmtrain_store_predict_into(store, "arrays:four", &into));
    assert_true(fabsf(answer[0] - 2) < 0.01F); /* (3 * 4) / (1 + 1 + 1 + 3) */
    shmtrain_store_destroy(store);
}

/* ---- what is left of it ---- */

static void check_evaluation(struct shmtrain_store *store, double loss) {
    const struct shmtrain_evaluation *e;
    WELL(store, shmtrain_store_evaluate(store, "valid.svm", &e));
    assert_string_equal(e->loss_name, "squared loss");
    assert_true(e->loss == loss);
    assert_true(fabs(e->root_mean_square_error - sqrt(2 * loss)) < 1e-6);
    assert_true(isnan(e->accuracy));
}

static void a_saved_network_predicts_numbers(void **state) {
    static struct shmtrain_file_info info;
    static float answer[VALID], output[VALID];
    const struct shmtrain_predictions into = {.size = sizeof into, .n_examples = VALID, .label = answer, .output = output};
    struct shmtrain_store *store = store_of("sync", "2"), *other;
    const struct shmtrain_evaluation *e;
    (void)state;
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_evaluate(store, "valid.svm", &e));
    const double loss = e->loss;
    check_evaluation(store, loss);
    WELL(store, shmtrain_store_save(store, "model"));
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&other), 0); /* whose option loss is log */
    WELL(other, shmtrain_store_inspect(other, "model", &info));
    assert_string_equal(info.task, "regression");
    assert_int_equal(info.n_classes, 0);
    assert_int_equal(info.n_layers, 5);
    WELL(other, shmtrain_store_load(other, "model"));
    check_evaluation(other, loss);
    assert_int_equal(shmtrain_store_outputs(other), 1);
    WELL(other, shmtrain_store_predict_into(other, "valid.svm", &into));
    double worst = 0;
    FILE *f = fopen("valid.svm", "r");
    assert_non_null(f);
    for (int i = 0; i < VALID; i++) {
        double y, a, b;
        assert_int_equal(fscanf(f, "%lf 1:%lf 2:%lf", &y, &a, &b), 3);
        assert_true(answer[i] == output[i]);
        worst = fmax(worst, fabs(y - (double)answer[i]));
    }
    (void)fclose(f);
    assert_true(worst < 0.4);
    WELL(other, shmtrain_store_save(other, "again"));
    WELL(other, shmtrain_store_load(other, "again"));
    check_evaluation(other, loss);
    const struct shmtrain_predictions wants = {.size = sizeof wants, .probabilities = 1, .n_examples = VALID, .output = output};
    refused(other, shmtrain_store_predict_into(other, "valid.svm", &wants), SHMTRAIN_E_USAGE, "model mlp has no probabilities");
    shmtrain_store_destroy(other);
}

static void an_observer_sees_a_regression(void **state) {
    char name[64], message[256];
    struct shmtrain_store *store = store_of("sync", "2"), *observer;
    const struct shmtrain_evaluation *e;
    (void)state;
    snprintf(name, sizeof name, "test_numbers-%d", (int)getpid());
    WELL(store, shmtrain_store_set(store, "name", name));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_evaluate(store, "valid.svm", &e));
    const double loss = e->loss;
    assert_int_equal(shmtrain_store_create(&observer), 0);
    WELL(observer, shmtrain_store_observe(observer, name));
    assert_int_equal(shmtrain_store_report(observer)->with_accuracy, 0);
    check_evaluation(observer, loss);
    shmtrain_store_destroy(observer);
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_named_remove(name, 1, message, sizeof message), 0);
}

static uint64_t resumed(const char *workers, const char *epochs, const char *resume) {
    struct shmtrain_store *store = store_of("sync", workers);
    const char *const set[][2] = {{"epochs", epochs}, {"checkpoint", "."}, {"resume", resume}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

static void a_resumed_run_has_the_same_bits(void **state) {
    struct shmtrain_store *store = store_of("sync", "1");
    (void)state;
    WELL(store, shmtrain_store_set(store, "epochs", "4"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    (void)resumed("2", "2", "0");
    assert_true(resumed("3", "4", "1") == sum);
}

/* ---- refusals ---- */

static void what_does_not_go_together_is_refused(void **state) {
    static const struct {
        const char *option, *value, *words;
        int status;
    } BAD[] = {{"layers", "2-8-2", "model mlp: its last layer has 2 outputs, but --loss squared needs one", SHMTRAIN_E_USAGE},
               {"model", "cnn", "model cnn has no option loss", SHMTRAIN_E_USAGE},
               {"loss", "log", "the data has more than 1024 labels, which is a network's limit: for numbers use --loss squared",
                SHMTRAIN_E_DATA},
               {"class-weight", "balanced", "there are no classes: the model learns a number", SHMTRAIN_E_USAGE}};
    (void)state;
    write_products("many.svm", 1100, 4, 0, 1);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct shmtrain_store *store = store_of("sync", "1");
        WELL(store, shmtrain_store_set(store, "valid", "none"));
        WELL(store, shmtrain_store_set(store, BAD[i].option, BAD[i].value));
        refused(store, shmtrain_store_train(store, "many.svm"), BAD[i].status, BAD[i].words);
        shmtrain_store_destroy(store);
    }
    struct shmtrain_store *store = store_of("sync", "1");
    refused(store, shmtrain_store_set(store, "loss", "hinge"), SHMTRAIN_E_USAGE, "loss \"hinge\": expected log or squared");
    WELL(store, shmtrain_store_set(store, "rate", "1e6"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_NUMBERS, "rate");
    shmtrain_store_destroy(store);
}

/* ---- options that change a model ---- */

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)data;
    (void)with;
    (void)state;
    out[0] = (struct shmtrain_shape){.name = "mean", .rows = 1, .width = 1};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const float none = strcmp(pass->with->option[0], "broken") == 0 ? NAN : 0;
    (void)batch;
    *loss_out = 0;
    return shmtrain_push(s, 0, 0, 1, &none);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    (void)s;
    (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) score_out[k] = 0.5F;
    *loss_out = 0;
    return 0;
}

static void adapt(const char *const *option, struct shmtrain_model *model) {
    if (strcmp(option[0], "two") == 0) {
        model->task = SHMTRAIN_BINARY;
        model->threshold = 0.25F;
        model->loss = "no loss";
    }
    if (strcmp(option[0], "none") == 0) model->task = (enum shmtrain_task)7;
    model->name = "other"; /* which does not count */
    model->step = NULL;
}

static const struct shmtrain_option KIND[] = {{.name = "loss", .standard = "one"}};
static const struct shmtrain_model TURNS = {.size = sizeof(struct shmtrain_model),
                                            .name = "turns",
                                            .task = SHMTRAIN_REGRESSION,
                                            .traits = {.curvature = 1},
                                            .options = KIND,
                                            .n_options = 1,
                                            .tables = tables,
                                            .step = step,
                                            .score = score,
                                            .adapt = adapt};

static struct shmtrain_store *turned(const char *kind) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &TURNS));
    const char *const set[][2] = {{"model", "turns"}, {"loss", kind}, {"epochs", "1"}, {"mode", "async"}, {"workers", "1"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

/* Its option has the name of a built-in one's, and other words. */
static void an_option_turns_a_model_of_the_application(void **state) {
    static const struct {
        const char *kind, *task, *loss;
    } TURNED[] = {{"one", "regression", "loss"}, {"two", "binary", "no loss"}, {"none", "regression", "loss"}};
    static struct shmtrain_file_info info;
    const struct shmtrain_evaluation *e;
    (void)state;
    write_text("two.svm", "0 1:1\n1 1:1\n1 1:1\n");
    for (size_t i = 0; i < sizeof TURNED / sizeof *TURNED; i++) {
        struct shmtrain_store *store = turned(TURNED[i].kind);
        WELL(store, shmtrain_store_train(store, "two.svm"));
        assert_string_equal(shmtrain_store_report(store)->model, "turns");
        WELL(store, shmtrain_store_evaluate(store, "two.svm", &e));
        assert_string_equal(e->loss_name, TURNED[i].loss);
        if (i == 1) assert_true(fabs(e->accuracy - 2.0 / 3) < 1e-9); /* all are above the threshold */
        WELL(store, shmtrain_store_save(store, "turned"));
        WELL(store, shmtrain_store_inspect(store, "turned", &info));
        assert_string_equal(info.task, TURNED[i].task);
        WELL(store, shmtrain_store_load(store, "turned"));
        shmtrain_store_destroy(store);
    }
}

/* It stays the application's, whose losses say nothing of its parameters. */
static void what_it_breaks_is_found_as_before(void **state) {
    struct shmtrain_store *store = turned("broken");
    (void)state;
    write_text("two.svm", "0 1:1\n1 1:1\n1 1:1\n");
    refused(store, shmtrain_store_train(store, "two.svm"), SHMTRAIN_E_NUMBERS, "mean");
    shmtrain_store_destroy(store);
}

static void an_option_of_several_models_is_listed_once(void **state) {
    const struct shmtrain_option *option;
    uint32_t n = 0;
    (void)state;
    for (size_t i = 0; (option = shmtrain_option_at(i)); i++) n += strcmp(option->name, "loss") == 0;
    assert_int_equal(n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_network_learns_a_product, begin),
        cmocka_unit_test_setup(in_sync_bits_do_not_follow_workers, begin),
        cmocka_unit_test_setup(labels_may_be_far_from_zero, begin),
        cmocka_unit_test_setup(labels_may_be_large_or_small, begin),
        cmocka_unit_test_setup(weights_of_examples_count, begin),
        cmocka_unit_test_setup(a_saved_network_predicts_numbers, begin),
        cmocka_unit_test_setup(an_observer_sees_a_regression, begin),
        cmocka_unit_test_setup(a_resumed_run_has_the_same_bits, begin),
        cmocka_unit_test_setup(what_does_not_go_together_is_refused, begin),
        cmocka_unit_test_setup(an_option_turns_a_model_of_the_application, begin),
        cmocka_unit_test_setup(what_it_breaks_is_found_as_before, begin),
        cmocka_unit_test_setup(an_option_of_several_models_is_listed_once, begin),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
