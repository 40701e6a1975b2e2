/* What newton.c shares with the files that it is cut into: proof.c, method.c, remake.c. */
#pragma once

#include <assert.h>

#include "solve/newton.h"

enum { SHMT_NEWTON_MOST_INNER = 250 }; /* steps of conjugate gradients for one of Newton */

static inline double shmt_newton_sum(const struct shmt_pass *pass, enum shmt_solve_sums which, uint32_t n) {
    const double *of = shmt_solve_sum(pass->memory, pass->round, which);
    double all = 0;
    assert(which != SHMT_SUM_NOTHING); /* which nobody leaves */
    for (uint32_t b = 0; b < n; b++) all += of[b];
    return all;
}

static inline double shmt_newton_by_rows(const struct shmt_pass *pass, enum shmt_solve_sums which) {
    return shmt_newton_sum(pass, which, pass->plan->n_row_blocks);
}

static inline double shmt_newton_by_columns(const struct shmt_pass *pass, enum shmt_solve_sums which) {
    return shmt_newton_sum(pass, which, pass->plan->n_col_blocks);
}

static inline double shmt_newton_objective(const struct shmt_pass *pass, double loss, double penalties) {
    return loss / (double)pass->problem->n + penalties;
}

/* ---- proof.c ---- */

/* The point was scored: what makes its u a dual point. The sums of u are to be 0 there where there is a bias. */
void shmt_newton_balance(const struct shmt_pass *pass, struct shmt_solve_state *s);

/* With L1 the dual point must not have more than l1 along any column: it is made shorter (Gap Safe: Ndiaye et al. 2017). With L2, too,
 * it may have more, which then costs; the better of the two counts. */
void shmt_newton_shorten(const struct shmt_pass *pass, struct shmt_solve_state *s);

/* The objective of the dual point, below the minimum for certain; -INFINITY: nothing is known. Behind SHMT_PHASE_BOUND. */
double shmt_newton_dual(const struct shmt_pass *pass, const struct shmt_solve_state *s);

/* ---- method.c ---- */

/* By what a step costs. Behind SHMT_PHASE_COUNT. */
void shmt_newton_choose_method(const struct shmt_pass *pass, struct shmt_solve_state *s);

/* Dual ascent: whether interior points cost less than what is left of it, by how the gap has just fallen. */
bool shmt_newton_is_too_slow(const struct shmt_pass *pass, const struct shmt_solve_state *s, double before, double gap);

/* The first phase of the step that comes. */
void shmt_newton_begin_step(struct shmt_solve_state *s);

/* ---- remake.c ---- */

/* As shmt_newton_next, of a fit that goes on from what was kept (keep.h), until all is there that it needs. */
void shmt_newton_remake(const struct shmt_pass *pass, struct shmt_solve_state *s);
