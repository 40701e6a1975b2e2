/* Going through a cache: see cache_loops.h. SHMT_PATH is the CPU path that this is compiled for, and undefined for the portable
 * one.
 *
 * The checksum's code is taken into this file, because the library's own is compiled for every machine alone. */
#define XXH_INLINE_ALL
#include "data/cache_loops.h"

#include <xxhash.h>

#ifdef SHMT_PATH
#    define JOINED(name, path)  name##_##path
#    define IN_PATH(name, path) JOINED(name, path)
#    define LOOPS               IN_PATH(SHMT_CACHE_LOOPS, SHMT_PATH)
#else
#    define LOOPS SHMT_CACHE_LOOPS_portable
#endif

#define STRIDE 64 /* elements of an inner loop that the compiler makes vector code of: their number is known */

static uint64_t hash(const void *block, uint64_t bytes) { return XXH3_64bits(block, bytes); }

/* The largest of all x[i] & mask. Of as many lanes as a stride has, so that no vector waits for the one before it. */
static inline uint32_t largest(const uint32_t *x, uint64_t n, uint32_t mask) {
    uint32_t lane[STRIDE] = {0}, most = 0;
    uint64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        for (uint64_t k = 0; k < STRIDE; k++) lane[k] = (x[i + k] & mask) > lane[k] ? x[i + k] & mask : lane[k];
    for (; i < n; i++) most = (x[i] & mask) > most ? x[i] & mask : most;
    for (uint64_t k = 0; k < STRIDE; k++) most = lane[k] > most ? lane[k] : most;
    return most;
}

static bool are_below(const uint32_t *x, uint64_t n, uint32_t limit) { return n == 0 || largest(x, n, UINT32_MAX) < limit; }

/* No exponent of ones. */
static bool are_finite(const uint32_t *x, uint64_t n) { return largest(x, n, 0x7fffffff) < 0x7f800000; }

/* By the highest bits: of numbers below 2^63 a difference has it when it is below 0. SSE2 and AVX2 compare no such numbers. */
static bool do_follow(const uint64_t *start, uint64_t n, uint64_t most) {
    uint64_t bad = start[0] | (most - start[0]), i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        for (uint64_t k = 1; k <= STRIDE; k++) bad |= start[i + k] | (start[i + k] - start[i + k - 1]) | (most - start[i + k]);
    for (; i < n; i++) bad |= start[i + 1] | (start[i + 1] - start[i]) | (most - start[i + 1]);
    return bad >> 63 == 0;
}

static bool is_among(float x, const float *known, uint32_t n_known) {
    bool is = false;
    for (uint32_t c = 0; c < n_known; c++) is |= x == known[c];
    return is;
}

static bool are_among(const float *x, uint64_t n, const float *known, uint32_t n_known) {
    uint64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE) {
        uint32_t is[STRIDE] = {0}, all = 1;
        for (uint32_t c = 0; c < n_known; c++)
            for (uint64_t k = 0; k < STRIDE; k++) is[k] |= x[i + k] == known[c];
        for (uint64_t k = 0; k < STRIDE; k++) all &= is[k];
        if (!all) return false;
    }
    for (; i < n; i++)
        if (!is_among(x[i], known, n_known)) return false;
    return true;
}

extern const struct shmt_cache_loops LOOPS;
const struct shmt_cache_loops LOOPS = {hash, are_below, are_finite, do_follow, are_among};
