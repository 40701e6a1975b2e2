/* The natural logarithm with the same bits on every machine, for what generators compute; libm's last bits differ. */
#pragma once

#include <math.h>

#include "math/logistic.h"

/* ln x for x >= 1: x = 2^k (1 + t). Good to a few units of f32's last place. */
static inline float shmt_natural_log(double x) {
    int k;
    const double mantissa = 2 * frexp(x, &k); /* exact: in [1, 2) */
    return (float)(k - 1) * 0x1.62e43p-1f + shmt_log1p_unit((float)(mantissa - 1));
}
