/* Going on from what was kept: see newton_priv.h, and keep.h for what that is. */
#include <math.h>

#include "solve/newton_priv.h"

#define ALIKE 1e-6 /* of the objective: by no more another machine comes to another one at the same point */

/* Whether the method that was taken is one of this problem. */
static void take_method(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const uint32_t may_leave = s->may_leave; /* 0: interior points have led nowhere */
    shmt_newton_choose_method(pass, s);
    if ((s->direct && !s->pays) || ((may_leave || s->interior) && !s->may_leave)) s->strange = 1;
    s->may_leave = may_leave;
    if (s->interior) s->ascends = 0;
}

/* The point was scored once more: it is what it was. */
static void take_again(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = shmt_newton_by_rows(pass, SHMT_SUM_LOSS),
                 primal = shmt_newton_objective(pass, loss, shmt_newton_by_columns(pass, SHMT_SUM_PENALTY));
    if (!(fabs(primal - s->primal) <= ALIKE * fabs(s->primal))) s->strange = 1;
    s->loss = loss / (double)pass->problem->n;
    if (s->interior) {
        s->weight = shmt_newton_by_rows(pass, SHMT_SUM_WEIGHT);
        s->product = s->weight > 0 ? shmt_newton_by_rows(pass, SHMT_SUM_PRODUCTS) / (2 * s->weight) : 0;
        s->wish = shmt_newton_by_rows(pass, SHMT_SUM_WISH);
    }
    shmt_newton_balance(pass, s);
}

/* What follows when there are columns, or none are needed. */
static uint32_t turned(const struct shmt_solve_state *s) {
    if (s->choice.scaled) return SHMT_PHASE_SCALES;
    return s->ascends || s->interior ? SHMT_PHASE_FIND : SHMT_PHASE_SCORE;
}

static void end_remaking(struct shmt_solve_state *s) {
    s->remakes = s->stepped = 0;
    shmt_newton_begin_step(s);
}

void shmt_newton_remake(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    switch (s->phase) {
        case SHMT_PHASE_COUNT:
            take_method(pass, s);
            s->phase = pass->plan->turns ? SHMT_PHASE_PLACE : turned(s);
            return;
        case SHMT_PHASE_PLACE:
            s->phase = SHMT_PHASE_TURN;
            return;
        case SHMT_PHASE_TURN:
            s->phase = turned(s);
            return;
        case SHMT_PHASE_SCALES:
            s->phase = SHMT_PHASE_SCORE;
            return;
        case SHMT_PHASE_FIND:
            if (shmt_newton_by_rows(pass, SHMT_SUM_STRANGE) > 0) s->strange = 1;
            s->phase = SHMT_PHASE_SCORE;
            if (s->interior) return;
            take_again(pass, s);
            end_remaking(s);
            return;
        case SHMT_PHASE_SCORE:
            take_again(pass, s);
            s->phase = SHMT_PHASE_SLOPE;
            return;
        default:
            end_remaking(s);
            return;
    }
}
