/* Linear equations with a symmetric, positive definite matrix. */
#ifndef SHMT_SOLVE_CHOLESKY_H
#define SHMT_SOLVE_CHOLESKY_H

#include <stdint.h>

/* Solves a x = -b; a: (n, n), row-major, of which the part on and above the diagonal is read; r: (n, n) for its factor. A
 * pivot that rounding has made too small is taken as large as rounding may be: x is then that of a matrix nearby. Sums have a
 * fixed order: the same bits everywhere. */
void shmt_cholesky_solve(uint64_t n, const double *a, const double *b, double *r, double *x);

#endif
