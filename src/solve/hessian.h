/* Newton's equations as a matrix, by rows: X' D X / N + L2, from the diagonal on, D the curvatures.
 *
 * Each example adds products of its entries, whose columns are found in its row, to the matrix of its group; then the matrices are added
 * up, as heaps are (heaps.h). By columns (shmt_pass_hessian) each entry's row has to be looked up; that is for where a matrix for each
 * group would be more than the examples' products, and with L1, where few columns are asked for. */
#pragma once

#include "solve/passes.h"

/* Whether the step that comes takes it by rows. */
static inline bool shmt_hessian_by_rows(const struct shmt_pass *pass) {
    return pass->plan->n_matrices > 0 && !pass->state->cycles;
}

/* My groups' matrices. */
void shmt_hessian_add(const struct shmt_pass *pass);

/* `hessian`, my part of its rows, of all groups' matrices. */
void shmt_hessian_sum(const struct shmt_pass *pass);
