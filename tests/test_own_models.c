/* Models of the application's own: offered, chosen, trained, and what is found wrong with them; and calls that are given NULL. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <sys/mman.h>

#include "api/store_priv.h"
#include "base/atomic.h"
#include "models/models.h"

/* Learns the mean of the labels: one parameter, squared loss; no classifier. */
static uint32_t mean_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            struct shmtrain_shape *out) {
    (void)state;
    (void)data;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "mean", .rows = 1, .width = 1, .l2_rows = 0};
    return 1;
}

static int mean_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                     double *loss_out) {
    float mean, grad = 0;
    double loss = 0;
    (void)pass;
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

static int mean_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                      float *score_out, double *loss_out) {
    float mean;
    double loss = 0;
    (void)pass;
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
                                        .traits.curvature = 1,
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

static int push_nan(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                    double *loss_out) {
    const float grad = NAN;
    (void)batch;
    (void)pass;
    *loss_out = 0;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static uint32_t reserved_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                                struct shmtrain_shape *out) {
    (void)state;
    const uint32_t n = mean_tables(data, with, state, out);
    out[0].reserved[2] = 1;
    return n;
}

static uint32_t g_n_tables;
static const char *g_table_name;

static uint32_t tables_as_told(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                               struct shmtrain_shape *out) {
    (void)mean_tables(data, with, state, out);
    out[0].name = g_table_name;
    return g_n_tables;
}

static void tables_that_there_cannot_be_are_refused(void **state) {
    static const struct {
        uint32_t n;
        const char *name, *why;
    } CASES[] = {{0, "mean", "model told has no parameters"},
                 {65, "mean", "model told says that it has 65 tables: at most 64 are possible"},
                 {UINT32_MAX, "mean", "at most 64 are possible"},
                 {2, "mean", "model told gives its table 1 no name"},
                 {1, NULL, "model told gives its table 0 no name"},
                 {1, "", "model told gives its table 0 no name"},
                 {1, "a-name-of-thirty-two-characters.", "a name has at most 31 characters"}};
    const struct shmtrain_model told = {.size = sizeof told,
                                        .name = "told",
                                        .tables = tables_as_told,
                                        .step = mean_step,
                                        .score = mean_score,
                                        .task = SHMTRAIN_REGRESSION};
    struct shmtrain_store *store = open_training("2", "sync", "");
    (void)state;
    WELL(store, shmtrain_store_offer(store, &told));
    WELL(store, shmtrain_store_set(store, "model", "told"));
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        g_n_tables = CASES[i].n;
        g_table_name = CASES[i].name;
        refused(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=500"), SHMTRAIN_E_USAGE,
                CASES[i].why);
    }
    g_n_tables = 1;
    g_table_name = "a-name-of-thirty-one-characters";
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=500"));
    shmtrain_store_destroy(store);
}

static int step_that_takes_work(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                                double *loss_out) {
    struct shmtrain_work w;
    const int rc = mean_step(s, pass, batch, loss_out);
    return rc < 0 ? rc : shmtrain_next(s, &w);
}

static int score_that_ends_work(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                                float *score_out, double *loss_out) {
    const int rc = mean_score(s, pass, batch, score_out, loss_out);
    return rc < 0 ? rc : shmtrain_clock(s, NULL);
}

static int score_that_complains(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                                float *score_out, double *loss_out) {
    (void)mean_score(s, pass, batch, score_out, loss_out);
    (void)shmtrain_fail(s, SHMTRAIN_E_DATA, "the labels are of another kind");
    return 0;
}

static int g_returned;

static int step_that_returns(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                             double *loss_out) {
    const int rc = mean_step(s, pass, batch, loss_out);
    return rc < 0 ? rc : g_returned;
}

static int score_that_returns(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                              float *score_out, double *loss_out) {
    const int rc = mean_score(s, pass, batch, score_out, loss_out);
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
    WELL(store, shmtrain_store_set(store, "model", "bare"));
    refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_USAGE,
            "\"bare\" does not say which rate suits it: use --rate");
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

/* ---- traits ---- */

