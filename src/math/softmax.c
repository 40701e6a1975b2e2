/* Softmax of one example: see softmax.h. */
#include "math/softmax.h"

#include "math/logistic.h"

/* x = 2^e (1 + t): log x = e log 2 + log(1 + t). */
float shmt_log_above_one(float x) {
    const float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f; /* the high part has 12 digits: e * ln2_high is exact */
    const uint32_t bits = shmt_bits_of_float(x);
    const float e = (float)(int32_t)((bits >> 23 & 0xff) - 127);
    const float t = shmt_float_of_bits((bits & 0x7fffff) | 0x3f800000) - 1;
    const float nothing = x - x; /* NaN where x is */
    return e * ln2_high + (shmt_log1p_unit(t) + e * ln2_low) + nothing;
}

float shmt_softmax(uint32_t n, float *z, uint32_t y) {
    uint32_t largest = 0;
    for (uint32_t c = 1; c < n; c++) largest = z[c] > z[largest] ? c : largest;
    const float most = z[largest], behind = most - z[y];
    double rest = 0;
    for (uint32_t c = 0; c < n; c++) z[c] = shmt_exp_minus(most - z[c]);
    for (uint32_t c = 0; c < n; c++) rest += c == largest ? 0 : (double)z[c];
    const float share = (float)(1 / (1 + rest));
    for (uint32_t c = 0; c < n; c++) z[c] *= share;
    const float logarithm = rest <= 1 ? shmt_log1p_unit((float)rest) : shmt_log_above_one((float)(1 + rest));
    return logarithm + behind;
}
