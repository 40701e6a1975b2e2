/* The choice of L2, and of whether columns are divided by their scales first, by what a fit does on examples that it has not seen.
 *
 * Candidates are two paths, of the columns as they are and of scaled ones, with L2 from strong to weak: n l2 = 10^3 ... 10^-3. The
 * examples are dealt to parts; for each value of L2 there is a fit without each part that is held out, and the mean loss of the
 * parts by the fits without them is the candidate's. Fits go on from those of the value before, and need a Newton step or two; a
 * path ends when two values in a row are worse than its best. A candidate that is far worse than the best one on the same parts is
 * left before it has been fitted without the others (as in racing: Maron and Moore 1994). Then all examples are fitted with the
 * best candidate.
 *
 * n l2 = 1/C is kept, not l2: the weight of the penalty beside a sum of losses, which is the precision of a prior, does not
 * depend on how many examples are summed. So a choice on a part, or on a sample, is one for all.
 *
 * A column is not divided in memory: to learn w_j s_j on x_j / s_j with l2 is to learn w_j on x_j with l2 s_j^2, and steps by Cholesky
 * or by conjugate gradients with the Hessian's diagonal are the same on both. s_j^2 is the variance of column j divided by the
 * share of rows that have it: of a column that all rows have the variance, of a word that few have the mean of its squares, near
 * enough. So a rare feature is not magnified, a common one with an offset is as if it were centred, and a free bias
 * takes the offset. */
#pragma once

#include "solve/passes.h"

enum { SHMT_CHOICE_STRENGTHS = 7 };

/* L2 of value number `strength` for n examples. */
double shmt_choice_l2(uint32_t strength, uint64_t n);

/* Squares of my columns' scales: sums MOST and LEAST. */
void shmt_choose_scales(const struct shmt_pass *pass);

/* Of the fit that is done, and the point at which the next one begins: weight j. */
double shmt_choose_keep(const struct shmt_pass *pass, uint64_t j);

/* The first candidate. Behind the phase of the scales, if there is one. */
void shmt_choose_begin(const struct shmt_pass *pass, struct shmt_solve_state *s);

/* Notes what the fit that is done does on its part, and finds the one that follows, or that the choice is made. */
void shmt_choose_next(const struct shmt_pass *pass, struct shmt_solve_state *s);

/* Fits of the longest choice. */
uint32_t shmt_choice_most_fits(const struct shmt_problem *p);
