/* Exact fits: Newton's method, and what takes its place, until the objective of a problem (problem.h) is proved to be near the minimum.
 *
 * In each epoch the Newton equations H p = -g are solved, by Cholesky's factorisation where columns are few and the Hessian is cheap,
 * else by conjugate gradients with the Hessian's diagonal as preconditioner, as near as the step is worth (Lin, Weng and Keerthi
 * 2008; Hsia, Chiang and Lin 2018). The step is halved until the objective falls enough (Armijo).
 *
 * The hinge has a corner, but a smooth dual: a step is an ascent of that (ascent.h), until it turns out to be slow where interior points
 * (interior.h) can be had. With L1 a step is coordinate descent (cycle.h), and near the minimum every other one is by conjugate
 * gradients on the face of the weights that are not 0.
 *
 * The proof is the duality gap P - D of the point and of the dual point u_i = -c_i loss'(z_i); with a bias, u is brought to the sum 0
 * that a dual point must have: by a factor on its larger side (logistic, hinge), or by what a better bias would change (squared).
 *
 * The method is a row of phases that all parts do together (state.h). Everything is summed in a fixed order: all numbers have the same
 * bits however many parts there are. */
#pragma once

#include "solve/passes.h"

/* How often in a row the gap may not have fallen, behind which interior points lead nowhere, and what has no other way ends; and how often
 * the parameters may not be near enough, though their point is. */
enum { SHMT_NEWTON_MOST_IDLE = 60, SHMT_NEWTON_MOST_HALVINGS = 16, SHMT_NEWTON_MOST_UNPROVED = 3 };

/* The first state. `sampled`: a choice of L2 is made from a sample first, whose problem and plan passes have until the state says that
 * it is over (choice.sampled). */
void shmt_newton_begin(const struct shmt_problem *p, bool sampled, struct shmt_solve_state *out);

/* My part of the phase. May be done again by another process: it gives the same. 0; -1: no memory. */
int shmt_newton_work(const struct shmt_pass *pass);

/* Whether a run that is to end ends behind this phase: not where the parameters are written already, or proved. And whether the phase may
 * be left undone then (pass.goes_on, shmt_solve_skip): not while a fit of a choice is kept. */
bool shmt_newton_may_stop(const struct shmt_solve_state *s);
bool shmt_newton_may_skip(const struct shmt_solve_state *s);

/* Behind the phase, when all parts are done: the state that follows. Pure: the same for all. `pass`: as in that phase. */
void shmt_newton_next(const struct shmt_pass *pass, struct shmt_solve_state *out);

/* The state in which the epoch behind one that is over begins. */
void shmt_newton_next_epoch(const struct shmt_solve_state *s, struct shmt_solve_state *out);

/* How far the objective of the parameters may be above the minimum, as a part of it: what is proved. */
double shmt_newton_gap(const struct shmt_solve_state *s);
