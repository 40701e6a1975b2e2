/* Learning rates: see rate.h. */
#include "store/rate.h"

#include <math.h>
#include <stdint.h>

/* x^n. */
static double whole_power(double x, uint64_t n) {
    double result = 1;
    for (double factor = x; n > 0; n /= 2) {
        if (n % 2 == 1) result *= factor;
        factor *= factor;
    }
    return result;
}

/* x^power by square roots and multiplications, which IEEE 754 rounds alike on every machine; libm's pow does not have to.
 * The digits of the power say which of x^8, x^4, ..., x, x^(1/2), x^(1/4), ... are multiplied; a power of 0.5 is one square
 * root. */
static double power_of(double x, double power) {
    const uint64_t whole = (uint64_t)power; /* at most SHMT_RATE_MAX_POWER */
    double part = power - (double)whole, result = whole_power(x, whole), factor = x;
    while (part > 0) {
        part *= 2;
        factor = sqrt(factor);
        if (part >= 1) result *= factor;
        part -= floor(part);
    }
    return result;
}

/* cos(pi x) for x in [0, 1], by additions and multiplications: Taylor's series about the nearest zero of the sine; the last
 * term is below 2^-53. */
static double cos_pi(double x) {
    const double pi = 3.14159265358979323846;
    const double at = pi * (x - 0.5), square = at * at; /* cos(pi x) = -sin(at), |at| <= pi / 2 */
    double sum = 0;
    for (int n = 25; n >= 3; n -= 2) sum = (1 + sum) * -square / (double)(n * (n - 1));
    return -(at * (1 + sum));
}

static double decayed(const struct shmt_rate *rate, double epochs_done) {
    const double base = (double)rate->base;
    switch (rate->kind) {
        case SHMT_RATE_INVERSE:
            return base / power_of(1 + epochs_done / rate->every, (double)rate->power);
        case SHMT_RATE_STEP:
            return base * whole_power(rate->factor, (uint64_t)(epochs_done / rate->every));
        case SHMT_RATE_COSINE:
            return base * (1 + cos_pi(fmin(1, epochs_done / rate->epochs))) / 2;
        default:
            return base;
    }
}

const char *shmt_rate_name(const struct shmt_rate *rate) {
    static const char *const NAMES[] = {"constant", "inverse", "step", "cosine"};
    return NAMES[rate->kind];
}

float shmt_rate_at(const struct shmt_rate *rate, double epochs_done) {
    const double now = decayed(rate, epochs_done);
    return (float)(epochs_done < rate->warmup ? now * (epochs_done / rate->warmup) : now);
}
