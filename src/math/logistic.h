/* The logistic function and the logistic loss, with the same bits on every machine.
 *
 * Called by the logistic model for every example, by generators and by tests. For an example with label y in {-1, +1} and
 * dot product z the margin is m = y * z, and
 *
 *     loss(m)  = log(1 + e^-m) = max(-m, 0) + log1p(t)        with t = e^-|m|, which is in [0, 1] and never overflows
 *     loss'(m) = -1 / (1 + e^m) = -t / (1 + t) for m >= 0, -1 / (1 + t) for m < 0
 *
 * so that the slope with respect to z is y * loss'(m). Everything is made of f32 additions, multiplications, one division
 * and moves of bits: no libm, whose last bits differ from machine to machine. There are no branches, so a loop over these
 * functions becomes vector code, with the same bits as one call at a time.
 *
 * Errors, over all floats (tests/test_math.c measures them): shmt_exp_minus 1 unit in the last place, the others 3. Below
 * 2^-126, where floats lose digits, the unit is 2^-149. -inf, inf and huge margins give their limits; NaN gives NaN. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float shmt_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t shmt_bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* All ones where bit 31 of `bits` is set, else all zeros. Choices are made with such masks, because compilers may not turn a
 * float comparison that could trap into vector code. */
static inline uint32_t shmt_sign_mask(uint32_t bits) { return (uint32_t)((int32_t)bits >> 31); }

/* e^-a for a >= 0: a = n ln 2 - r with |r| <= ln(2) / 2, then 2^-n e^r. The polynomial is the minimax one for the relative
 * error. */
static inline float shmt_exp_minus(float a) {
    const float round = 0x1.8p23f; /* adding it leaves the nearest whole number in the lowest bits */
    const float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;   /* the high part has 12 digits: n * ln2_high is exact */
    const uint32_t bits = shmt_bits_of_float(a), most = 0x42d00000u; /* 104: e^-104 is 0 in f32 */
    const float x = shmt_float_of_bits(bits < most ? bits : most);
    const float shifted = x * 0x1.715476p0f + round;
    const float n = shifted - round;
    const float r = (n * ln2_high - x) + n * ln2_low;
    const float r2 = r * r;
    const float q = (0x1.fffffcp-2f + 0x1.55548ap-3f * r) + r2 * ((0x1.555916p-5f + 0x1.123fc6p-7f * r) + r2 * 0x1.6a1a6cp-10f);
    const float p = 1.0f + (r + r2 * q);
    /* 2^-n in two factors, so that results below 2^-126 are rounded once and right. */
    const uint32_t whole = shmt_bits_of_float(shifted) & 0xff, half = whole >> 1;
    const float e = p * shmt_float_of_bits((127 - half) << 23) * shmt_float_of_bits((127 - (whole - half)) << 23);
    return shmt_float_of_bits(shmt_bits_of_float(e) |
                              shmt_sign_mask(0x7f800000u - bits)); /* NaN, which `most` hid, comes back */
}

/* log(1 + t) for t in [0, 1]. */
static inline float shmt_log1p_unit(float t) {
    float t2 = t * t, t4 = t2 * t2;
    float low = (-0x1.ffffd2p-2f + 0x1.554dfp-2f * t) + t2 * (-0x1.ff26e2p-3f + 0x1.935cap-3f * t);
    float high = (-0x1.3a7a84p-3f + 0x1.b579c8p-4f * t) + t2 * (-0x1.d8633p-5f + 0x1.4b0842p-6f * t);
    return t + t2 * (low + t4 * (high + t4 * -0x1.b2f59ap-9f));
}

/* The loss of a margin into *loss_out; returns its derivative with respect to the margin, in [-1, 0]. */
static inline float shmt_logistic(float margin, float *loss_out) {
    const uint32_t bits = shmt_bits_of_float(margin), wrong = shmt_sign_mask(bits); /* the example is on the wrong side */
    const float t = shmt_exp_minus(shmt_float_of_bits(bits & 0x7fffffff));
    const float q = 1.0f / (1.0f + t), tq = t * q;
    *loss_out = shmt_float_of_bits(bits & 0x7fffffff & wrong) + shmt_log1p_unit(t);
    return -shmt_float_of_bits((shmt_bits_of_float(q) & wrong) | (shmt_bits_of_float(tq) & ~wrong));
}

/* The same for n margins at once, as vector code: margin[k] is replaced by the derivative there, and the loss goes to
 * loss_out[k]; (n) each, which may not overlap. The bits are those of shmt_logistic. */
void shmt_logistic_many(uint32_t n, float *restrict margin, float *restrict loss_out);

/* 1 / (1 + e^-x): the probability that a logistic model with dot product x gives to the positive label. */
static inline float shmt_sigmoid(float x) {
    float loss;
    return -shmt_logistic(-x, &loss);
}

/* log(1 + e^-margin). */
static inline float shmt_logistic_loss(float margin) {
    float loss;
    (void)shmt_logistic(margin, &loss);
    return loss;
}
