/* Linear regression: the loss of sparse_priv.h is half the squared error,
 *
 *     loss(w . x + b, t) = 1/2 (w . x + b - t)^2        t: the label, any number
 *
 * with the derivative w . x + b - t. With L2 it is ridge regression, with L1 the lasso.
 *
 * b begins at the mean label, each example counting by its weight. From 0 it would have as far to go as labels are from 0, at
 * a rate that the other features set: labels around 1000 with features up to 100 would take thousands of epochs. */
#include "models/models.h"
#include "models/sparse_priv.h"

SHMT_INLINED void losses(uint32_t n, const float *target, float *slope, float *loss_out) {
    for (uint32_t k = 0; k < n; k++) {
        slope[k] -= target[k];
        loss_out[k] = 0.5f * slope[k] * slope[k];
    }
}

static void slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    shmt_sparse_slope(arg, first, n, dot, slope_out, losses, false);
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    return shmt_sparse_step(s, pass, batch, slope, loss_out);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    return shmt_sparse_score(s, pass, batch, score_out, loss_out, losses, false);
}

/* Added up in the order of the examples, so that it has the same bits for every number of workers. */
static void begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                  float *value) {
    (void)state;
    const struct shmtrain_data *data = train->data;
    double sum = 0, weights = 0;
    (void)t; /* there is one */
    for (uint32_t k = 0; k < train->n; k++) {
        const uint64_t i = shmt_example_at(train, k);
        const double weight = data->weight ? (double)data->weight[i] : 1;
        sum += weight * (double)data->label[i];
        weights += weight;
    }
    if (with->bias && weights > 0) value[data->n_features] = (float)(sum / weights);
}

const struct shmtrain_model SHMT_MODEL_LINEAR = {
    .size = sizeof(struct shmtrain_model),
    .name = "linear",
    .about = "any labels, half the squared error",
    .task = SHMTRAIN_REGRESSION,
    .loss = "squared loss",
    .traits = {.columns_alike = 1, .curvature = 1.0f},
    .tables = shmt_sparse_tables,
    .begin = begin,
    .step = step,
    .score = score,
};
