/* The logistic loss over many margins at once: see logistic.h. */
#include "math/logistic.h"

void shmt_logistic_many(uint32_t n, float *restrict margin, float *restrict loss_out) {
    /* A count that is visibly a multiple of four lets gcc make vector code at -O2 already. */
    const uint32_t whole = n & ~3u;
    for (uint32_t k = 0; k < whole; k++) margin[k] = shmt_logistic(margin[k], &loss_out[k]);
    for (uint32_t k = whole; k < n; k++) margin[k] = shmt_logistic(margin[k], &loss_out[k]);
}
