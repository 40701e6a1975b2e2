/* The learning rate for users who name none: from the data, the model and the update rule. Models of which no curvature is known
 * say themselves which rates suit them.
 *
 * Called by `api` when the data is counted. Pure. The figures behind the constants are in docs/learning.md and docs/networks.md.
 *
 * sgd. A step of rate r on one example moves its own score by r |x|^2 slope, and its slope by curvature times that, so what
 * counts is c = r * curvature * mean |x|^2, with 1 for a full Newton step on a mean example. Single examples take c = 1/4:
 * their gradients are noisy. Gradients of whole batches, and of whole items (dense models), take c = 2; more oscillates on data
 * with many dense features. Sparse examples have few features in common, so the mean of their gradients is far shorter than
 * each of them: where the rate comes down to 0 in the end, batches of these take c = 6. A bias is a feature of length 1: where
 * the others are shorter, it sets the pace, and 2 makes it jump to and fro. The slopes of squared errors grow without bound, so
 * that a rate that is too large does not just oscillate: batches take c = 1, and live groups, whose examples are all updated
 * after one look, share c = 1/2 among them. Of n classes each has a probability of 1/n at first, and the curvature begins with
 * that; they take c = 3. In the end the right class and its rivals are as steep as two, whatever n is: from 8 classes on, the
 * curvature between is 0.375 / sqrt(n), by measurement.
 *
 * Weights of examples multiply their steps, so the rate is divided by their mean: weights that are all the same change nothing.
 *
 * momentum. Steps add up to 1 / (1 - m) times their size, so the rate of sgd times (1 - m).
 *
 * With L1 or L2 in the objective a run may come sooner to where it ends, as nothing has to stop before the noise is learned: rates of
 * classes are 2 times as large, of batches 1.5 times; those of squared errors stay.
 *
 * nesterov: as momentum. adadelta's steps have the parameters' size by themselves, and grow: 3 times that; of batches of sparse
 * examples, whose updates are few, 30 times.
 *
 * Networks in live modes. The gradients of n workers at one copy are n - 1 updates late on average, which has two effects: it acts as
 * momentum (1 - 1/n of it; Mitliagkas et al. 2016), and the steps that a curvature allows become smaller. So where they are left open, the
 * mean age of what momentum adds up, m / (1 - m), is divided by n, and the rates of sgd, momentum and nesterov by 1 + 0.3 (n - 1).
 * Rules that divide by the gradients' size keep theirs.
 *
 * A few long gradients at the beginning, and the updates that others make of them before anybody has seen where they lead, leave
 * networks with relus that never answer again. So sgd, momentum and nesterov clip gradients at a norm that the model names, and where
 * gradients are late their rate grows from 0, over half an epoch, or 500 updates if these are sooner.
 *
 * lamb: 0.02, for its steps are shares of each table's own norm, whatever data and model are.
 *
 * adagrad, ftrl, adam, adamw, rmsprop move each parameter by about r at first, whatever its gradients' size, weights of examples
 * included: a score by r * sum |x_j|, which is r * sqrt(nonzeros * |x|^2) at most; the rate makes that a constant, the reach; of a
 * regression a part of the labels' standard deviation, for scores are of their size there. A rate of adagrad
 * that comes down to 0 in the end begins twice as high. With L1 or L2 the reach is larger, too; but that of ftrl, whose rates never
 * end, only where few examples have a feature in common: of batches that share all of them the noise stays, and it goes by the rate. */
#pragma once

#include <shmtrain/model.h>
#include <stdbool.h>
#include <stdint.h>

#include "update/rate.h"
#include "update/rule.h"

struct shmt_rate_wish {
    const struct shmtrain_model *model;
    const struct shmtrain_settings *with; /* complete, the group included */
    const struct shmtrain_data *data;     /* of it, the numbers count */
    const struct shmt_rule *rule;
    double mean_weight;  /* of the examples, above 0 */
    double label_spread; /* their standard deviation, of a regression; 0: not known */
    bool ends_at_0;      /* the rate's schedule does: it may begin higher */
    bool live;           /* each work item is an update, or many; else there is one per batch */
    uint64_t n_trained;  /* examples of an epoch */
    uint32_t item;       /* live: examples of an update */
    uint32_t sharers;    /* workers who update one copy of the parameters; 1: one, or in turns */
};

/* The momentum for users who name none: `usual`, or in live modes less of it. */
float shmt_auto_momentum(const struct shmt_rate_wish *wish, float usual);

/* What a gradient's norm is limited to for users who name nothing: as the model has it; 0: by nothing. */
float shmt_auto_clip_norm(const struct shmt_rate_wish *wish);

/* The epochs in which the rate grows from 0, for users who name none. */
double shmt_auto_warmup(const struct shmt_rate_wish *wish, const struct shmt_rate *rate);

/* 0: nobody knows one. */
float shmt_auto_rate(const struct shmt_rate_wish *wish);
