/* Linear equations with a symmetric, positive definite matrix. */
#pragma once

#include <stdint.h>

/* Row j, when all rows before are there, of the upper triangular r with r'r = a. a: (n, n), row-major, of which the
 * part on and above the diagonal is read; r: (n, n). A pivot
 * that rounding has made too small is taken as large as rounding may be: r is then that of a matrix nearby. Sums have a fixed order: the
 * same bits everywhere. */
void shmt_cholesky_row(uint64_t n, const double *a, double *r, uint64_t j);

/* Solves r'r x = -b. */
void shmt_cholesky_solve(uint64_t n, const double *r, const double *b, double *x);
