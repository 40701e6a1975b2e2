/* The search for numbers that are none: see finite.h. */
#include "math/finite.h"

#include <string.h>

enum { BLOCK = 64 };

/* All ones in the exponent: an infinity or NaN. Looked at as bits, which holds under every floating-point option of a
 * compiler. */
static uint32_t is_broken(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

bool shmt_all_finite(const float *x, uint64_t n) {
    uint64_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK) {
        uint32_t broken = 0;
        for (int k = 0; k < BLOCK; k++) broken |= is_broken(x[i + k]);
        if (broken) return false;
    }
    for (; i < n; i++)
        if (is_broken(x[i])) return false;
    return true;
}
