/* Logistic regression on two classes.
 *
 *     minimise  mean over i of log(1 + exp(-y_i (w . x_i + b)))  +  l2 / 2 * |w|^2        y_i in {-1, +1}, b not regularised
 *
 * d loss / d dot = y * loss'(margin), margin = y * dot (math/logistic.h). The larger of the two labels is y = +1. One table
 * "weight" of (features + 1, 1): its last row is the bias. L2 is part of the update rule: exact in `aggregate`; in the live
 * modes each feature's share is applied when the feature is touched, n / count of it, as in Hogwild! (Niu et al. 2011, section
 * 2). */
#include "math/logistic.h"
#include "models/models.h"
#include "store/kernels.h"

static const char *check(const struct shmtrain_data *data) {
    if (data->n_labels == 2) return NULL;
    return data->n_labels < 2 ? "one label only, and logistic regression needs two"
                              : "more than two labels, and logistic regression needs two";
}

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, struct shmtrain_shape *out) {
    out[0] = (struct shmtrain_shape){
        .name = "weight", .rows = (uint64_t)data->n_features + with->bias, .width = 1, .l2_rows = data->n_features};
    return 1;
}

static struct shmtrain_csr rows_of(const struct shmtrain_batch *batch, const struct shmtrain_settings *with) {
    const struct shmtrain_data *data = batch->data;
    return (struct shmtrain_csr){.n = batch->n,
                                 .bias = with->bias,
                                 .start = batch->example ? data->start : data->start + batch->first,
                                 .id = data->id,
                                 .value = data->value,
                                 .order = batch->example};
}

static uint64_t example_at(const struct shmtrain_batch *batch, uint32_t k) {
    return batch->example ? batch->example[k] : batch->first + k;
}

/* +1 for the larger label, -1 for the other; without a branch, which nobody could predict. */
static float sign_of(const struct shmtrain_batch *batch, uint32_t k) {
    return (float)(2 * (batch->data->label[example_at(batch, k)] == batch->data->label_high) - 1);
}

/* In shuffled order the labels are far apart: asks for that of an example which comes AHEAD places after example k. One request
 * for a group is enough, because the order keeps neighbours together. */
static void fetch_label(const struct shmtrain_batch *batch, uint32_t k) {
    enum { AHEAD = 16 };
    if (batch->example && k + AHEAD < batch->n) __builtin_prefetch(&batch->data->label[batch->example[k + AHEAD]]);
}

struct slopes {
    const struct shmtrain_batch *batch;
    double loss;
};

static void slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct slopes *s = arg;
    float sign[SHMT_MAX_GROUP], loss[SHMT_MAX_GROUP];
    fetch_label(s->batch, first);
    for (uint32_t k = 0; k < n; k++) sign[k] = sign_of(s->batch, first + k);
    for (uint32_t k = 0; k < n; k++) slope_out[k] = sign[k] * dot[k];
    shmt_logistic_many(n, slope_out, loss);
    for (uint32_t k = 0; k < n; k++) slope_out[k] *= sign[k];
    for (uint32_t k = 0; k < n; k++) s->loss += (double)loss[k];
}

static int step(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                double *loss_out) {
    struct slopes slopes = {.batch = batch};
    const struct shmtrain_csr x = rows_of(batch, with);
    const int rc = shmtrain_each(s, 0, &x, with->group, slope, &slopes);
    if (rc == 0) *loss_out = slopes.loss;
    return rc;
}

static int score(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                 float *score_out, double *loss_out) {
    const struct shmtrain_csr x = rows_of(batch, with);
    const int rc = shmtrain_dot(s, 0, &x, score_out);
    if (rc < 0) return rc;
    double loss = 0;
    for (uint32_t k = 0; k < batch->n; k++) loss += (double)shmt_logistic_loss(sign_of(batch, k) * score_out[k]);
    *loss_out = loss;
    return 0;
}

const struct shmtrain_model SHMT_MODEL_LOGISTIC = {
    .name = "logistic",
    .about = "two classes, logistic loss",
    .check = check,
    .tables = tables,
    .step = step,
    .score = score,
    .task = SHMTRAIN_BINARY,
    .loss = "log loss",
    .curvature = 0.25f,
    .threshold = 0.0f,
};
