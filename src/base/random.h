/* Random numbers as pure functions of what they are for: (seed, purpose, place) in, 64 bits out.
 *
 * There is no generator state, so any worker can compute any number, a run does not depend on who drew first, and nothing needs
 * to be saved to resume. The mixing is SplitMix64's finalizer (Steele, Lea, Flood 2014), applied once per word that goes in.
 * The same numbers on every machine. */
#pragma once

#include <stdint.h>

static inline uint64_t shmt_mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t shmt_hash64(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
    return shmt_mix64(shmt_mix64(shmt_mix64(shmt_mix64(seed) ^ a) ^ b) ^ c);
}

/* 53 random bits as a double in [0, 1). */
static inline double shmt_unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

/* A number below n (n > 0) from 64 random bits; Lemire's multiply-shift, whose bias is below n / 2^64. */
static inline uint64_t shmt_below(uint64_t bits, uint64_t n) { return (uint64_t)(((unsigned __int128)bits * n) >> 64); }
