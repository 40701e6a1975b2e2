/* Products of small matrices that lie in the caches: they skip the copies that a BLAS makes of its factors, which cost as much as such
 * a product itself.
 *
 * Called by convolutions and outer_products.h, many times in a row. On x86-64 processors with fused multiply-add (AVX2) it is a loop
 * of ours, elsewhere the BLAS. Which of them, and so the bits, depends on the processor alone, as with a BLAS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SHMT_PANEL = 16 }; /* columns of one panel */

/* c (m, n) = a b, or c += a b with `add`; n a multiple of 8. Element (i, l) of a is at a[i * a_row + l * a_step]. Columns of b go in
 * panels of SHMT_PANEL: element (l, j) is at b[j / 16 * b_panel + l * b_row + j % 16]; an ordinary matrix has b_panel 16. */
struct shmt_small_product {
    const float *a, *b;
    float *c;
    uint64_t a_row, a_step, b_panel, b_row, c_row;
    uint32_t m, n, k;
    bool add;
};

/* Whether this processor has the loop. */
bool shmt_small_has_loop(void);

/* k >= 1. Any thread. Where the BLAS is used, it must be open. */
void shmt_small_multiply(const struct shmt_small_product *p);

/* The same, always by the BLAS: what processors without the instructions use. */
void shmt_small_multiply_by_blas(const struct shmt_small_product *p);
