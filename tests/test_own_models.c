/* Models of the application's own: offered, chosen, trained, and what is found wrong with them; and calls that are given NULL. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>

#include "models/models.h"

/* Learns the mean of the labels: one parameter, squared loss; no classifier. */
static uint32_t mean_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with,
                            struct shmtrain_shape *out) {
    (void)data;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "mean", .rows = 1, .width = 1, .l2_rows = 0};
    return 1;
}

static int mean_step(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                     double *loss_out) {
    float mean, grad = 0;
    double loss = 0;
    (void)with;
    int rc = shmtrain_pull(s, 0, 0, 1, &mean);
    if (rc < 0) return rc;
    for (uint32_t k = 0; k < batch->n; k++) {
        const float e = mean - batch->data->label[batch->example[k]];
        grad += e;
        loss += (double)(e * e) / 2;
    }
    *loss_out = loss;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static int mean_score(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                      float *score_out, double *loss_out) {
    float mean;
    double loss = 0;
    (void)with;
    const int rc = shmtrain_pull(s, 0, 0, 1, &mean);
    if (rc < 0) return rc;
    for (uint32_t k = 0; k < batch->n; k++) {
        const uint64_t i = batch->example ? batch->example[k] : batch->first + k;
        score_out[k] = mean;
        loss += pow((double)(mean - batch->data->label[i]), 2) / 2;
    }
    *loss_out = loss;
    return 0;
}

static void a_model_of_ones_own_is_offered_chosen_and_trained(void **state) {
    const struct shmtrain_model mean = {.size = sizeof(struct shmtrain_model),
                                        .name = "mean",
                                        .about = "of the labels",
                                        .tables = mean_tables,
                                        .step = mean_step,
                                        .score = mean_score,
                                        .task = SHMTRAIN_REGRESSION};
    struct shmtrain_model bad = mean;
    struct shmtrain_store *store = open_training("2", "sync", "valid.svm");
    float value;
    (void)state;
    write_text("train.svm", "1 1:1\n2 1:1\n3 1:1\n6 1:1\n"); /* more than two labels: this model does not mind */
    write_text("valid.svm", "3 1:1\n5 1:1\n");
    refused(store, shmtrain_store_set(store, "model", "mean") == 0 ? shmtrain_store_train(store, "train.svm") : 0,
            SHMTRAIN_E_USAGE, "unknown model \"mean\": use one of logistic");
    WELL(store, shmtrain_store_offer(store, &mean));
    refused(store, shmtrain_store_offer(store, &mean), SHMTRAIN_E_USAGE, "already");
    bad.name = "logistic";
    refused(store, shmtrain_store_offer(store, &bad), SHMTRAIN_E_USAGE, "already");
    bad.name = "";
    refused(store, shmtrain_store_offer(store, &bad), SHMTRAIN_E_USAGE, "needs a name");
    bad.name = "half";
    bad.score = NULL;
    refused(store, shmtrain_store_offer(store, &bad), SHMTRAIN_E_USAGE, "score");
    size_t n = 0;
    while (shmt_model_at(n)) n++;
    const struct shmtrain_model *offered = shmtrain_store_model_at(store, n);
    assert_true(offered->step == mean.step && strcmp(offered->name, "mean") == 0);
    assert_string_equal(offered->loss, "loss"); /* it had none */
    assert_null(shmtrain_store_model_at(store, n + 1));
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    WELL(store, shmtrain_store_set(store, "schedule", "constant"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_read(store, 0, 0, 1, &value));
    assert_true(value == 3);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->model, "mean");
    assert_true(r->epoch[2].train_loss == (2 + 0.5 + 0 + 4.5) / 4); /* at 3 */
    assert_true(r->epoch[2].valid_loss == 1 && isnan(r->epoch[2].valid_accuracy));
    shmtrain_store_destroy(store);
}

/* Nobody but the model knows its steps: a run without options takes these, too, and no fit of another loss. */
static void a_model_of_ones_own_takes_its_own_steps_without_any_option(void **state) {
    const struct shmtrain_model mean = {.size = sizeof(struct shmtrain_model),
                                        .name = "mean",
                                        .about = "of the labels",
                                        .tables = mean_tables,
                                        .step = mean_step,
                                        .score = mean_score,
                                        .task = SHMTRAIN_REGRESSION};
    struct shmtrain_store *store;
    (void)state;
    write_text("train.svm", "1 1:1\n2 1:1\n3 1:1\n6 1:1\n");
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &mean));
    WELL(store, shmtrain_store_set(store, "model", "mean"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->optimizer, "sgd");
    assert_true(isnan(r->tolerance) && r->updates > 0 && r->scaled == 0 && r->choice_examples == 0);
    shmtrain_store_destroy(store);
}

