/* Losses of one example as functions of its score z, in double, with their conjugates. c: the example's weight.
 *
 * logistic   loss = c log(1 + exp(-s z))    u = -loss' = c s / (1 + exp(s z))    loss'' = c q (1 - q), q = 1 / (1 + exp(s z))
 * squared    loss = c (z - y)^2 / 2         u = c (y - z)                        loss'' = c
 * hinge      loss = c max(0, 1 - s z)       has a corner: u is chosen by other means (ascent.h, interior.h)
 *
 * The dual objective is -1/N sum_i loss*(-u_i) - l2/2 |v|^2 with v = X'u / (l2 N), for any u whose loss* are finite and, with a
 * bias, whose sum is 0; it is nowhere above the minimum (Fenchel; Hsieh et al. 2008, Yu et al. 2011 for the logistic loss). */
#ifndef SHMT_SOLVE_LOSS_PRIV_H
#define SHMT_SOLVE_LOSS_PRIV_H

#include <math.h>

#include "solve/problem.h"

struct shmt_loss_at {
    double loss, pull, curve; /* loss, u, second derivative; hinge: loss alone */
};

/* label: s or y. */
static inline struct shmt_loss_at shmt_loss_logistic(double z, double label, double c) {
    const double margin = label * z, e = exp(-fabs(margin)); /* at most 1 */
    const double q = (margin > 0 ? e : 1) / (1 + e);
    const double loss = c * (log1p(e) + (margin > 0 ? 0 : -margin));
    return (struct shmt_loss_at){loss, c * label * q, c * e / ((1 + e) * (1 + e))};
}

static inline struct shmt_loss_at shmt_loss_squared(double z, double label, double c) {
    const double off = z - label;
    return (struct shmt_loss_at){0.5 * c * off * off, -c * off, c};
}

static inline struct shmt_loss_at shmt_loss_at(enum shmt_solve_loss loss, double z, double label, double c) {
    return loss == SHMT_SOLVE_LOGISTIC  ? shmt_loss_logistic(z, label, c)
           : loss == SHMT_SOLVE_SQUARED ? shmt_loss_squared(z, label, c)
                                        : (struct shmt_loss_at){.loss = c * fmax(0, 1 - label * z)};
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
