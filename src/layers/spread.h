/* Mean and standard deviation of numbers that may lie far from 0: sums are those of differences to the first one. For scales on which
 * numbers go into networks and come out of them. */
#pragma once

#include <math.h>
#include <stdbool.h>

/* {0} to begin with. */
struct shmt_spread {
    bool has_first;
    double first, weights, sum, square; /* sum, square: of (number - first), times weights */
};

/* What a number is measured from. */
static inline double shmt_spread_from(struct shmt_spread *s, double x) {
    if (!s->has_first) *s = (struct shmt_spread){.has_first = true, .first = x};
    return s->first;
}

static inline void shmt_spread_add(struct shmt_spread *s, double x, double weight) {
    const double off = x - shmt_spread_from(s, x);
    s->weights += weight;
    s->sum += weight * off;
    s->square += weight * off * off;
}

static inline double shmt_spread_mean(const struct shmt_spread *s) {
    return s->weights > 0 ? s->first + s->sum / s->weights : 0;
}

/* Not below what floats of the mean's size can tell apart. 0: all numbers are the same. */
static inline double shmt_spread_deviation(const struct shmt_spread *s) {
    const double off = s->weights > 0 ? s->sum / s->weights : 0;
    const double variance = s->weights > 0 ? s->square / s->weights - off * off : 0;
    return variance > 0 ? fmax(sqrt(variance), fabs(s->first + off) * 0x1p-24) : 0;
}

/* What numbers are divided by; 1 where that has no place among floats, and where they are all the same. */
static inline float shmt_spread_divisor(double deviation) {
    const float divisor = (float)deviation;
    return isnormal(divisor) && isnormal(1 / divisor) ? divisor : 1;
}