static void traits_that_cannot_be_are_refused(void **state) {
    static const struct {
        struct shmtrain_traits traits;
        const char *why;
    } BAD[] = {{{.rows = 3}, "wants rows 3, which is none"},
               {{.pushes_tables = 2}, "neither 0 nor 1"},
               {{.loops = 2}, "neither 0 nor 1"},
               {{.blas = 7}, "neither 0 nor 1"},
               {{.columns_alike = 2}, "neither 0 nor 1"},
               {{.curvature = -1}, "a curvature, rate or norm of -1"},
               {{.rate = NAN}, "a curvature, rate or norm of nan"},
               {{.adaptive_rate = INFINITY}, "a curvature, rate or norm of inf"},
               {{.clip_norm = -2}, "a curvature, rate or norm of -2"},
               {{.optimizer = "adamant"}, "wants optimizer \"adamant\", which there is not"},
               {{.chunks = 6}, "wants 6 chunks: use a power of two"},
               {{.reserved = {0, 0, 1}}, "sets a reserved trait"}};
    struct shmtrain_store *store = open_training("2", "sync", "");
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        const struct shmtrain_model model = {.size = sizeof model,
                                             .name = "odd",
                                             .tables = mean_tables,
                                             .step = mean_step,
                                             .score = mean_score,
                                             .traits = BAD[i].traits};
        refused(store, shmtrain_store_offer(store, &model), SHMTRAIN_E_USAGE, BAD[i].why);
    }
    shmtrain_store_destroy(store);
}

/* Where nobody knows a curvature the model itself says which rates suit it, and what its optimizer, an item, a batch and its chunks
 * are. What is typed goes before that. */
