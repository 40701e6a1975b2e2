/* bfloat16: the upper half of a float, so the same range and 8 bits of precision. */
#pragma once

#include <stdint.h>
#include <string.h>

/* To nearest, ties to even. What is no number stays none, what is larger than any bfloat16 becomes infinite, and what is a bfloat16
 * stays as it is. */
static inline uint16_t shmt_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t upper = bits >> 16, rounded = (bits + 0x7fff + (upper & 1)) >> 16;
    const uint32_t no_number = upper | (uint32_t)((upper & 0x7f) == 0) << 6; /* without the lower bits it would be infinite */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? no_number : rounded);
}

static inline float shmt_of_bfloat16(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
