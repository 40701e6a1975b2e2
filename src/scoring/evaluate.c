/* What a model is worth on some data, and what it predicts: the last steps of scoring (scores.h), on the application's
 * thread. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scoring/quality.h"
#include "scoring/scores.h"
#include "scoring/stream.h"
#include "base/sized.h"
#include "configuration/model_options.h"
#include "loading/arrays.h"
#include "math/auc.h"

/* ---- evaluation ---- */

static double weights_sum(const struct shmt_scores *s) {
    const float *weight = s->load.data.weight;
    double sum = 0;
    if (!weight) return (double)s->n;
    for (uint64_t i = 0; i < s->n; i++) sum += (double)weight[i];
    return sum;
}

static int measure_auc(const struct shmt_scores *s, double *out) {
    void *scratch = malloc(shmt_auc_scratch_bytes(s->n));
    if (!scratch) return shmt_no_memory(&s->scoring->call->error, "to sort %llu scores", (unsigned long long)s->n);
    *out = shmt_auc(shmt_scores_at(s), s->label, s->like.label_high, s->n, scratch);
    free(scratch);
    return 0;
}

static double root_mean_square(const struct shmt_scores *s) {
    const float *output = shmt_scores_at(s), *weight = s->load.data.weight;
    double sum = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double miss = (double)output[i] - (double)s->label[i];
        sum += miss * miss * (weight ? (double)weight[i] : 1);
    }
    return sqrt(sum / weights_sum(s));
}

static int judge(const struct shmt_scores *s) {
    struct shmt_scoring *scoring = s->scoring;
    struct shmtrain_evaluation *out = &scoring->evaluation;
    if (weights_sum(s) == 0)
        return shmt_fail(&scoring->call->error, SHMTRAIN_E_DATA, "%s: all examples have weight 0: there is nothing to evaluate",
                         s->load.name);
    shmt_quality_forget(scoring);
    *out = (struct shmtrain_evaluation){.size = sizeof(struct shmtrain_evaluation),
                                        .examples = s->n,
                                        .skipped = s->load.totals.n_skipped,
                                        .loss = shmt_scores_loss(s) / weights_sum(s),
                                        .accuracy = NAN,
                                        .auc = NAN,
                                        .root_mean_square_error = NAN,
                                        .precision = NAN,
                                        .recall = NAN,
                                        .f1 = NAN,
                                        .calibration_error = NAN,
                                        .brier = NAN,
                                        .model = s->model->name,
                                        .loss_name = s->model->loss ? s->model->loss : "loss"};
    int rc = 0;
    if (shmt_scores_are_of_classes(s)) rc = shmt_quality_measure(s, out);
    if (rc == 0 && s->model->task == SHMTRAIN_BINARY) rc = measure_auc(s, &out->auc);
    if (s->model->task == SHMTRAIN_REGRESSION) out->root_mean_square_error = root_mean_square(s);
    return rc;
}

int shmt_evaluate(struct shmt_scoring *scoring, const char *data) {
    struct shmt_scores scores;
    int rc = shmt_call_check_given(scoring->call, data, "the name of data");
    if (rc < 0) return rc;
    rc = shmt_scores_make(scoring, &(const struct shmt_scores_wish){data, SHMT_LABELS_FIT, false, UINT64_MAX}, &scores);
    if (rc == 0) rc = judge(&scores);
    shmt_scores_free(&scores);
    return rc;
}

/* ---- prediction ---- */

float shmt_scores_prediction(const struct shmt_scores *s, const float *output) {
    return shmt_scores_are_of_classes(s) ? s->job.settings.classes[shmt_scores_class(s, output)] : output[0];
}

/* The board is ours by now: probabilities take the place of scores. */
static int hand_out(const struct shmt_scores *s, int probabilities, shmtrain_predicted *each, void *arg) {
    enum { LOOK = 1 << 12 }; /* examples between two looks whether it is to end: writing them may take longer than all before */
    float *output = shmt_board_scores(shmt_array_at(s->job.backend, s->made, SHMT_ARRAY_BOARD), &s->job.board);
    for (uint64_t i = 0; i < s->n; i++, output += s->n_outputs) {
        if (i % LOOK == 0 && shmt_stop_asked(s->scoring->call))
            return shmt_fail(&s->scoring->call->error, SHMTRAIN_E_STOPPED, "stopped after %llu of %llu predictions",
                             (unsigned long long)i, (unsigned long long)s->n);
        const float label = shmt_scores_prediction(s, output);
        if (probabilities) s->model->probabilities(1, s->n_outputs, output);
        const int rc = each(arg, i, label, output, s->n_outputs);
        if (rc != 0) return rc;
    }
    return 0;
}

int shmt_scores_check_probabilities(struct shmt_call *call, struct shmt_parameters *params,
                                    const struct shmt_offered *offered) {
    struct shmt_model_texts room;
    const struct shmtrain_model *model = shmt_model_of_joined(offered, params->trained.model, params->trained.options, &room);
    if (!model || model->probabilities) return 0;
    return shmt_refuse(&call->error, "model %s has no probabilities: use its scores", model->name);
}

