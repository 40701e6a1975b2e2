/* The logistic loss in doubles: see logistic_doubles.h. */
#include "math/logistic_doubles.h"

#include <math.h>
#include <string.h>

#include "base/wide_vectors.h"

static inline double double_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* All ones where bit 63 is set. As a subtraction, since few processors shift signed vectors of 64 bits. */
static inline uint64_t sign_mask(uint64_t bits) { return -(bits >> 63); }

/* a where the mask is all ones, else b. */
static inline double choose(uint64_t mask, double a, double b) {
    return double_of_bits((bits_of_double(a) & mask) | (bits_of_double(b) & ~mask));
}

/* e^-a for a >= 0: a = n ln 2 - r with |r| <= ln(2) / 2, then 2^-n e^r by Taylor's series, whose rest is 2e-16. */
static inline double exp_minus(double a) {
    const double round = 0x1.8p52; /* adding it leaves the nearest whole number in the lowest bits */
    const double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40; /* n * ln2_high is exact */
    const double most = 708;
    const uint64_t bits = bits_of_double(a);
    const double x = choose(sign_mask(bits_of_double(most) - bits), most, a);
    const double shifted = x * 0x1.71547652b82fep+0 + round, n = shifted - round;
    const double r = (n * ln2_high - x) + n * ln2_low;
    static const double OF[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0};
    double p = OF[0];
    for (int k = 1; k < 12; k++) p = p * r + OF[k];
    const double e = 1 + r * p;
    const double scaled = e * double_of_bits((1023 - (bits_of_double(shifted) & 0x7ff)) << 52);
    return double_of_bits(bits_of_double(scaled) |
                          sign_mask(bits_of_double(INFINITY) - bits)); /* NaN, which `most` hid, comes back */
}

/* atanh(s) / s for s^2 <= 1/9, by its series. */
static inline double atanh_over(double s2) {
    double p = 1.0 / 35;
    for (int k = 16; k >= 0; k--) p = p * s2 + 1.0 / (2 * k + 1);
    return p;
}

/* log(1 + t) for t in [0, 1]. */
static inline double log1p_unit(double t) {
    const double s = t / (2 + t);
    return 2 * s * atanh_over(s * s);
}

/* x log x + (1 - x) log(1 - x) for x in [0, 1/2]. For the first one x = 2^e m with m within 2/3 .. 4/3; subnormal ones count as 2^-1022,
 * and 0 log 0 is 0 so. Both series in one loop, which gcc can unroll. */
static inline double entropy(double x) {
    const double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40, tiny = 0x1p-1022;
    const double least = choose(sign_mask(bits_of_double(x - tiny)), tiny, x);
    const uint64_t bits = bits_of_double(least), lift = 0x3fe5555555555555; /* 2/3 */
    const uint64_t biased = (bits - lift + (UINT64_C(1023) << 52)) >> 52;   /* 1023 + e */
    const double e = double_of_bits(biased | bits_of_double(0x1p52)) - (0x1p52 + 1023);
    const double m = double_of_bits(bits - ((biased - 1023) << 52)), s = (m - 1) / (m + 1), t = x / (2 - x);
    double of_s = 1.0 / 35, of_t = 1.0 / 35;
    for (int k = 16; k >= 0; k--) {
        of_s = of_s * (s * s) + 1.0 / (2 * k + 1);
        of_t = of_t * (t * t) + 1.0 / (2 * k + 1);
    }
    return x * (e * ln2_high + (e * ln2_low + 2 * s * of_s)) - 2 * (1 - x) * t * of_t;
}

SHMT_FOR_WIDE_VECTORS static void logistic(uint32_t n, const double *restrict margin, double *restrict loss_out,
                                           double *restrict fall_out, double *restrict bend_out) {
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t bits = bits_of_double(margin[k]), wrong = sign_mask(bits); /* the example is on the wrong side */
        const double size = double_of_bits(bits & INT64_MAX), t = exp_minus(size), r = 1 / (1 + t);
        loss_out[k] = double_of_bits(bits_of_double(size) & wrong) + log1p_unit(t);
        fall_out[k] = choose(wrong, r, t * r);
        bend_out[k] = t * r * r;
    }
}

SHMT_FOR_WIDE_VECTORS static void entropies(uint32_t n, const double *restrict q, double *restrict out) {
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t above = sign_mask(bits_of_double(0.5 - q[k]));
        out[k] = entropy(choose(above, 1 - q[k], q[k])); /* 1 - q is exact there */
    }
}

/* What is compiled several times is found by a resolver, which a library would show to all. */
void shmt_logistic_doubles(uint32_t n, const double *restrict margin, double *restrict loss_out, double *restrict fall_out,
                           double *restrict bend_out) {
    logistic(n, margin, loss_out, fall_out, bend_out);
}

void shmt_entropy_doubles(uint32_t n, const double *restrict q, double *restrict out) { entropies(n, q, out); }
