/* Logistic regression on two classes: the loss of sparse_priv.h is
 *
 *     loss(w . x + b, y) = log(1 + exp(-y (w . x + b)))        y in {-1, +1}
 *
 * d loss / d dot = y * loss'(margin), margin = y * dot (math/logistic.h). In the live modes each feature's L2 share is applied
 * when the feature is touched, n / count of it, as in Hogwild! (Niu et al. 2011, section 2). */
#include "math/logistic.h"
#include "models/models.h"
#include "models/sparse_priv.h"

static const char *check(const struct shmtrain_data *data) {
    if (data->n_labels == 2) return NULL;
    return data->n_labels < 2 ? "only one label, but logistic regression needs two"
                              : "more than two labels, but logistic regression needs two";
}

SHMT_INLINED void losses(uint32_t n, const float *sign, float *slope, float *loss_out) {
    for (uint32_t k = 0; k < n; k++) slope[k] *= sign[k];
    shmt_logistic_many(n, slope, loss_out);
    for (uint32_t k = 0; k < n; k++) slope[k] *= sign[k];
}

static void slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    shmt_sparse_slope(arg, first, n, dot, slope_out, losses, true);
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    return shmt_sparse_step(s, pass, batch, slope, loss_out);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    return shmt_sparse_score(s, pass, batch, score_out, loss_out, losses, true);
}

/* Of the larger label. */
static void probabilities(uint32_t n, uint32_t outputs, float *score_out) {
    for (uint64_t i = 0; i < (uint64_t)n * outputs; i++) score_out[i] = shmt_sigmoid(score_out[i]);
}

const struct shmtrain_model SHMT_MODEL_LOGISTIC = {
    .size = sizeof(struct shmtrain_model),
    .name = "logistic",
    .about = "two classes, logistic loss",
    .task = SHMTRAIN_BINARY,
    .loss = "log loss",
    .traits = {.columns_alike = 1, .curvature = 0.25f},
    .threshold = 0.0f,
    .check = check,
    .tables = shmt_sparse_tables,
    .step = step,
    .score = score,
    .probabilities = probabilities,
};
