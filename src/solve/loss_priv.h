/* Losses of one example as functions of its score z, in double, with their conjugates. c: the example's weight.
 *
 * logistic   loss = c log(1 + exp(-s z))    u = -loss' = c s / (1 + exp(s z))    loss'' = c q (1 - q), q = 1 / (1 + exp(s z))
 * squared    loss = c (z - y)^2 / 2         u = c (y - z)                        loss'' = c
 * hinge      loss = c max(0, 1 - s z)       u = c s t, t = (1 - s z) / h within 0 .. 1    loss'' = c / h where 0 < t < 1
 *
 * The hinge has a corner, so steps are taken on a smooth loss that is at most c h / 2 below it: a parabola of width h
 * (Nesterov 2005; Chapelle 2007). Its u is a dual point of the hinge itself, and the proof is of that.
 *
 * The dual objective is -1/N sum_i loss*(-u_i) - l2/2 |v|^2 with v = X'u / (l2 N), for any u whose loss* are finite and, with a
 * bias, whose sum is 0; it is nowhere above the minimum (Fenchel; Hsieh et al. 2008, Yu et al. 2011 for the logistic loss). */
#ifndef SHMT_SOLVE_LOSS_PRIV_H
#define SHMT_SOLVE_LOSS_PRIV_H

#include <math.h>

#include "solve/problem.h"

struct shmt_loss_at {
    double loss, smooth, pull, curve; /* loss; what steps are taken on: itself, its u, its second derivative */
};

/* label: s or y. */
static inline struct shmt_loss_at shmt_loss_logistic(double z, double label, double c) {
    const double margin = label * z, e = exp(-fabs(margin)); /* at most 1 */
    const double q = (margin > 0 ? e : 1) / (1 + e);
    const double loss = c * (log1p(e) + (margin > 0 ? 0 : -margin));
    return (struct shmt_loss_at){loss, loss, c * label * q, c * e / ((1 + e) * (1 + e))};
}

static inline struct shmt_loss_at shmt_loss_squared(double z, double label, double c) {
    const double off = z - label;
    const double loss = 0.5 * c * off * off;
    return (struct shmt_loss_at){loss, loss, -c * off, c};
}

static inline struct shmt_loss_at shmt_loss_hinge(double z, double label, double c, double width) {
    const double off = 1 - label * z;
    if (off <= 0) return (struct shmt_loss_at){0, 0, 0, 0};
    if (off >= width) return (struct shmt_loss_at){c * off, c * (off - 0.5 * width), c * label, 0};
    return (struct shmt_loss_at){c * off, 0.5 * c * off * off / width, c * label * off / width, c / width};
}

/* width: h, of the hinge. */
static inline struct shmt_loss_at shmt_loss_at(enum shmt_solve_loss loss, double z, double label, double c, double width) {
    return loss == SHMT_SOLVE_LOGISTIC  ? shmt_loss_logistic(z, label, c)
           : loss == SHMT_SOLVE_SQUARED ? shmt_loss_squared(z, label, c)
                                        : shmt_loss_hinge(z, label, c, width);
}

static inline double shmt_x_log_x(double x) { return x > 0 ? x * log(x) : 0; }

/* loss*(-u). */
static inline double shmt_loss_conjugate(enum shmt_solve_loss loss, double u, double label, double c) {
    if (c == 0) return 0;
    if (loss == SHMT_SOLVE_SQUARED) return 0.5 * u * u / c - u * label;
    if (loss == SHMT_SOLVE_HINGE) return -fabs(u);
    const double q = fabs(u) / c;
    return q >= 1 ? 0 : c * (shmt_x_log_x(q) + (1 - q) * log1p(-q));
}

#endif
