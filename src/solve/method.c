/* Which steps a fit takes: chosen by what they cost, and left for others where they lead nowhere. See newton_priv.h. */
#include <math.h>

#include "solve/ascent.h"
#include "solve/newton_priv.h"

/* With L1 every other step is one on a face, from when one has promised no more than this part of the objective, ... */
#define FACES_FROM   2e-3
#define FACES_IDLE   2    /* ... or the gap has not fallen in so many epochs */
#define ROUGH_GAP    1e-4 /* steps lead to floats while the proof is not so near, ... */
#define ROUGH_FROM   1e-2 /* ... and Newton's before has promised so much of the objective */
#define LEAST_PART   1e-3 /* what steps of conjugate gradients leave of the residual, between these two */
#define MOST_PART    0.3
#define CHOICE_PART  0.1 /* ... of a choice, at least */
#define SCATTER_COST 0.8 /* ns, for two entries of a row: their product, added to the Hessian by columns, ... */
#define ROW_COST     0.5 /* ... by rows, ... */
#define RUN_COST     0.2 /* ... and of rows whose columns follow one another; */
#define FACTOR_COST  0.3 /* multiplications of Cholesky */
#define PASS_COST    2.5 /* ns: an entry read by rows and by columns */
#define VISIT_COST   4   /* ... or visited by dual ascent */
#define INNER_PRICE  20  /* interior points: steps, and passes of each */
#define INNER_PASSES 4
#define SWEEP_COST   4 /* ... or in a sweep of coordinate descent */
#define MOST_SWEEPS  50
#define INNER_STEPS  300 /* those of conjugate gradients that a step by the Hessian may cost as much as */

static double pair_cost(const struct shmt_solve_plan *plan) {
    if (plan->n_matrices == 0 || plan->of.has_l1) return SCATTER_COST;
    return plan->of.n_nonzeros == plan->of.n * plan->of.n_columns ? RUN_COST : ROW_COST;
}

/* By what a step costs. For the hinge and with L1 the Hessian saves steps, too; else conjugate gradients come first, as long as they
 * are cheaper. */
void shmt_newton_choose_method(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double all = (double)pass->plan->of.n_columns + (double)pass->plan->of.bias;
    const double nonzeros = (double)pass->plan->of.n_nonzeros;
    const double hessian =
        pair_cost(pass->plan) * shmt_newton_by_rows(pass, SHMT_SUM_LENGTH) + FACTOR_COST * all * all * all / 3;
    const double steps = hessian / (PASS_COST * nonzeros); /* of conjugate gradients, for as much */
    const bool hinge = pass->problem->loss == SHMT_SOLVE_HINGE, pays = pass->plan->direct && steps <= INNER_STEPS;
    s->ascending = shmt_newton_by_rows(pass, SHMT_SUM_DISORDER) == 0;
    s->cycles = pass->problem->l1 > 0;
    s->pays = pays;
    s->most_sweeps = pays ? 1 + (uint32_t)(steps * PASS_COST / SWEEP_COST) : MOST_SWEEPS;
    s->live = pass->problem->live != SHMT_LIVE_NO;
    s->ascends = hinge || s->live;
    s->may_leave = hinge && pays && !s->live;
    s->price = INNER_PRICE * (hessian / 2 + INNER_PASSES * PASS_COST * nonzeros) / (VISIT_COST * nonzeros);
    s->most_inner = pays ? 1 + (uint32_t)steps : SHMT_NEWTON_MOST_INNER;
}

/* Dual ascent: the gap falls by about the same factor with each visit of all coordinates, and what is left of these is more than
 * interior points cost. */
bool shmt_newton_is_too_slow(const struct shmt_pass *pass, const struct shmt_solve_state *s, double before, double gap) {
    const double wanted = pass->problem->tolerance * fabs(s->dual),
                 visits = shmt_ascent_sweeps(pass->problem) * shmt_ascent_visits(s);
    if (s->epoch == 0 || !(gap > wanted)) return false;
    return !(gap < before) || visits * log(gap / wanted) > s->price * log(before / gap);
}

/* How much of the distance from a model's minimum a step may leave: near the minimum a step is worth more of them. */
static double part_left(const struct shmt_solve_state *s) {
    const double gap = s->dual > 0 ? (s->primal - s->dual) / s->dual : 1;
    return fmin(MOST_PART, fmax(s->choice.open ? CHOICE_PART : LEAST_PART, sqrt(fmax(gap, 0))));
}

/* A point of floats has a gradient of rounding's own, which the bound squares and divides by L2: only where much else is left does that not
 * count. Of dual ascent the bound does not look at the point. */
static bool is_rough(const struct shmt_solve_state *s) {
    const bool far = !(s->primal - s->dual <= ROUGH_GAP * fabs(s->dual)), all = !s->choice.open && !s->warms;
    return all && far && s->idle == 0 && !s->interior && (s->ascends || -s->along > ROUGH_FROM * s->primal);
}

void shmt_newton_begin_step(struct shmt_solve_state *s) {
    if (s->leaves) {
        s->leaves = s->ascends = 0;
        s->interior = s->direct = 1;
        s->phase = SHMT_PHASE_START;
        return;
    }
    if (s->returns) {
        s->returns = s->interior = s->direct = s->may_leave = s->idle = 0; /* may_leave: for good */
        s->ascends = s->resumes = 1;
        s->phase = SHMT_PHASE_START;
        return;
    }
    s->halved = s->inner = s->corrects = 0;
    s->step = 1;
    s->part = part_left(s);
    s->rough = is_rough(s);
    const bool is_close = -s->along <= FACES_FROM * s->primal;
    s->face = s->cycles && (is_close || s->idle >= FACES_IDLE) && s->epoch % 2 == 1;
    s->phase = s->live       ? SHMT_PHASE_SHARE_IMAGE
               : s->ascends  ? SHMT_PHASE_ASCEND
               : s->interior ? SHMT_PHASE_AIM
               : s->face     ? SHMT_PHASE_BEGIN
               : s->direct   ? SHMT_PHASE_HESSIAN
               : s->cycles   ? SHMT_PHASE_CYCLE
                             : SHMT_PHASE_BEGIN;
}
