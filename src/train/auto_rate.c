/* Working out a learning rate: see auto_rate.h. */
#include "train/auto_rate.h"

#include <math.h>

#include "base/checked.h"

#define LEAST_SQUARE 1e-6  /* of features, without a bias */
#define SPREAD       3     /* of labels, for which a regression's reach is that of the others */
#define LAMB_STEP    0.02f /* of a table's norm */
#define MANY_CLASSES 0.375 /* from 8 classes on, with the root of their number */

static bool is_regression(const struct shmt_rate_wish *w) { return w->model->task == SHMTRAIN_REGRESSION; }

/* Updates are made of the mean gradient of many examples. */
static bool is_batch(const struct shmt_rate_wish *w) { return !w->live || w->model->traits.pushes_tables; }

static double curvature_of(const struct shmt_rate_wish *w) {
    const double most = (double)w->model->traits.curvature, n = w->with->n_classes;
    return w->model->task == SHMTRAIN_CLASSES && n > 0 ? fmin(most, fmax(1 / n, MANY_CLASSES / sqrt(n))) : most;
}

/* Few examples have a feature in common: the mean of their gradients is far shorter than each of them. */
static bool is_sparse(const struct shmt_rate_wish *w) {
    return (double)w->data->n_nonzeros < 0.5 * (double)w->data->n_examples * (double)w->data->n_features;
}

/* What ends where L1 or L2 have it end may come there sooner: nothing has to stop before the noise is learned. */
static bool is_bounded(const struct shmt_rate_wish *w) { return w->rule->l1 > 0 || w->rule->l2 > 0; }

static double sgd_rate(const struct shmt_rate_wish *w) {
    const bool bias = w->with->bias != 0;
    const double square = w->data->mean_square;
    if (is_regression(w)) {
        const double c = is_batch(w) ? 1 : 0.5 / (w->with->group ? w->with->group : 1);
        return c / (curvature_of(w) * fmax(square + bias, LEAST_SQUARE));
    }
    const bool bias_leads = bias && square < 0.5;
    const double c = !is_batch(w)                         ? 0.25
                     : bias_leads                         ? 0.5
                     : w->model->task == SHMTRAIN_CLASSES ? 3
                     : w->ends_at_0 && is_sparse(w)       ? 6
                                                          : 2;
    const double sooner = !is_bounded(w) ? 1 : is_batch(w) ? 1.5 : 2;
    return sooner * c / (curvature_of(w) * fmax(square, bias ? 1 : LEAST_SQUARE));
}

/* Scores of a regression are of its labels' size. */
static double spread_of(const struct shmt_rate_wish *w) {
    return is_regression(w) && w->label_spread > 0 ? w->label_spread / SPREAD : 1;
}

/* What a step may move the score of a mean example by, at first. */
static double reach_of(const struct shmt_rate_wish *w) {
    static const struct {
        double live, sparse, batch; /* single examples; batches of sparse ones, of others */
        double sooner;              /* times that, but of others, with L1 or L2 */
    } REACH[SHMT_N_RULES] = {[SHMT_RULE_ADAGRAD] = {1.7, 1.7, 8, 2},
                             [SHMT_RULE_FTRL] = {2.5, 16, 16, 3},
                             [SHMT_RULE_ADAM] = {0.3, 0.2, 0.5, 2},
                             [SHMT_RULE_ADAMW] = {0.3, 0.2, 0.5, 2},
                             [SHMT_RULE_RMSPROP] = {0.15, 0.2, 0.5, 2}};
    const bool whole = is_batch(w) && !is_sparse(w), stays = w->rule->kind == SHMT_RULE_FTRL;
    const double slow = is_regression(w) && shmt_rule_scales((enum shmt_rule_kind)w->rule->kind)
                            ? 0.25
                            : 1; /* it does not slow down by itself */
    const double reach = whole         ? REACH[w->rule->kind].batch
                         : is_batch(w) ? REACH[w->rule->kind].sparse
                                       : REACH[w->rule->kind].live;
    const double sooner = is_bounded(w) && !(whole && stays) ? REACH[w->rule->kind].sooner : 1;
    const double falls = w->rule->kind == SHMT_RULE_ADAGRAD && w->ends_at_0 ? 2 : 1;
    return slow * falls * sooner * spread_of(w) * reach;
}

