/* Losses of one example as functions of its score z, in double, with their conjugates. c: the example's weight.
 *
 * logistic   loss = c log(1 + exp(-s z))    u = -loss' = c s / (1 + exp(s z))    loss'' = c q (1 - q), q = 1 / (1 + exp(s z))
 * squared    loss = c (z - y)^2 / 2         u = c (y - z)                        loss'' = c
 * hinge      loss = c max(0, 1 - s z)       has a corner: u is chosen by other means (ascent.h, interior.h)
 *
 * The dual objective is -1/N sum_i loss*(-u_i) - l2/2 |v|^2 with v = X'u / (l2 N), for any u whose loss* are finite and, with a
 * bias, whose sum is 0; it is nowhere above the minimum (Fenchel; Hsieh et al. 2008, Yu et al. 2011 for the logistic loss). */
#pragma once

#include <math.h>

#include "math/logistic_doubles.h"
#include "solve/rows_priv.h"

struct shmt_loss_at {
    double loss, pull, curve; /* loss, u, second derivative; hinge: loss alone */
};

/* Examples whose losses are taken together, by vector code. */
enum { SHMT_TOGETHER = 64 };
static inline uint32_t shmt_together(uint64_t from, uint64_t to) { return (uint32_t)shmt_min_u64(SHMT_TOGETHER, to - from); }

static inline void shmt_losses_logistic(const struct shmt_problem *p, uint64_t first, uint32_t n, const double *z,
                                        struct shmt_loss_at *out) {
    double label[SHMT_TOGETHER], margin[SHMT_TOGETHER], loss[SHMT_TOGETHER], fall[SHMT_TOGETHER], bend[SHMT_TOGETHER];
    for (uint32_t k = 0; k < n; k++) label[k] = shmt_example_label(p, first + k);
    for (uint32_t k = 0; k < n; k++) margin[k] = label[k] * z[k];
    shmt_logistic_doubles(n, margin, loss, fall, bend);
    for (uint32_t k = 0; k < n; k++) {
        const double c = shmt_problem_weight(p, first + k);
        out[k] = (struct shmt_loss_at){c * loss[k], c * label[k] * fall[k], c * bend[k]};
    }
}

static inline struct shmt_loss_at shmt_loss_squared(double z, double label, double c) {
    const double off = z - label;
    return (struct shmt_loss_at){0.5 * c * off * off, -c * off, c};
}

static inline struct shmt_loss_at shmt_loss_hinge(double z, double label, double c) {
    const double off = 1 - label * z;
    return (struct shmt_loss_at){.loss = off <= 0 ? 0 : c * off}; /* NaN stays */
}

/* Of examples first .. first + n - 1, at most SHMT_TOGETHER, with these scores. */
static inline void shmt_losses(const struct shmt_problem *p, uint64_t first, uint32_t n, const double *z,
                               struct shmt_loss_at *out) {
    if (p->loss == SHMT_SOLVE_LOGISTIC) {
        shmt_losses_logistic(p, first, n, z, out);
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        const double c = shmt_problem_weight(p, first + k), label = shmt_example_label(p, first + k);
        out[k] = p->loss == SHMT_SOLVE_SQUARED ? shmt_loss_squared(z[k], label, c) : shmt_loss_hinge(z[k], label, c);
    }
}

static inline double shmt_x_log_x(double x) { return x > 0 ? x * log(x) : 0; }

/* out = loss*(-u) of n examples, at most SHMT_TOGETHER, with these labels and weights. */
static inline void shmt_conjugates(enum shmt_solve_loss loss, uint32_t n, const double *u, const double *label, const double *c,
                                   double *out) {
    double q[SHMT_TOGETHER];
    if (loss == SHMT_SOLVE_LOGISTIC) {
        for (uint32_t k = 0; k < n; k++) q[k] = c[k] > 0 ? fmin(1, fabs(u[k]) / c[k]) : 0;
        shmt_entropy_doubles(n, q, out);
        for (uint32_t k = 0; k < n; k++) out[k] *= c[k];
        return;
    }
    for (uint32_t k = 0; k < n; k++)
        out[k] = c[k] == 0 ? 0 : loss == SHMT_SOLVE_SQUARED ? 0.5 * u[k] * u[k] / c[k] - u[k] * label[k] : -fabs(u[k]);
}
