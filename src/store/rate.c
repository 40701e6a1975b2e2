/* Learning rates: see rate.h. */
#include "store/rate.h"

#include <math.h>

/* x^power by square roots and multiplications, which IEEE 754 rounds alike on every machine; libm's pow does not have to.
 * The digits of the power say which of x^8, x^4, ..., x, x^(1/2), x^(1/4), ... are multiplied; a power of 0.5 is one square
 * root. */
static double power_of(double x, double power) {
    const double whole = floor(power);
    double result = 1, factor = x;
    for (double left = whole; left >= 1; left = floor(left / 2)) {
        if (fmod(left, 2) == 1) result *= factor;
        factor *= factor;
    }
    factor = x;
    for (double left = power - whole; left > 0; left -= floor(left)) {
        left *= 2;
        factor = sqrt(factor);
        if (left >= 1) result *= factor;
    }
    return result;
}

float shmt_rate_at(const struct shmt_rate *rate, double epochs_done) {
    if (rate->kind == SHMT_RATE_CONSTANT) return rate->base;
    return (float)((double)rate->base / power_of(1 + epochs_done, (double)rate->power));
}
