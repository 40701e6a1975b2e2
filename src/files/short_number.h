/* Numbers of few digits to floats: what both readers of numbers (number.c, number_in_line.h) share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHMT_DIGITS_MAX 19 /* that fit 64 bits, whatever they are */

/* True when x, within an error of a few units in its last place, rounds to one float only. Normal range of float only. */
static inline bool shmt_rounds_surely(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t from_middle = (int64_t)(bits & 0x1fffffff) - 0x10000000;
    return from_middle > 8 || from_middle < -8;
}

/* 10^-n, each within half a unit of its last place. */
static const double SHMT_TENTH[SHMT_DIGITS_MAX + 1] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,
                                                       1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19};

/* w / 10^n_behind, of at most 19 digits. False: not sure how to round. The product's error is below two units in the last place
 * of a double. */
static inline bool shmt_short_value(uint64_t w, uint64_t n_behind, float *out) {
    const double x = (double)w * SHMT_TENTH[n_behind];
    if (w != 0 && !shmt_rounds_surely(x)) return false;
    *out = (float)x;
    return true;
}
