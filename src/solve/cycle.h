/* A step with L1: coordinate descent on the quadratic model of the smooth part of the objective,
 *
 *     g . d  +  d' H d / 2  +  l1 |w + d|        H = X' D X / N + l2 I
 *
 * one coordinate after the other, each to its minimum, which is a soft threshold, so that weights become zeros exactly (newGLMNET:
 * Yuan, Ho and Lin 2012). Columns whose weight is 0 and whose gradient is below l1 take no part: the next step looks at them anew.
 * Where the Hessian was made, the model's derivatives are kept up with by its rows, else by the columns of the data.
 * One worker does it; all share the passes around it. Part of newton.c's machine: CYCLE, and then MOVE as for other directions. */
#pragma once

#include "solve/passes.h"

/* The step, to direction[0]; by part 0. Sum MORE: without the Hessian state->most_sweeps were not enough, so that it is worth its price.
 * 0; -1: no memory. */
int shmt_cycle(const struct shmt_pass *pass);
