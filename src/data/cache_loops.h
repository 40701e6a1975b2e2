/* The loops that go through a cache when it is checked: its checksums and what its elements may be. Only for cache.c and
 * cache_check.c, which take those of the best path.
 *
 * cache_loops.c is compiled once for each CPU path that is worth it (base/cpu.h): the portable one, and avx2, where a block is
 * checked about as fast as memory gives it. There are whole numbers and comparisons alone, so all say the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHMT_CACHE_MOST_AMONG 16 /* labels that `are_among` compares with */

/* hash: XXH3 64. are_below: all are. are_finite: all floats, by their bits. do_follow: start[0] <= start[1] <= .. start[n] <=
 * most, which is below 2^63. are_among: each equals one of known[0 .. n_known), which are 1 to _MOST_AMONG. */
struct shmt_cache_loops {
    uint64_t (*hash)(const void *block, uint64_t bytes);
    bool (*are_below)(const uint32_t *x, uint64_t n, uint32_t limit);
    bool (*are_finite)(const uint32_t *x, uint64_t n);
    bool (*do_follow)(const uint64_t *start, uint64_t n, uint64_t most);
    bool (*are_among)(const float *x, uint64_t n, const float *known, uint32_t n_known);
};

/* Those of a path; where it has none of its own, the portable ones. */
const struct shmt_cache_loops *shmt_cache_loops_of(unsigned cpu);
