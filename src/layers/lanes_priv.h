/* Eight floats at once, for loops that compilers do not turn into vector code by themselves: with gcc's vectors, which become whatever
 * the processor has. Functions that use them are static, and compiled for wide vectors, too (base/wide_vectors.h). */
#pragma once

#include <stdint.h>
#include <string.h>

enum { SHMT_LANES = 8 };

typedef float shmt_lanes __attribute__((vector_size(32)));
typedef int32_t shmt_masks __attribute__((vector_size(32))); /* all ones or zeros, as comparisons of lanes give */
typedef uint16_t shmt_shorts __attribute__((vector_size(16)));

/* The same at any place of an array of floats. Not memcpy: gcc 12 makes two halves of it, and a register that is loaded whole then waits
 * for both. */
typedef float shmt_lanes_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
static inline void shmt_lanes_load(const float *from, shmt_lanes *to) {
    *to = *(const shmt_lanes_anywhere *)(const void *)from;
}
static inline void shmt_lanes_store(const shmt_lanes *from, float *to) { *(shmt_lanes_anywhere *)(void *)to = *from; }

/* Before a loop over a few lanes: they stay in registers only where it is unrolled. */
#define SHMT_UNROLLED _Pragma("GCC unroll 6")
