/* The hinge where columns are few: a primal-dual interior point method (Mehrotra 1992; of support vector machines Ferris and Munson
 * 2002, Gertz and Griffin 2010), which needs about as many steps for a large C as for a small one.
 *
 * Of each example: m = s x.w its margin, a = s u its dual variable within 0 .. c, and the slack e, so that
 *
 *     a (m - 1 + e) = c t      (c - a) e = c t      a, c - a, e, m - 1 + e > 0
 *
 * at the point of the central path whose t the step aims at; at the minimum t is 0. A step solves these equations, made linear, together
 * with l2 N w = X's a. Without a and e there remain Newton's equations with
 *
 *     curve = 1 / ((m - 1 + e) / a + e / (c - a))      u = s (a + curve (1 - m + (t c - p) / a - (t c + q) / (c - a)))
 *
 * in the places of curvature and u, where p and q are what a step without them would miss. They are solved twice with one
 * factorisation: for t = p = q = 0, along which it shows how far down t may go, and what p and q are; and with these. A third time with
 * p and q that keep the products close to one another (Gondzio 1996) was tried: it saves a quarter of the steps, and costs as much.
 *
 * Where numbers have not enough digits for it, steps become tiny or lead nowhere: after some points that are no nearer, or one that is no
 * number, dual ascent takes over from the a that there are (ascent.h).
 *
 * The point is w; a and e lie beside the examples, in inner[at]. No array is changed by a phase that reads it. The phases: REST; SCORE,
 * SLOPE, as of any loss; AIM, HESSIAN, FACTOR, REACH; CORRECT, AIM, AGAIN, REACH; MOVE. */
#pragma once

#include "solve/passes.h"

/* w = 0, and all examples on the central path for t = 1. */
void shmt_interior_start(const struct shmt_pass *pass);

/* Losses at the point `w` that is to be judged: sums LOSS, UP, DOWN, WEIGHT, CURVE, and PRODUCTS, WISH for the first step from there. */
void shmt_interior_score(const struct shmt_pass *pass, const double *w);

/* The right side of Newton's equations, to `gradient`. */
void shmt_interior_aim(const struct shmt_pass *pass);

/* How the margins change along the direction: sums REACH (the largest of each block), which bounds the step; FIRST and SECOND, how the
 * products change with it. */
void shmt_interior_reach(const struct shmt_pass *pass);

/* The wish of the direction that follows: sum WISH. */
void shmt_interior_correct(const struct shmt_pass *pass);

/* a and e behind the step, to the other ones of inner. */
void shmt_interior_move(const struct shmt_pass *pass);