static int push_nan(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                    double *loss_out) {
    const float grad = NAN;
    (void)batch;
    (void)with;
    *loss_out = 0;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static uint32_t reserved_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with,
                                struct shmtrain_shape *out) {
    const uint32_t n = mean_tables(data, with, out);
    out[0].reserved[2] = 1;
    return n;
}

static int step_that_takes_work(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                                double *loss_out) {
    struct shmtrain_work w;
    const int rc = mean_step(s, batch, with, loss_out);
    return rc < 0 ? rc : shmtrain_next(s, &w);
}

static int score_that_ends_work(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                                float *score_out, double *loss_out) {
    const int rc = mean_score(s, batch, with, score_out, loss_out);
    return rc < 0 ? rc : shmtrain_clock(s, NULL);
}

static int score_that_complains(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                                float *score_out, double *loss_out) {
    (void)mean_score(s, batch, with, score_out, loss_out);
    (void)shmtrain_fail(s, SHMTRAIN_E_DATA, "the labels are of another kind");
    return 0;
}

static int g_returned;

static int step_that_returns(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                             double *loss_out) {
    const int rc = mean_step(s, batch, with, loss_out);
    return rc < 0 ? rc : g_returned;
}

static int score_that_returns(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                              float *score_out, double *loss_out) {
    const int rc = mean_score(s, batch, with, score_out, loss_out);
    return rc < 0 ? rc : g_returned;
}

static void what_a_model_returns_is_0_or_a_status_that_ends_the_run(void **state) {
    static const struct {
        int returned, status;
        const char *step, *score;
    } CASES[] = {
        {1, SHMTRAIN_E_USAGE, "the step of a model returned 1: expected 0", "the score of a model returned 1: expected 0"},
        {SHMTRAIN_E_AGAIN, SHMTRAIN_E_USAGE, "the step of a model returned SHMTRAIN_E_AGAIN",
         "the score of a model returned SHMTRAIN_E_AGAIN"},
        {SHMTRAIN_E_STOPPED, SHMTRAIN_E_USAGE, "the step of a model returned SHMTRAIN_E_STOPPED",
         "the score of a model returned SHMTRAIN_E_STOPPED"},
        {SHMTRAIN_E_DATA, SHMTRAIN_E_DATA, "the step of a model ended with SHMTRAIN_E_DATA",
         "the score of a model ended with SHMTRAIN_E_DATA"}};
    struct shmtrain_model model[] = {{.name = "steps", .step = step_that_returns, .score = mean_score},
                                     {.name = "scores", .step = mean_step, .score = score_that_returns}};
    struct shmtrain_store *store = open_training("2", "sync", "");
    (void)state;
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    for (int i = 0; i < 2; i++) {
        model[i].size = sizeof model[i];
        model[i].tables = mean_tables;
        model[i].task = SHMTRAIN_REGRESSION;
        WELL(store, shmtrain_store_offer(store, &model[i]));
    }
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++)
        for (int i = 0; i < 2; i++) {
            g_returned = CASES[k].returned;
            WELL(store, shmtrain_store_set(store, "model", model[i].name));
            refused(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=500,valid=500"), CASES[k].status,
                    i == 0 ? CASES[k].step : CASES[k].score);
        }
    shmtrain_store_destroy(store);
}