static void what_suits_a_model_is_what_a_run_takes(void **state) {
    static const char DATA[] = "builtin:sparse:examples=4000,features=500";
    const struct shmtrain_model model = {.size = sizeof model,
                                         .name = "suited",
                                         .tables = mean_tables,
                                         .step = mean_step,
                                         .score = mean_score,
                                         .task = SHMTRAIN_REGRESSION,
                                         .traits = {.pushes_tables = 1,
                                                    .rate = 0.25f,
                                                    .adaptive_rate = 0.125f,
                                                    .optimizer = "nesterov",
                                                    .item = 40,
                                                    .batch = 80,
                                                    .chunks = 4}};
    static const struct {
        const char *batch;
        uint32_t chunks;
    } LARGE[] = {{"256", 2}, {"257", 4}, {"512", 4}, {"513", 8}};
    struct shmtrain_store *store = open_training("2", "auto", "");
    const struct shmtrain_report *r = shmtrain_store_report(store);
    struct shmtrain_model few = model;
    (void)state;
    WELL(store, shmtrain_store_offer(store, &model));
    WELL(store, shmtrain_store_set(store, "model", "suited"));
    WELL(store, shmtrain_store_set(store, "momentum", "0.75"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_string_equal(r->mode, "sync");
    assert_string_equal(r->optimizer, "nesterov");
    assert_true(r->rate == 0.0625f && r->batch == 80 && store->run.spec.n_chunks == 4);
    WELL(store, shmtrain_store_set(store, "optimizer", "momentum"));
    WELL(store, shmtrain_store_set(store, "batch", "512"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_true(r->rate == 0.0625f && store->run.spec.n_chunks == 8);
    few.traits.chunks = 2;
    few.name = "few";
    WELL(store, shmtrain_store_offer(store, &few));
    WELL(store, shmtrain_store_set(store, "model", "few"));
    for (size_t i = 0; i < sizeof LARGE / sizeof *LARGE; i++) {
        WELL(store, shmtrain_store_set(store, "batch", LARGE[i].batch));
        WELL(store, shmtrain_store_train(store, DATA));
        assert_int_equal(store->run.spec.n_chunks, LARGE[i].chunks);
    }
    WELL(store, shmtrain_store_set(store, "model", "suited"));
    WELL(store, shmtrain_store_set(store, "optimizer", "sgd"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_true(r->rate == 0.25f);
    WELL(store, shmtrain_store_set(store, "optimizer", "adadelta"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_true(r->rate == 1);
    WELL(store, shmtrain_store_set(store, "optimizer", "adam"));
    WELL(store, shmtrain_store_set(store, "mode", "async"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_true(r->rate == 0.125f && r->item == 40);
    shmtrain_store_destroy(store);
}

/* ---- state and workspace ---- */

#define ROOM 3 /* words of the workspace */

/* As the model's functions see it; shared with the workers. */
static struct shared { _Atomic uint32_t opened, closed, steps, scores, wrong; } * shared;

struct known {
    uint32_t features;
    uint64_t seed;
    char name[32]; /* of its table: it lasts as long as the state */
};

static int know(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                uint64_t bytes) {
    if (data->n_features == 13) {
        snprintf(why_out, bytes, "13 features are unlucky");
        return SHMTRAIN_E_DATA;
    }
    struct known *known = malloc(sizeof *known);
    if (!known) return SHMTRAIN_E_MEMORY;
    *known = (struct known){data->n_features, with->seed, "means"};
    *state_out = known;
    (void)take_relaxed(&shared->opened, 1);
    return 0;
}

static void forget(void *state) {
    explicit_bzero(state, sizeof(struct known)); /* who reads it later finds no name */
    free(state);
    (void)take_relaxed(&shared->closed, 1);
}

static uint32_t known_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                             struct shmtrain_shape *out) {
    const struct known *known = state;
    if (known->features != data->n_features) (void)take_relaxed(&shared->wrong, 1);
    const uint32_t n = mean_tables(data, with, state, out);
    out[0].name = known->name;
    return n;
}

static uint64_t room(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state, uint32_t n) {
    const struct known *known = state;
    (void)with;
    if (known->features != data->n_features || n < SHMTRAIN_MODEL_GROUP) (void)take_relaxed(&shared->wrong, 1);
    return ROOM * sizeof(uint32_t);
}

/* Each seat finds what it has left: it counts its calls. */
static void note_call(const struct shmtrain_pass *pass, uint32_t training) {
    uint32_t *words = pass->workspace;
    const struct known *known = pass->state;
    const bool well = words && (uintptr_t)words % 64 == 0 && pass->training == training && pass->epoch < 3 &&
                      known->seed == 7 && pass->with->seed == 7 && words[0] == words[1] && words[2] == 0;
    if (!well) (void)take_relaxed(&shared->wrong, 1);
    if (words) words[0]++, words[1]++;
}

static int counting_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                         double *loss_out) {
    note_call(pass, 1);
    (void)take_relaxed(&shared->steps, 1);
    return mean_step(s, pass, batch, loss_out);
}

static int counting_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                          float *score_out, double *loss_out) {
    note_call(pass, 0);
    (void)take_relaxed(&shared->scores, 1);
    return mean_score(s, pass, batch, score_out, loss_out);
}

static void a_model_has_a_state_for_all_seats_and_a_workspace_for_each(void **state) {
    const struct shmtrain_model model = {.size = sizeof model,
                                         .name = "counting",
                                         .open = know,
                                         .close = forget,
                                         .tables = known_tables,
                                         .workspace = room,
                                         .step = counting_step,
                                         .score = counting_score,
                                         .task = SHMTRAIN_REGRESSION,
                                         .traits.curvature = 1};
    struct shmtrain_model half = model;
    struct shmtrain_store *store = open_training("3", "sync", "valid=400");
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    half.name = "half";
    half.close = NULL;
    refused(store, shmtrain_store_offer(store, &half), SHMTRAIN_E_USAGE, "has one of open and close");
    WELL(store, shmtrain_store_offer(store, &model));
    WELL(store, shmtrain_store_set(store, "model", "counting"));
    WELL(store, shmtrain_store_set(store, "seed", "7"));
    WELL(store, shmtrain_store_set(store, "valid", "0.2"));
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=500"));
    assert_true(load_relaxed(&shared->steps) > 0 && load_relaxed(&shared->scores) > 0);
    assert_int_equal(load_relaxed(&shared->wrong), 0);
    WELL(store, shmtrain_store_save(store, "counting.safetensors"));
    WELL(store, shmtrain_store_load(store, "counting.safetensors"));
    assert_true(load_relaxed(&shared->opened) > 0);
    assert_int_equal(load_relaxed(&shared->closed), load_relaxed(&shared->opened));
    write_text("unlucky.svm", "1 1:1\n2 2:1\n3 13:1\n6 1:1\n2 7:1\n");
    refused(store, shmtrain_store_train(store, "unlucky.svm"), SHMTRAIN_E_DATA, "model counting: 13 features are unlucky");
    assert_int_equal(load_relaxed(&shared->closed), load_relaxed(&shared->opened));
    shmtrain_store_destroy(store);
    munmap(shared, sizeof *shared);
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
        cmocka_unit_test_setup(tables_that_there_cannot_be_are_refused, deadline),
        cmocka_unit_test_setup(what_takes_or_ends_work_is_refused_in_a_model, deadline),
        cmocka_unit_test_setup(what_a_model_returns_is_0_or_a_status_that_ends_the_run, deadline),
        cmocka_unit_test_setup(what_an_own_model_leaves_out_or_does_wrong_is_found, deadline),
        cmocka_unit_test_setup(traits_that_cannot_be_are_refused, deadline),
        cmocka_unit_test_setup(what_suits_a_model_is_what_a_run_takes, deadline),
        cmocka_unit_test_setup(a_model_has_a_state_for_all_seats_and_a_workspace_for_each, deadline),
        cmocka_unit_test_setup(null_is_refused_where_something_is_needed, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
