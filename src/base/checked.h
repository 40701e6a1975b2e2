/* Arithmetic on sizes that says when it does not fit: every size that comes from a file, a command line or another process goes
 * through these. Each returns true when the result is exact, and only then sets *out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool shmt_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool shmt_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }

/* `a` rounded up to a multiple of `to`, a power of two. */
static inline bool shmt_round_up_u64(uint64_t a, uint64_t to, uint64_t *out) {
    uint64_t sum;
    if (!shmt_add_u64(a, to - 1, &sum)) return false;
    *out = sum & ~(to - 1);
    return true;
}

static inline uint64_t shmt_ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
static inline uint64_t shmt_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t shmt_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
