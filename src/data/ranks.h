/* Ranks in steps, and numbers in disorder: what a generator of very many features needs in the place of tables of them all.
 *
 * A *step* is a stretch of neighbouring ranks: one rank each for the first SHMT_RANK_STEPS, from there on SHMT_RANK_STEPS in
 * each doubling of the rank. So all ranks of a step are alike to a quarter of a thousandth, and 2^27 of them are 65,536 steps.
 *
 * A *scatter* is a permutation of 0 .. n - 1 that looks random and can be taken back; it needs no memory. It mixes numbers of
 * so many bits as n has, by operations each of which has an inverse, and repeats that while the result is not below n.
 *
 * Called by planted.c. Pure functions of whole numbers: the same on every machine. */
#pragma once

#include <stdint.h>

#include "base/random.h"

#define SHMT_RANK_BITS  12
#define SHMT_RANK_STEPS (1u << SHMT_RANK_BITS)

/* How many doublings of SHMT_RANK_STEPS lie below the rank. */
static inline uint32_t shmt_rank_doublings(uint32_t rank) {
    return rank < SHMT_RANK_STEPS ? 0 : 32 - SHMT_RANK_BITS - (uint32_t)__builtin_clz(rank);
}

/* The step that a rank lies in; ascending. */
static inline uint32_t shmt_step_of_rank(uint32_t rank) {
    const uint32_t doublings = shmt_rank_doublings(rank);
    if (doublings == 0) return rank;
    return doublings * SHMT_RANK_STEPS + ((rank >> (doublings - 1)) - SHMT_RANK_STEPS);
}

/* The first rank of a step. */
static inline uint32_t shmt_rank_of_step(uint32_t step) {
    const uint32_t doublings = step / SHMT_RANK_STEPS;
    if (doublings == 0) return step;
    return (SHMT_RANK_STEPS + step % SHMT_RANK_STEPS) << (doublings - 1);
}

struct shmt_scatter {
    uint32_t n, mask, half; /* half: of the bits */
    uint32_t add, times[2], back[2];
};

/* n: 1 to 2^31. */
static inline void shmt_scatter_make(uint32_t n, uint64_t random, struct shmt_scatter *out) {
    uint32_t bits = 1;
    while (bits < 31 && (n - 1) >> bits) bits++;
    *out = (struct shmt_scatter){.n = n, .mask = (uint32_t)((UINT64_C(1) << bits) - 1), .half = (bits + 1) / 2};
    out->add = (uint32_t)shmt_mix64(random);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t x = (uint32_t)shmt_mix64(random + 1 + i) | 1;
        uint32_t inverse = x; /* right in 3 bits; each step of Newton's doubles them */
        for (int k = 0; k < 4; k++) inverse *= 2 - x * inverse;
        out->times[i] = x;
        out->back[i] = inverse;
    }
}

static inline uint32_t shmt_scatter_at(const struct shmt_scatter *s, uint32_t x) {
    do {
        x = (x * s->times[0] + s->add) & s->mask;
        x ^= x >> s->half;
        x = x * s->times[1] & s->mask;
        x ^= x >> s->half;
    } while (x >= s->n);
    return x;
}

/* The x that it takes there. */
static inline uint32_t shmt_scatter_back(const struct shmt_scatter *s, uint32_t x) {
    do {
        x ^= x >> s->half;
        x = x * s->back[1] & s->mask;
        x ^= x >> s->half;
        x = (x - s->add) * s->back[0] & s->mask;
    } while (x >= s->n);
    return x;
}
