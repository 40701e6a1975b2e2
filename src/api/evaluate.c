/* What a model is worth on some data, and what it predicts: the last steps of scoring (scores.h), on the application's
 * thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/scores.h"
#include "math/auc.h"

/* ---- evaluation ---- */

static double weights_sum(const struct shmt_scores *s) {
    const float *weight = s->load.data.weight;
    double sum = 0;
    if (!weight) return (double)s->n;
    for (uint64_t i = 0; i < s->n; i++) sum += (double)weight[i];
    return sum;
}

/* The class of a label that is one of them, as check_labels of scores.c has made sure. */
static uint32_t class_of(const struct shmtrain_settings *with, float label) {
    uint32_t low = 0, high = with->n_classes - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (with->classes[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int count_confusion(const struct shmt_scores *s, struct shmtrain_evaluation *out) {
    struct shmtrain_store *store = s->store;
    const uint32_t n = s->job.settings.n_classes;
    const float *output = shmt_scores_at(s);
    uint64_t *confusion = calloc((size_t)n * n, sizeof *confusion), right = 0;
    if (!confusion) return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "no memory for the confusion of %u classes", n);
    for (uint64_t i = 0; i < s->n; i++)
        confusion[class_of(&s->job.settings, s->label[i]) * n + shmt_scores_class(s, output + i * s->n_outputs)]++;
    for (uint32_t c = 0; c < n; c++) right += confusion[c * n + c];
    store->confusion = confusion;
    out->n_classes = n;
    out->classes = store->trained.classes;
    out->confusion = confusion;
    out->accuracy = (double)right / (double)s->n;
    return 0;
}

static int measure_auc(const struct shmt_scores *s, double *out) {
    void *scratch = malloc(shmt_auc_scratch_bytes(s->n));
    if (!scratch)
        return shmt_fail(&s->store->error, SHMTRAIN_E_MEMORY, "no memory to sort %llu scores", (unsigned long long)s->n);
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
    struct shmtrain_store *store = s->store;
    struct shmtrain_evaluation *out = &store->evaluation;
    free(store->confusion);
    store->confusion = NULL;
    *out = (struct shmtrain_evaluation){.examples = s->n,
                                        .loss = shmt_scores_loss(s) / weights_sum(s),
                                        .accuracy = NAN,
                                        .auc = NAN,
                                        .root_mean_square_error = NAN,
                                        .model = s->model->name,
                                        .loss_name = s->model->loss ? s->model->loss : "loss"};
    int rc = 0;
    if (shmt_scores_are_of_classes(s)) rc = count_confusion(s, out);
    if (rc == 0 && s->model->task == SHMTRAIN_BINARY) rc = measure_auc(s, &out->auc);
    if (s->model->task == SHMTRAIN_REGRESSION) out->root_mean_square_error = root_mean_square(s);
    return rc;
}

int shmtrain_store_evaluate(struct shmtrain_store *store, const char *data, const struct shmtrain_evaluation **out) {
    struct shmt_scores scores;
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_scores_make(store, data, true, &scores);
    if (rc == 0) rc = judge(&scores);
    shmt_scores_free(&scores);
    shmt_call_leave(store);
    if (rc == 0) *out = &store->evaluation;
    return rc;
}

/* ---- prediction ---- */

static float prediction(const struct shmt_scores *s, const float *output) {
    return shmt_scores_are_of_classes(s) ? s->job.settings.classes[shmt_scores_class(s, output)] : output[0];
}

/* The board is ours by now: probabilities take the place of scores. */
static int hand_out(const struct shmt_scores *s, int probabilities, shmtrain_predicted *each, void *arg) {
    float *output = shmt_board_scores(s->job.ops->board(s->made), &s->job.board);
    for (uint64_t i = 0; i < s->n; i++, output += s->n_outputs) {
        const float label = prediction(s, output);
        if (probabilities) s->model->probabilities(1, s->n_outputs, output);
        const int rc = each(arg, i, label, output, s->n_outputs);
        if (rc != 0) return rc;
    }
    return 0;
}

static int check_probabilities(struct shmtrain_store *store) {
    const struct shmtrain_model *model = store->trained.model ? shmt_store_model_named(store, store->trained.model) : NULL;
    if (!model || model->probabilities) return 0;
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "model %s has no probabilities: take its scores", model->name);
}

int shmtrain_store_predict(struct shmtrain_store *store, const char *data, int probabilities, shmtrain_predicted *each,
                           void *arg) {
    struct shmt_scores scores = {0};
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = probabilities ? check_probabilities(store) : 0;
    if (rc == 0) rc = shmt_scores_make(store, data, false, &scores);
    if (rc == 0) rc = hand_out(&scores, probabilities, each, arg);
    shmt_scores_free(&scores);
    shmt_call_leave(store);
    return rc;
}
