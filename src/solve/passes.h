/* Passes over the data: by rows, with one number for each example, and by columns, with one for each parameter. Each part does its
 * blocks, and leaves the sums of each block. Arithmetic is in double, in a fixed order. */
#pragma once

#include <math.h>

#include "base/random.h"
#include "solve/memory.h"
#include "solve/problem.h"

/* A phase at work: what is fitted, where it stands, and which part is mine. */
struct shmt_pass {
    const struct shmt_problem *problem;
    const struct shmt_solve_plan *plan;
    const struct shmt_solve_memory *memory;
    const struct shmt_solve_state *state;
    uint64_t round; /* of the fit: whose sums these are */
    uint32_t part, n_parts;
    bool (*goes_on)(void *arg); /* called now and then within a phase; false: it is to be left as it is. NULL: it never is */
    void *goes_on_arg;
};

/* Says that I am at work. False: leave the phase, whatever is missing: nobody will use what it has done (state.h). */
static inline bool shmt_pass_goes_on(const struct shmt_pass *pass) {
    return !pass->goes_on || pass->goes_on(pass->goes_on_arg);
}

/* L2 of column j. */
static inline double shmt_pass_l2(const struct shmt_pass *pass, uint64_t j) {
    return pass->state->l2 * (pass->state->choice.scaled ? pass->memory->scale[j] : 1);
}

/* As the parameter will be: infinite where it is too large for one, and then no point. */
static inline double shmt_pass_rounded(double w) { return (double)(float)w; }

/* Whether example i is held out from the fit: of a choice. */
static inline bool shmt_pass_is_held(const struct shmt_pass *pass, uint64_t i) {
    const struct shmt_choice *c = &pass->state->choice;
    return c->open && shmt_below(shmt_mix64(pass->problem->seed + i), pass->problem->n_parts) == c->part;
}

/* c_i; 0 while it is held out. */
static inline double shmt_pass_weight(const struct shmt_pass *pass, uint64_t i) {
    return shmt_pass_is_held(pass, i) ? 0 : shmt_problem_weight(pass->problem, i);
}

/* With L1: whether weight j may change in a step of coordinate descent; the others are 0, and stay so. */
static inline bool shmt_pass_is_active(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    return m->w[pass->state->at][j] != 0 || fabs(m->gradient[j]) >= pass->problem->l1;
}

/* ---- by rows ---- */

/* What the Hessian would cost: sums LENGTH, DISORDER. */
void shmt_pass_lengths(const struct shmt_pass *pass);

/* Losses at the point `w`, u_i and curvatures: sums LOSS, UP, DOWN, WEIGHT, HELD, HEAVY. */
void shmt_pass_score(const struct shmt_pass *pass, const double *w);

/* Losses alone, of the parameters as they are published: sum LOSS. */
void shmt_pass_verify(const struct shmt_pass *pass);

/* Conjugates of the losses at the dual point: sum DUAL. */
void shmt_pass_dual(const struct shmt_pass *pass);

/* scaled_i = curve_i * (x_i . search): sum SCALED. */
void shmt_pass_scaled(const struct shmt_pass *pass, const double *search);

/* ---- by columns ---- */

/* Gradient at `w`, the diagonal of the Hessian, and the image of the dual point: sum IMAGE. */
void shmt_pass_slope(const struct shmt_pass *pass, const double *w);

/* product = H search: sum PQ. */
void shmt_pass_product(const struct shmt_pass *pass, const double *search);

/* The Hessian, from the diagonal on: my part of its rows. */
void shmt_pass_hessian(const struct shmt_pass *pass);
