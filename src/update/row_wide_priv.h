/* The dot product with all eight lanes in one register, for CPU paths with AVX2 or more; included by row_priv.h.
 *
 * The weights of whole eights are loaded one by one: gathers are no faster on AMD's Zen 4, and slow on those of Intel's
 * processors that had to be mended against leaks through them. What is saved is half of the arithmetic, and the branches at a
 * row's end. */
#pragma once

#include <immintrin.h>

#include "update/row_priv.h"

SHMT_INLINE __m256 shmt_eight_products(const float *w, const uint32_t *id, const float *value, struct shmt_how how) {
    const shmt_four low = shmt_four_weights(w, id, how), high = shmt_four_weights(w, id + 4, how);
    const __m256 all = _mm256_insertf128_ps(_mm256_castps128_ps256((__m128)low), (__m128)high, 1);
    return how.values ? _mm256_mul_ps(all, _mm256_loadu_ps(value)) : all;
}

/* The products of the last `rest` (below 8) elements of a row of at least 8, in lanes 0 .. rest - 1; 0 in the others. */
#ifdef __AVX512VL__
/* By masks: what is masked out is neither loaded nor computed. Each element of a gather is loaded whole, as live.h asks. Ids go
 * beyond 2^31, and 32-bit indices of a gather have a sign: so they are widened first. */
SHMT_INLINE __m256 shmt_rest_products(const float *w, struct shmt_row row, uint64_t rest, struct shmt_how how) {
    const uint64_t at = row.n - rest;
    const __mmask8 mask = (__mmask8)((1u << rest) - 1);
    const __m256i id = _mm256_maskz_loadu_epi32(mask, row.id + at);
    const __m512i wide = _mm512_cvtepu32_epi64(id);
    const __m256 all = _mm512_mask_i64gather_ps(_mm256_setzero_ps(), mask, wide, w, sizeof *w);
    return how.values ? _mm256_maskz_mul_ps(mask, all, _mm256_maskz_loadu_ps(mask, row.value + at)) : all;
}
#else
/* The last eight are computed, turned by as many lanes as there are elements left, and what the loop has had is dropped. */
SHMT_INLINE __m256 shmt_rest_products(const float *w, struct shmt_row row, uint64_t rest, struct shmt_how how) {
    static const int32_t FROM[16] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
    static const int32_t KEPT[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint64_t at = row.n - 8;
    const __m256 all = shmt_eight_products(w, row.id + at, how.values ? row.value + at : NULL, how);
    const __m256i from = _mm256_loadu_si256((const __m256i *)(const void *)(FROM + 8 - rest));
    const __m256i kept = _mm256_loadu_si256((const __m256i *)(const void *)(KEPT + 8 - rest));
    return _mm256_and_ps(_mm256_permutevar8x32_ps(all, from), _mm256_castsi256_ps(kept));
}
#endif

/* Of a row of at least 8 elements. Lanes begin at 0 and never become -0, so adding zeros changes no bit. */
SHMT_INLINE float shmt_row_dot_by_eight(const float *w, struct shmt_row row, struct shmt_how how) {
    __m256 lanes = _mm256_setzero_ps();
    const uint64_t rest = row.n % 8, whole = row.n - rest;
    for (uint64_t k = 0; k < whole; k += 8)
        lanes = _mm256_add_ps(lanes, shmt_eight_products(w, row.id + k, how.values ? row.value + k : NULL, how));
    lanes = _mm256_add_ps(lanes, shmt_rest_products(w, row, rest, how));
    return shmt_lanes_sum((shmt_four)_mm256_castps256_ps128(lanes), (shmt_four)_mm256_extractf128_ps(lanes, 1));
}
