/* Sums of non-negative numbers that do not depend on the order of adding: in fixed point, 64 bits before the point and 64
 * behind it. A double's sum changes with the number of parts that a file is cut into; a rate derived from it would, too.
 *
 * Adding saturates at 2^64, which keeps it associative: what is that large is only known to be large. Plain words, so that a
 * sum can lie in shared memory. */
#pragma once

#include <stdint.h>

struct shmt_sum {
    uint64_t whole, fraction;
};

static inline void shmt_sum_join(struct shmt_sum *sum, struct shmt_sum other) {
    const uint64_t fraction = sum->fraction + other.fraction;
    const uint64_t carry = fraction < other.fraction;
    uint64_t whole;
    if (__builtin_add_overflow(sum->whole, other.whole, &whole) || __builtin_add_overflow(whole, carry, &whole)) {
        *sum = (struct shmt_sum){UINT64_MAX, UINT64_MAX};
    } else {
        *sum = (struct shmt_sum){whole, fraction};
    }
}

/* Adds x >= 0, cut to a multiple of 2^-64; infinity and NaN saturate. */
static inline void shmt_sum_add(struct shmt_sum *sum, double x) {
    struct shmt_sum term = {UINT64_MAX, UINT64_MAX};
    if (x < 0x1p64) {
        term.whole = (uint64_t)x;
        term.fraction = (uint64_t)((x - (double)term.whole) * 0x1p64);
    }
    shmt_sum_join(sum, term);
}

static inline double shmt_sum_value(struct shmt_sum sum) { return (double)sum.whole + (double)sum.fraction * 0x1p-64; }