/* Others' updates come between the parameters that a gradient is of and its own. Where a curvature is known, its rates leave room for
 * that. */
static double late_of(const struct shmt_rate_wish *w) {
    const bool is_late = w->live && w->model->traits.pushes_tables && w->model->traits.curvature <= 0;
    return is_late && w->sharers > 1 ? w->sharers - 1.0 : 0;
}

float shmt_auto_momentum(const struct shmt_rate_wish *w, float usual) {
    const double age = (double)usual / (1 - (double)usual) / (1 + late_of(w));
    return late_of(w) > 0 ? (float)(age / (1 + age)) : usual;
}

#define ALL_TABLES 2 /* times the norm of one: few have the largest gradients */

#define LATE    0.3 /* cnn and mlp, 2 to 16 workers */
#define ADAGRAD 10  /* times the rate of adam: their steps become shorter all the time (mlp on builtin:digits) */
#define FTRL    30

/* As the model says; 0: it does not. Weights of examples make steps longer, but those of rules that divide by the gradients' size. */
static double models_rate(const struct shmt_rate_wish *w) {
    const struct shmtrain_traits *traits = &w->model->traits;
    const double one_step = (double)traits->rate / w->mean_weight / (1 + LATE * late_of(w));
    switch (w->rule->kind) {
        case SHMT_RULE_SGD:
            return one_step;
        case SHMT_RULE_MOMENTUM:
        case SHMT_RULE_NESTEROV:
            return one_step * (1 - (double)w->rule->momentum);
        case SHMT_RULE_ADADELTA:
            return 1; /* its steps have the parameters' size by themselves */
        case SHMT_RULE_ADAGRAD:
            return ADAGRAD * (double)traits->adaptive_rate;
        case SHMT_RULE_FTRL:
            return FTRL * (double)traits->adaptive_rate;
        default:
            return (double)traits->adaptive_rate;
    }
}

/* Of gradients: a step is as long as they are. */
static bool goes_by_size(const struct shmt_rate_wish *w) {
    const enum shmt_rule_kind kind = (enum shmt_rule_kind)w->rule->kind;
    return kind == SHMT_RULE_SGD || kind == SHMT_RULE_MOMENTUM || kind == SHMT_RULE_NESTEROV;
}

double shmt_auto_warmup(const struct shmt_rate_wish *w, const struct shmt_rate *rate) {
    if (!goes_by_size(w) || late_of(w) == 0 || rate->kind == SHMT_RATE_ONE_CYCLE) return 0;
    return fmin(0.5, 500.0 * w->item / (double)shmt_max_u64(1, w->n_trained));
}

float shmt_auto_clip_norm(const struct shmt_rate_wish *w) {
    if (!goes_by_size(w) || !w->model->traits.pushes_tables || w->rule->clip > 0) return 0;
    return (float)((w->live ? 1 : ALL_TABLES) * w->mean_weight * (double)w->model->traits.clip_norm);
}

float shmt_auto_rate(const struct shmt_rate_wish *w) {
    if (w->rule->kind == SHMT_RULE_LAMB) return LAMB_STEP;
    if (w->model->traits.curvature <= 0) return (float)models_rate(w);
    const double bias = w->with->bias, n = (double)w->data->n_examples;
    const double one_step = sgd_rate(w) / w->mean_weight;
    if (w->rule->kind == SHMT_RULE_SGD) return (float)one_step;
    if (w->rule->kind == SHMT_RULE_ADADELTA) return (float)((is_batch(w) && is_sparse(w) ? 30 : 3) * spread_of(w));
    if (w->rule->kind == SHMT_RULE_MOMENTUM || w->rule->kind == SHMT_RULE_NESTEROV)
        return (float)(one_step * (1 - (double)w->rule->momentum));
    const double nonzeros = n > 0 ? (double)w->data->n_nonzeros / n : 0;
    return (float)(reach_of(w) / sqrt(fmax((nonzeros + bias) * (w->data->mean_square + bias), LEAST_SQUARE)));
}
