/* The linear support vector machine on two classes: the loss of sparse_priv.h is the hinge,
 *
 *     loss(w . x + b, y) = max(0, 1 - y (w . x + b))        y in {-1, +1}
 *
 * with a subgradient with respect to the dot product of -y below the margin of 1, and 0 from there on. Examples beyond the
 * margin push nothing but what L2 asks for. With l2 = 1 / (C n) this is LIBLINEAR's -s 3, apart from its bias, which is
 * regularised. */
#include "models/models.h"
#include "models/sparse_priv.h"

static const char *check(const struct shmtrain_data *data) {
    if (data->n_labels == 2) return NULL;
    return data->n_labels < 2 ? "only one label, but a support vector machine needs two"
                              : "more than two labels, but a support vector machine needs two";
}

/* NaN is beyond nothing, so it comes out as NaN. */
SHMT_INLINED void losses(uint32_t n, const float *sign, float *slope, float *loss_out) {
    for (uint32_t k = 0; k < n; k++) {
        const float margin = sign[k] * slope[k];
        const int beyond = margin >= 1;
        loss_out[k] = beyond ? 0 : 1 - margin;
        slope[k] = beyond ? 0 : -sign[k];
    }
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

const struct shmtrain_model SHMT_MODEL_SVM = {
    .size = sizeof(struct shmtrain_model),
    .name = "svm",
    .about = "two classes, hinge loss",
    .task = SHMTRAIN_BINARY,
    .loss = "hinge loss",
    /* The kink has no curvature: a full step for an example of mean length takes its margin from 0 to 1. */
    .traits = {.columns_alike = 1, .curvature = 1.0f},
    .threshold = 0.0f,
    .check = check,
    .tables = shmt_sparse_tables,
    .step = step,
    .score = score,
};