/* All workers have read and one has met a bad line: what stands before it is predicted as a stream would be, and the line is
 * met again. Where it is no text, or its first line is bad, nothing stands before it. */
static int predict_before(struct shmt_scoring *scoring, const char *data, int probabilities, shmtrain_predicted *each,
                          void *arg) {
    const struct shmtrain_stream stream = {
        .size = sizeof(struct shmtrain_stream), .fd = shmt_stream_open_text(data), .name = data};
    if (stream.fd < 0) return SHMTRAIN_E_DATA;
    shmt_error_clear(&scoring->call->error);
    const int rc = shmt_stream_predict(scoring, &stream, probabilities, each, arg);
    close(stream.fd);
    return rc;
}

/* A prediction: of what, and where it goes. */
struct wish {
    const char *data;
    int probabilities;
    uint64_t most; /* examples that there is room for */
    shmtrain_predicted *each;
    void *arg;
};

static int predict_all(struct shmt_scoring *scoring, const struct wish *wish) {
    struct shmt_scores scores = {0};
    int rc = wish->probabilities ? shmt_scores_check_probabilities(scoring->call, scoring->params, scoring->offered) : 0;
    const struct shmt_scores_wish scored = {wish->data, SHMT_LABELS_LEFT, false, wish->most};
    if (rc == 0) rc = shmt_scores_make(scoring, &scored, &scores);
    const bool is_bad = rc == SHMTRAIN_E_DATA && !shmt_arrays_find(scoring->loading, wish->data);
    if (rc == 0) rc = hand_out(&scores, wish->probabilities, wish->each, wish->arg);
    shmt_scores_free(&scores);
    return is_bad ? predict_before(scoring, wish->data, wish->probabilities, wish->each, wish->arg) : rc;
}

static int predict_file(struct shmt_scoring *scoring, const struct wish *wish) {
    const struct shmtrain_stream stream = {
        .size = sizeof(struct shmtrain_stream), .fd = shmt_stream_open_large(scoring, wish->data), .name = wish->data};
    if (stream.fd < 0) return predict_all(scoring, wish);
    const int rc = shmt_stream_predict(scoring, &stream, wish->probabilities, wish->each, wish->arg);
    close(stream.fd);
    return rc;
}

static int predict(struct shmt_scoring *scoring, const struct wish *wish) {
    int rc = shmt_call_check_given(scoring->call, wish->data, "the name of data");
    if (rc == 0)
        rc = shmt_call_check_given(scoring->call, (const void *)(uintptr_t)wish->each, "a function that hears predictions");
    if (rc == 0) rc = shmt_stream_check_lines(scoring->call, scoring->config);
    return rc == 0 ? predict_file(scoring, wish) : rc;
}

int shmt_predict(struct shmt_scoring *scoring, const char *data, int probabilities, shmtrain_predicted *each, void *arg) {
    return predict(scoring, &(const struct wish){data, probabilities, UINT64_MAX, each, arg});
}

/* What predictions are written to. */
struct into {
    struct shmt_call *call;
    struct shmtrain_predictions of;
};

static int put(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    const struct into *into = arg;
    if (example >= into->of.n_examples)
        return shmt_refuse(&into->call->error,
                           "the data has more than %llu examples: there is no room for more predictions (n_examples)",
                           (unsigned long long)into->of.n_examples);
    if (into->of.label) into->of.label[example] = label;
    if (into->of.output) memcpy(into->of.output + example * n, output, n * sizeof *output);
    return 0;
}

static int take_into(struct into *to, const struct shmtrain_predictions *into) {
    struct shmt_error *e = &to->call->error;
    if (!into) return shmt_refuse(e, "predictions need a struct shmtrain_predictions that says where they go");
    const int rc =
        shmt_sized_take(&to->of, sizeof to->of, into, SHMT_FIRST_SIZE(struct shmtrain_predictions, output), "predictions", e);
    if (rc < 0 || to->of.probabilities <= 1) return rc;
    return shmt_refuse(e, "probabilities is neither 0 nor 1 in a struct shmtrain_predictions");
}

int shmt_predict_into(struct shmt_scoring *scoring, const char *data, const struct shmtrain_predictions *into) {
    struct into to = {.call = scoring->call};
    const int rc = take_into(&to, into);
    if (rc < 0) return rc;
    return predict(scoring, &(const struct wish){data, to.of.probabilities != 0, to.of.n_examples, put, &to});
}

int shmt_outputs(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered) {
    struct shmtrain_data like;
    struct shmtrain_settings settings;
    const struct shmt_trained *trained = &params->trained;
    struct shmt_model_texts room;
    const struct shmtrain_model *model = shmt_model_of_joined(offered, trained->model, trained->options, &room);
    if (!model) return shmt_refuse(&call->error, "there is no model: train one, or load one");
    shmt_trained_settings(trained, &like, &settings);
    return (int)shmtrain_model_outputs(model, &settings);
}
