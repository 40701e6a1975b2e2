/* What is kept of a fit at the end of an epoch, so that another run can go on from there with the same bits: some numbers of its state, the
 * point, and of dual ascent u, of interior points a and e. All else is made again from these and the data: columns, scales, squares,
 * losses, slopes. That takes the phases COUNT, PLACE, TURN, and as needed SCALES, FIND, SCORE, SLOPE of newton.c's machine.
 *
 * A fit that is to be kept has room for it behind its memory: all parts copy theirs when an epoch is over, while nothing changes. */
#pragma once

#include "solve/passes.h"

/* The numbers. `scaled` .. `choice_loss`: of a choice of L2, or of a fit without one (scaled: that was asked for). The others: as in
 * struct shmt_solve_state. */
struct shmt_kept_fit {
    uint32_t chosen; /* 1: L2 was, as value number `strength`, after so many fits */
    uint32_t scaled, strength, fits;
    uint32_t direct, interior, may_leave, leaves, returns, idle, unproved, halvings;
    uint32_t exhausted; /* 1: no step comes nearer */
    double choice_loss;
    double primal, dual, best, gap, stuck, published, nearer, small, along;
};

/* What has room, by offsets. */
struct shmt_keep_plan {
    uint64_t over_off, state_off, point_off, dual_off, inner_off, bytes;
};

struct shmt_keep {
    struct shmt_solve_state *over;  /* the state at the end of the last epoch, by part 0 */
    struct shmt_solve_state *state; /* ... and the one that was copied, with what follows */
    double *point;                  /* (m), softmax: with n_classes numbers of each */
    double *dual;                   /* (n) u; NULL: the problem has no dual ascent */
    struct shmt_interior *inner;    /* (n) NULL: it has no interior points */
};

/* Pure. */
void shmt_keep_plan(const struct shmt_solve_plan *plan, struct shmt_keep_plan *out);
void shmt_keep_at(const struct shmt_solve_plan *plan, const struct shmt_keep_plan *keep, void *base, struct shmt_keep *out);

/* My part of what the state (SHMT_PHASE_OVER) has; the state itself by part 0. May be done again. */
void shmt_keep_copy(const struct shmt_pass *pass, const struct shmt_keep *to);

/* The numbers of a state. */
void shmt_keep_numbers(const struct shmt_solve_state *s, struct shmt_kept_fit *out);

/* The first state of a fit that goes on in epoch `epoch` (from 1) with these; w[0], slope[].pull and inner[0] are as they were kept. */
void shmt_keep_begin(const struct shmt_problem *p, const struct shmt_kept_fit *kept, uint32_t epoch,
                     struct shmt_solve_state *out);

/* What is proved, as shmt_newton_gap. */
double shmt_keep_gap(const struct shmt_kept_fit *kept);

/* The work of SHMT_PHASE_FIND: squares of my rows, and whether what was kept of each example is possible: sum STRANGE has how many are not.
 * Dual ascent: sums LOSS, UP, DOWN, WEIGHT, CURVE as in its steps. */
void shmt_keep_find(const struct shmt_pass *pass);
