/* Sums of outer products, as gradients of weights are: of k examples, each of which has a row of G and a row of X.
 *
 * Called by fully connected layers. On x86-64 processors with fused multiply-add (AVX2) it is small_product.h's loop on packed factors,
 * elsewhere the BLAS: that one sets the sums to zero, reads them again and copies its factors, which for the few examples of a chunk
 * costs as much as the products. Which of the two, and so the bits, depends on the processor alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* c (m, n) = G^T X, or c += G^T X with `add`: G (k, m), X (k, n), k >= 1, all row-major without gaps. Each sum is made in the order of the
 * examples, of up to 256 of them at a time, by one of at most `threads` threads: how many these are changes no bit. */
struct shmt_outer_products {
    const float *g, *x;
    float *c;
    uint32_t k, m, n, threads;
    bool add;
    float *scratch; /* shmt_outer_scratch floats, aligned to 64 */
};

/* Floats of scratch memory for at most k examples; not less for more of them. */
uint64_t shmt_outer_scratch(uint32_t k, uint32_t m);

/* Any thread. Where the BLAS is used, it must be open. */
void shmt_outer_multiply(const struct shmt_outer_products *p);

/* The same, always by the BLAS: what processors without the instructions use. */
void shmt_outer_multiply_by_blas(const struct shmt_outer_products *p);
