/* Learning rates: see rate.h. */
#include "store/rate.h"

#include <math.h>
#include <stdint.h>

/* x^power by square roots and multiplications, which IEEE 754 rounds alike on every machine; libm's pow does not have to.
 * The digits of the power say which of x^8, x^4, ..., x, x^(1/2), x^(1/4), ... are multiplied; a power of 0.5 is one square
 * root. */
static double power_of(double x, double power) {
    uint32_t whole = (uint32_t)power; /* at most SHMT_RATE_MAX_POWER */
    double part = power - whole, result = 1, factor = x;
    for (; whole > 0; whole /= 2) {
        if (whole % 2 == 1) result *= factor;
        factor *= factor;
    }
    factor = x;
    while (part > 0) {
        part *= 2;
        factor = sqrt(factor);
        if (part >= 1) result *= factor;
        part -= floor(part);
    }
    return result;
}

float shmt_rate_at(const struct shmt_rate *rate, double epochs_done) {
    if (rate->kind == SHMT_RATE_CONSTANT) return rate->base;
    return (float)((double)rate->base / power_of(1 + epochs_done, (double)rate->power));
}
