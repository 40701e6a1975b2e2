/* Working out a learning rate: see auto_rate.h. */
#include "train/auto_rate.h"

#include <math.h>

#define LOGISTIC_CURVATURE 0.25  /* of models that say nothing */
#define LEAST_SQUARE       1e-6  /* of features, without a bias */
#define MANY_CLASSES       0.375 /* from 8 classes on, with the root of their number */

static bool is_regression(const struct shmt_rate_wish *w) { return w->model->task == SHMTRAIN_REGRESSION; }

/* Updates are made of the mean gradient of many examples. */
static bool is_batch(const struct shmt_rate_wish *w) { return !w->live || w->model->dense; }

static double curvature_of(const struct shmt_rate_wish *w) {
    const double most = w->model->curvature > 0 ? (double)w->model->curvature : LOGISTIC_CURVATURE;
    const double n = w->with->n_classes;
    return w->model->task == SHMTRAIN_CLASSES && n > 0 ? fmin(most, fmax(1 / n, MANY_CLASSES / sqrt(n))) : most;
}

static double sgd_rate(const struct shmt_rate_wish *w) {
    const bool bias = w->with->bias != 0;
    const double square = w->data->mean_square;
    if (is_regression(w)) {
        const double c = is_batch(w) ? 1 : 0.5 / (w->with->group ? w->with->group : 1);
        return c / (curvature_of(w) * fmax(square + bias, LEAST_SQUARE));
    }
    const bool bias_leads = bias && square < 0.5;
    const double c = !is_batch(w) ? 0.25 : bias_leads ? 0.5 : w->model->task == SHMTRAIN_CLASSES ? 3 : 2;
    return c / (curvature_of(w) * fmax(square, bias ? 1 : LEAST_SQUARE));
}

/* What a step may move the score of a mean example by, at first. */
static double reach_of(const struct shmt_rate_wish *w) {
    static const struct {
        double live, batch;
    } REACH[SHMT_N_RULES] = {[SHMT_RULE_ADAGRAD] = {2, 4}, [SHMT_RULE_FTRL] = {4, 16}, [SHMT_RULE_ADAM] = {0.03, 0.1}};
    const double reach = is_batch(w) ? REACH[w->rule->kind].batch : REACH[w->rule->kind].live;
    return is_regression(w) ? reach / 4 : reach; /* the slopes of classifiers fade once they are right */
}

float shmt_auto_rate(const struct shmt_rate_wish *w) {
    const double bias = w->with->bias, n = (double)w->data->n_examples;
    const double one_step = sgd_rate(w) / w->mean_weight;
    if (w->rule->kind == SHMT_RULE_SGD) return (float)one_step;
    if (w->rule->kind == SHMT_RULE_MOMENTUM) return (float)(one_step * (1 - (double)w->rule->momentum));
    const double nonzeros = n > 0 ? (double)w->data->n_nonzeros / n : 0;
    return (float)(reach_of(w) / sqrt(fmax((nonzeros + bias) * (w->data->mean_square + bias), LEAST_SQUARE)));
}

int shmt_auto_rate_misfit(const struct shmt_rate_wish *w) {
    const bool same_for_all = w->rule->kind == SHMT_RULE_SGD || w->rule->kind == SHMT_RULE_MOMENTUM;
    if (!same_for_all || !w->with->bias) return 0;
    return w->data->mean_square < 0.05 ? -1 : w->data->mean_square > 1000;
}
