/* Logistic regression on two classes.
 *
 *     minimise  mean over i of log(1 + exp(-y_i (w . x_i + b)))  +  l2 / 2 * |w|^2        y_i in {-1, +1}, b not regularised
 *
 * d loss / d dot = y * loss'(margin), margin = y * dot (math/logistic.h). The larger of the two labels is y = +1. One table "weight"
 * of (features + 1, 1): its last row is the bias. L2 is part of the update rule: exact in `aggregate`; in the live modes each
 * feature's share is applied when the feature is touched, n / count of it, as in Hogwild! (Niu et al. 2011, section 2). */
#include "math/logistic.h"
#include "models/models.h"

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

/* +1 for the larger label, -1 for the other. */
static float sign_of(const struct shmtrain_batch *batch, uint32_t k) {
    const uint64_t i = batch->example ? batch->example[k] : batch->first + k;
    return batch->data->label[i] == batch->data->label_high ? 1.0f : -1.0f;
}

struct slopes {
    const struct shmtrain_batch *batch;
    double loss;
};

static void slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct slopes *s = arg;
    for (uint32_t k = 0; k < n; k++) {
        const float y = sign_of(s->batch, first + k);
        float loss;
        slope_out[k] = y * shmt_logistic(y * dot[k], &loss);
        s->loss += (double)loss;
    }
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
    .threshold = 0.0f,
};
