/* Are all parameters still numbers? Asked at the end of an epoch and before saving. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True when x[0 .. n) holds neither infinities nor NaN. Reads at the speed of memory; n = 0 is true. */
bool shmt_all_finite(const float *x, uint64_t n);
