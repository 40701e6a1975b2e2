/* The passes of passes.h for softmax, whose examples have a score for each class. Vectors of parameters have n_classes numbers for each
 * column, side by side, and so have scores for each example: one entry of the data is multiplied with all of them at once.
 *
 *     loss_i = c_i (log sum_k exp(z_ik) - z_i,y_i)        u_ik = c_i ([k = y_i] - p_ik)        p_ik = exp(z_ik) / sum_l exp(z_il)
 *
 * The proof is the duality gap here, too. Of the dual point u_ik = c_i ([k = y_i] - q_ik), q_i any distribution,
 *
 *     D = -1/N sum_i c_i sum_k q_ik log q_ik  -  1/2 sum_jk l2_j v_jk^2        v = X'u / (l2 N)
 *
 * is nowhere above the minimum; with biases, the sum of u over the examples must be 0 for each class: q = (1 - t) p + t r, where r, one
 * distribution for all examples, makes up for the difference, with the least t for which it is one. Of a class that no example has q is 0,
 * and what p has of it goes to r, too: its bias would have to become -infinity. */
#pragma once

#include "solve/passes.h"

/* The class of each example of my blocks. */
void shmt_wide_classes(const struct shmt_pass *pass);

/* Probabilities and losses at the point `w`: sums LOSS, SMOOTH, UP (the sum of all |u|), HELD, HEAVY, and by classes COUNT, SHARE and
 * CURVE. */
void shmt_wide_score(const struct shmt_pass *pass, const double *w);

/* As shmt_pass_verify. */
void shmt_wide_verify(const struct shmt_pass *pass);

/* Behind the phase of the score: t. */
double shmt_wide_mixture(const struct shmt_pass *pass);

/* In the phase behind it: as shmt_pass_slope and shmt_pass_dual. */
void shmt_wide_slope(const struct shmt_pass *pass, const double *w);
void shmt_wide_dual(const struct shmt_pass *pass);

/* As shmt_pass_scaled and shmt_pass_product, which comes in the phase behind it. */
void shmt_wide_scaled(const struct shmt_pass *pass, const double *search);
void shmt_wide_product(const struct shmt_pass *pass, const double *search);
