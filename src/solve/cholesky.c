/* Cholesky's factorisation, row by row: see cholesky.h. Inner loops add one row to another, which compilers turn into vectors
 * without another order of sums. */
#include "solve/cholesky.h"

#include <float.h>
#include <math.h>
#include <string.h>

void shmt_cholesky_row(uint64_t n, const double *a, double *r, uint64_t j) {
    double *row = r + j * n;
    memcpy(row + j, a + j * n + j, (n - j) * sizeof *row);
    const double least = (double)n * DBL_EPSILON * fmax(fabs(row[j]), DBL_MIN / DBL_EPSILON);
    for (uint64_t i = 0; i < j; i++) {
        const double *above = r + i * n;
        const double factor = above[j];
        if (factor == 0) continue;
        for (uint64_t k = j; k < n; k++) row[k] -= factor * above[k];
    }
    const double pivot = sqrt(row[j] > least ? row[j] : least);
    row[j] = pivot;
    for (uint64_t k = j + 1; k < n; k++) row[k] /= pivot;
}

void shmt_cholesky_solve(uint64_t n, const double *r, const double *b, double *x) {
    for (uint64_t j = 0; j < n; j++) x[j] = -b[j];
    for (uint64_t j = 0; j < n; j++) { /* r' y = -b */
        const double *row = r + j * n;
        x[j] /= row[j];
        for (uint64_t k = j + 1; k < n; k++) x[k] -= row[k] * x[j];
    }
    for (uint64_t j = n; j-- > 0;) { /* r x = y */
        const double *row = r + j * n;
        double sum = x[j];
        for (uint64_t k = j + 1; k < n; k++) sum -= row[k] * x[k];
        x[j] = sum / row[j];
    }
}
