/* Runs that have diverged: see diverged.h. */
#include "watching/diverged.h"

#include <math.h>
#include <string.h>

#include "loading/weights.h"
#include "models/models.h"

#define FAR 100 /* times that of a model without features */

static uint64_t example_of(const struct shmt_job *job, uint64_t i) { return job->train_example ? job->train_example[i] : i; }

/* Half the variance of the labels: the loss of their mean. */
static double loss_of_mean(const struct shmt_job *job) {
    const double n = (double)job->spec->n_examples;
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < job->spec->n_examples; i++) sum += (double)job->train->label[example_of(job, i)];
    for (uint64_t i = 0; i < job->spec->n_examples; i++) {
        const double off = (double)job->train->label[example_of(job, i)] - sum / n;
        squares += off * off;
    }
    return 0.5 * squares / n;
}

static bool is_squared(const struct shmtrain_model *model) {
    return model->task == SHMTRAIN_REGRESSION && strcmp(model->loss, "squared loss") == 0;
}

/* Without a feature; 0: nobody knows. */
static double loss_of_nothing(const struct shmt_job *job) {
    const struct shmt_weights_of all = {job->train_example, job->spec->n_examples};
    const double weight = shmt_weights_mean(job->train, &all);
    const double loss = job->model == &SHMT_MODEL_LOGISTIC  ? log(2)
                        : job->model == &SHMT_MODEL_SVM     ? 1
                        : job->model == &SHMT_MODEL_SOFTMAX ? log((double)job->settings.n_classes)
                        : is_squared(job->model)            ? loss_of_mean(job)
                                                            : 0;
    return weight * loss;
}

int shmt_diverged_check(const struct shmt_run *run, struct shmt_error *e) {
    const struct shmtrain_report *r = &run->report;
    if (run->fits || !run->job.model || r->n_epochs == 0) return 0;
    const double loss = r->epoch[r->n_epochs - 1].train_loss;
    if (!(loss > 1)) return 0; /* too small for what is looked for, or no number: then nothing was trained on */
    const double nothing = loss_of_nothing(&run->job);
    if (!(nothing > 0) || !(loss > FAR * nothing)) return 0;
    char remedy[96];
    shmt_job_remedy(&run->job, remedy, sizeof remedy);
    return shmt_fail(e, SHMTRAIN_E_NUMBERS, "the loss is %.4g, where a model that knows no features has %.4g: %s", loss,
                     nothing, remedy);
}