static void what_takes_or_ends_work_is_refused_in_a_model(void **state) {
    struct shmtrain_model model[] = {{.name = "takes", .step = step_that_takes_work, .score = mean_score},
                                     {.name = "ends", .step = mean_step, .score = score_that_ends_work},
                                     {.name = "complains", .step = mean_step, .score = score_that_complains}};
    static const char *const SAID[] = {"shmtrain_next may not be called in the step of a model",
                                       "shmtrain_clock may not be called in the score of a model",
                                       "the labels are of another kind"};
    struct shmtrain_store *store = open_training("2", "sync", "");
    (void)state;
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    WELL(store, shmtrain_store_set(store, "epochs", "1")); /* nothing follows that would notice it */
    for (int i = 0; i < 3; i++) {
        model[i].size = sizeof model[i];
        model[i].tables = mean_tables;
        model[i].task = SHMTRAIN_REGRESSION;
        WELL(store, shmtrain_store_offer(store, &model[i]));
        WELL(store, shmtrain_store_set(store, "model", model[i].name));
        refused(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=500,valid=500"),
                i < 2 ? SHMTRAIN_E_USAGE : SHMTRAIN_E_DATA, SAID[i]);
    }
    shmtrain_store_destroy(store);
}

/* Also on generated data, whose best log loss is known: this loss is none. */
static void what_an_own_model_leaves_out_or_does_wrong_is_found(void **state) {
    static const char DATA[] = "builtin:sparse:examples=2000,features=500";
    struct shmtrain_model model = {
        .size = sizeof model, .name = "bare", .tables = mean_tables, .step = mean_step, .score = mean_score};
    struct shmtrain_store *store = open_training("2", "sync", "");
    (void)state;
    WELL(store, shmtrain_store_offer(store, &model));
    model.name = "nan";
    model.step = push_nan;
    WELL(store, shmtrain_store_offer(store, &model));
    model.name = "reserved";
    model.tables = reserved_tables;
    WELL(store, shmtrain_store_offer(store, &model));
    model.name = "no task";
    model.task = (enum shmtrain_task)3;
    refused(store, shmtrain_store_offer(store, &model), SHMTRAIN_E_USAGE, "has the task 3");
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    WELL(store, shmtrain_store_set(store, "model", "bare"));
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_set(store, "model", "nan"));
    refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_NUMBERS,
            "after epoch 1 row 0 of table \"mean\" is not a number");
    WELL(store, shmtrain_store_set(store, "model", "reserved"));
    refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_USAGE, "reserved member");
    shmtrain_store_destroy(store);
}

static int hear_nothing(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)arg;
    (void)example;
    (void)label;
    (void)output;
    (void)n;
    return 0;
}

static void null_is_refused_where_something_is_needed(void **state) {
    struct shmtrain_store *store = open_training("1", "sync", "");
    const struct shmtrain_evaluation *evaluation;
    struct shmtrain_file_info info;
    (void)state;
#define NEEDS(call) refused(store, call, SHMTRAIN_E_USAGE, "was given NULL")
    NEEDS(shmtrain_store_set(store, NULL, "1"));
    NEEDS(shmtrain_store_set(store, "workers", NULL));
    NEEDS(shmtrain_store_offer(store, NULL));
    NEEDS(shmtrain_store_load(store, NULL));
    NEEDS(shmtrain_store_save(store, NULL));
    NEEDS(shmtrain_store_save_as(store, "x.model", NULL));
    NEEDS(shmtrain_store_inspect(store, NULL, &info));
    NEEDS(shmtrain_store_convert(store, NULL, "x.shmcache"));
    NEEDS(shmtrain_store_convert(store, "x.svm", NULL));
    NEEDS(shmtrain_store_evaluate(store, NULL, &evaluation));
    NEEDS(shmtrain_store_predict(store, NULL, 0, hear_nothing, NULL));
    NEEDS(shmtrain_store_predict(store, "x.svm", 0, NULL, NULL));
    NEEDS(shmtrain_store_predict_stream(store, NULL, 0, hear_nothing, NULL));
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_model_of_ones_own_is_offered_chosen_and_trained, deadline),
        cmocka_unit_test_setup(a_model_of_ones_own_takes_its_own_steps_without_any_option, deadline),
        cmocka_unit_test_setup(what_takes_or_ends_work_is_refused_in_a_model, deadline),
        cmocka_unit_test_setup(what_a_model_returns_is_0_or_a_status_that_ends_the_run, deadline),
        cmocka_unit_test_setup(what_an_own_model_leaves_out_or_does_wrong_is_found, deadline),
        cmocka_unit_test_setup(null_is_refused_where_something_is_needed, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
