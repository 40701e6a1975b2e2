/* Dual coordinate ascent with a proof: maximises
 *
 *     D(u) = -1/N sum_i loss_i*(-u_i) - l2/2 |X'u / (l2 N)|^2        and with a bias sum_i u_i = 0
 *
 * for the hinge (-loss* = |u_i|, 0 <= s_i u_i <= c_i; Hsieh et al. 2008), coordinate by coordinate in a new order each time. Those at an
 * end of their range that will hardly leave it are left out for a while. One worker ascends; all the others share the passes over
 * the data around that: the image X'u / (l2 N), which is taken anew from u in each step, so that it cannot drift; the objective; the
 * proof. Rows in blocks that ascend side by side, with the best step along what they change together (Lee and Chang 2020), were
 * tried: already 2 blocks need 10 times as many steps on text, whose examples share most of their words.
 *
 * In live modes (problem.live) all workers ascend at once, each the coordinates of its own examples, on one image that all change
 * (PASSCoDe: Hsieh, Yu and Dhillon 2015): words of it by an atomic addition, or by a load and a store, so that some changes are lost. By
 * the image that is taken anew, and a step along what has changed that is no longer than it is worth, each step is an ascent all
 * the same. So the logistic (Yu et al. 2011) and the squared loss are fitted, too. Bits then follow who was when where.
 * Where so many changes are lost, or late, that the gap does not fall for some epochs, half as many workers ascend from then on, at last
 * one alone, which loses nothing (state.halvings).
 *
 * A bias is the multiplier of the constraint (method of multipliers: Hestenes 1969): it moves by RHO sum u / N after each step, and
 * within a step the sum is held near 0 by as much. The proof balances u to a sum of 0, as in newton.h.
 *
 * Where interior points (interior.h) lead nowhere, as rounding may have it with features of very different sizes, ascent takes over for
 * good: from their u, which is within its range.
 *
 * A step is the phases ASCEND, as often as there are sweeps, GAIN, IMAGE, ADVANCE and WEIGH of newton.c's machine, and then SLOPE, for the
 * proof. u stands in slope[].pull. Where the step leads to floats (state->rough) a sweep begins with the image to that precision; bounds
 * are of u alone. */
#pragma once

#include "solve/passes.h"

/* Sweeps of a step. The first one begins with what others need meanwhile; live, there is one for all. */
static inline uint32_t shmt_ascent_sweeps(const struct shmt_problem *p) { return p->live == SHMT_LIVE_NO ? 2 : 1; }

/* Times that so many coordinates as there are, at least, are visited in a sweep. Who needs few is spared the others; who needs many, the
 * proofs between them. */
static inline uint32_t shmt_ascent_visits(const struct shmt_solve_state *s) { return s->epoch < 2 ? 2u << s->epoch : 8; }

/* |x_i|^2. */
double shmt_ascent_square(const struct shmt_problem *p, uint64_t i);

/* u = 0 and w = 0; or where interior points were left (state.resumes) their u, with its image and their bias. Sums UP, DOWN, WEIGHT. */
void shmt_ascent_start(const struct shmt_pass *pass);

/* Live: the image, to where all change it. */
void shmt_ascent_share_image(const struct shmt_pass *pass);

/* A sweep over all coordinates, and some over those that may still move, number state->inner of the step; live over mine, else by part 0.
 * The last one leaves u in `scaled`. A step has several of these, so that none takes long. 0; -1: no memory. */
int shmt_ascent_sweep(const struct shmt_pass *pass);

/* What the direction changes: sums GAIN and CHANGE. */
void shmt_ascent_gain(const struct shmt_pass *pass);

/* The image of u, to `product`, and that of the direction: sums CROSS and LENGTHS, by columns. */
void shmt_ascent_image(const struct shmt_pass *pass);

/* u and w after the step: to slope[].curve and to the point that is tried. */
void shmt_ascent_advance(const struct shmt_pass *pass);

/* The losses there; u takes its place. Sums LOSS, UP, DOWN, WEIGHT. */
void shmt_ascent_weigh(const struct shmt_pass *pass);

/* Of one coordinate with the logistic loss (Yu et al. 2011): where s u is best, from s u `before` at the margin m, when the margin grows by
 * `bend` as much as s u does. It is c / (1 + exp(-t)) at the zero of f(t) = t + m + bend (c / (1 + exp(-t)) - before), which grows with t,
 * and so between 0 and c; `before` where a number has come out of range. */
double shmt_ascent_best_of_logistic(double before, double m, double c, double bend);

/* The best step along a direction, at most 1, from these sums; `sum`: of u, before. */
double shmt_ascent_step(const struct shmt_pass *pass, double gain, double change, double cross, double length, double sum);
