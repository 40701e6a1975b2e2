/* Linear models of several classes on sparse rows, which are not learned here: other programs' models, to be scored. One table
 * "weight" of (features + 1, classes), whose last row is the bias, and an output for each class, z = W x + b.
 *
 * "one-vs-rest": a logistic regression for each class. Its probabilities are LIBLINEAR's, sigmoid(z_c) divided by the sum over
 * all classes, and its loss is -log of that of the right class. "svm-classes": a support vector machine for each class, or one
 * for all (Crammer and Singer 2001), whose loss is taken here: max(0, 1 + max over c other than y of z_c - z_y). */
#include <math.h>
#include <string.h>

#include "math/logistic.h"
#include "models/models.h"

typedef double shmt_class_loss(uint32_t n, const float *output, uint32_t label);

/* Data without features has a row of weights that nobody uses: there is no table without rows. */
static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    const uint64_t rows = (uint64_t)data->n_features + with->bias;
    out[0] = (struct shmtrain_shape){
        .name = "weight", .rows = rows > 0 ? rows : 1, .width = with->n_classes, .l2_rows = data->n_features};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    (void)pass;
    (void)batch;
    (void)loss_out;
    return shmtrain_fail(s, SHMTRAIN_E_USAGE, "this model can only be scored, not trained: use softmax");
}

/* The outputs of one example. */
static void multiply(const struct shmtrain_data *data, uint64_t i, const float *weight, const struct shmtrain_settings *with,
                     float *out) {
    const uint32_t n = with->n_classes;
    double sum[SHMTRAIN_MAX_CLASSES];
    for (uint32_t c = 0; c < n; c++) sum[c] = with->bias ? (double)weight[(uint64_t)data->n_features * n + c] : 0;
    for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) {
        const double x = data->value ? (double)data->value[j] : 1;
        const float *row = weight + (uint64_t)data->id[j] * n;
        for (uint32_t c = 0; c < n; c++) sum[c] += x * (double)row[c];
    }
    for (uint32_t c = 0; c < n; c++) out[c] = (float)sum[c];
}

static uint32_t class_of(const struct shmtrain_settings *with, float label) {
    uint32_t c = 0;
    while (c + 1 < with->n_classes && with->classes[c] < label) c++;
    return c;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out, shmt_class_loss *loss) {
    const struct shmtrain_settings *with = pass->with;
    const uint32_t n = with->n_classes;
    const struct shmtrain_data *data = batch->data;
    const float *weight;
    uint64_t stride;
    const int rc = shmtrain_view(s, 0, 0, (uint64_t)data->n_features + with->bias, &weight, &stride, NULL);
    if (rc < 0) return rc;
    *loss_out = 0;
    for (uint32_t k = 0; k < batch->n; k++) {
        const uint64_t i = batch->example ? batch->example[k] : batch->first + k;
        float *out = score_out + (uint64_t)k * n;
        multiply(data, i, weight, with, out);
        *loss_out += (data->weight ? (double)data->weight[i] : 1) * loss(n, out, class_of(with, data->label[i]));
    }
    return 0;
}

/* ---- one-vs-rest ---- */

/* Far from all classes every sigmoid is 0 in float; then they are alike. */
static void normalise(uint32_t n, float *at) {
    double sum = 0;
    for (uint32_t c = 0; c < n; c++) sum += (double)(at[c] = shmt_sigmoid(at[c]));
    for (uint32_t c = 0; c < n; c++) at[c] = sum > 0 ? (float)((double)at[c] / sum) : 1 / (float)n;
}

static void probabilities(uint32_t n, uint32_t outputs, float *score_out) {
    for (uint32_t i = 0; i < n; i++) normalise(outputs, score_out + (uint64_t)i * outputs);
}

static double log_sigmoid(double z) { return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z)); }

static double log_loss(uint32_t n, const float *output, uint32_t label) {
    double most = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < n; c++) most = fmax(most, log_sigmoid((double)output[c]));
    for (uint32_t c = 0; c < n; c++) sum += exp(log_sigmoid((double)output[c]) - most);
    return most + log(sum) - log_sigmoid((double)output[label]);
}

static int score_one_vs_rest(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                             float *score_out, double *loss_out) {
    return score(s, pass, batch, score_out, loss_out, log_loss);
}

/* ---- svm-classes ---- */

static double hinge_loss(uint32_t n, const float *output, uint32_t label) {
    double most = -INFINITY;
    for (uint32_t c = 0; c < n; c++)
        if (c != label) most = fmax(most, (double)output[c]);
    return fmax(0, 1 + most - (double)output[label]);
}

static int score_svm(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                     float *score_out, double *loss_out) {
    return score(s, pass, batch, score_out, loss_out, hinge_loss);
}

static const struct shmtrain_model ONE_VS_REST = {.size = sizeof(struct shmtrain_model),
                                                  .name = "one-vs-rest",
                                                  .about = "LIBLINEAR's logistic regressions, one per class",
                                                  .task = SHMTRAIN_CLASSES,
                                                  .loss = "log loss",
                                                  .tables = tables,
                                                  .step = step,
                                                  .score = score_one_vs_rest,
                                                  .probabilities = probabilities},
                                   SVM = {.size = sizeof(struct shmtrain_model),
                                          .name = "svm-classes",
                                          .about = "LIBLINEAR's support vector machines for several classes",
                                          .task = SHMTRAIN_CLASSES,
                                          .loss = "hinge loss",
                                          .tables = tables,
                                          .step = step,
                                          .score = score_svm};

const struct shmtrain_model *shmt_model_scoring(const char *name) {
    if (strcmp(name, ONE_VS_REST.name) == 0) return &ONE_VS_REST;
    return strcmp(name, SVM.name) == 0 ? &SVM : NULL;
}
