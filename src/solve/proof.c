/* What is proved: a point of the dual problem, which follows from the losses' slopes, and a bound below the minimum. See newton_priv.h. */
#include <float.h>
#include <math.h>

#include "solve/newton_priv.h"
#include "solve/wide.h"

#define IMPOSSIBLE 1e-9 /* a gap below 0 by more of the bound than rounding explains */

double shmt_newton_gap(const struct shmt_solve_state *s) {
    const double gap = s->published - s->dual;
    if (!(gap >= -IMPOSSIBLE * fabs(s->dual))) return INFINITY; /* no bound is above the minimum: something is wrong with one */
    return gap <= 0 ? 0 : s->dual > 0 ? gap / s->dual : INFINITY;
}

void shmt_newton_balance(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->up = s->down = 1;
    s->shift = 0;
    if (pass->problem->loss == SHMT_SOLVE_SOFTMAX) {
        s->shift = shmt_wide_mixture(pass);
        s->size = shmt_newton_by_rows(pass, SHMT_SUM_UP);
        return;
    }
    const double up = shmt_newton_by_rows(pass, SHMT_SUM_UP), down = shmt_newton_by_rows(pass, SHMT_SUM_DOWN);
    s->pull = up - down;
    s->size = up + down;
    s->curve = shmt_newton_by_rows(pass, SHMT_SUM_CURVE);
    if (!pass->problem->bias) return;
    if (pass->problem->loss == SHMT_SOLVE_SQUARED)
        s->shift = s->pull / shmt_newton_by_rows(pass, SHMT_SUM_WEIGHT);
    else if (up > down)
        s->up = down / up;
    else if (down > 0)
        s->down = up / down;
}

void shmt_newton_shorten(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double *of = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MOST);
    double most = 0;
    for (uint32_t b = 0; b < pass->plan->n_col_blocks; b++) most = fmax(most, of[b]);
    s->shorter = most > pass->problem->l1 ? pass->problem->l1 / most : 1;
    s->phase = SHMT_PHASE_BOUND;
}

/* The largest of them. */
static double bias_of(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const double *of = pass->memory->w[s->at] + (uint64_t)pass->plan->of.n_columns * pass->plan->of.n_classes;
    double most = 0;
    for (uint32_t k = 0; k < pass->plan->of.n_classes && pass->problem->bias; k++) most = fmax(most, fabs(of[k]));
    return most;
}

/* What rounding may have added to the bound: to each sum as much as it usually adds to so many terms; and to the sum of u, which is to be
 * 0, so much times the bias. */
static double rounding(const struct shmt_pass *pass, const struct shmt_solve_state *s, double image) {
    const double n = (double)pass->problem->n, b = bias_of(pass, s);
    const double terms = shmt_newton_by_rows(pass, SHMT_SUM_TERMS) / n + 0.5 * image + fabs(b) * s->size / n;
    return DBL_EPSILON * (8 + sqrt(n)) * terms;
}

double shmt_newton_dual(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const struct shmt_problem *p = pass->problem;
    const double image = s->image, conjugates = shmt_newton_by_rows(pass, SHMT_SUM_DUAL);
    const double plain = s->l2 > 0 ? -conjugates / (double)p->n - 0.5 * image : -INFINITY;
    const double found = p->l1 > 0 ? fmax(plain, -shmt_newton_by_rows(pass, SHMT_SUM_SHORT) / (double)p->n) : plain;
    return found - rounding(pass, s, image);
}
