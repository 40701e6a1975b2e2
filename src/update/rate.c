/* Learning rates: see rate.h. */
#include "update/rate.h"

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

/* From `from` to `to` while x goes from 0 to 1. */
static double half_cosine(double from, double to, double x) { return to + (from - to) * (1 + cos_pi(x)) / 2; }

#define CYCLE_PEAK 0.3 /* of the run */
#define CYCLE_RISE 25.0
#define CYCLE_FALL 1e4

static double one_cycle(double base, double done) {
    const double first = base / CYCLE_RISE, last = first / CYCLE_FALL;
    if (done < CYCLE_PEAK) return half_cosine(first, base, done / CYCLE_PEAK);
    return half_cosine(base, last, fmin(1, (done - CYCLE_PEAK) / (1 - CYCLE_PEAK)));
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
        case SHMT_RATE_ONE_CYCLE:
            return one_cycle(base, epochs_done / rate->epochs);
        default:
            return base;
    }
}

const char *shmt_rate_name(const struct shmt_rate *rate) {
    static const char *const NAMES[] = {"constant", "inverse", "step", "cosine", "one-cycle"};
    return NAMES[rate->kind];
}

float shmt_rate_at(const struct shmt_rate *rate, double epochs_done) {
    const double now = decayed(rate, epochs_done);
    return (float)(epochs_done < rate->warmup ? now * (epochs_done / rate->warmup) : now);
}
