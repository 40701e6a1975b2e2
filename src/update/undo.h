/* Undo: the old bytes of what a seat is changing, kept until the change is complete, so that whoever comes after its death can
 * take back the half that was done. Called by the push kernels (write locked: a unit under its lock) and by a backend's apply
 * phase (a block of floats); restored by the backend, when the process is gone.
 *
 * One word says what is open; it is stored when the old bytes are there, and again when the new ones are. Both are in memory of
 * the store, and have one writer. Death comes between two instructions, so the order in which a process stores is the order
 * that counts: fences for the compiler are enough. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "base/point.h"

/* Words: 0 where nothing is open and nothing is said; else a place in the flat array of the parameters, and how many floats
 * from there on are being changed: 0 of them means that the floats before it are done. */
#define SHMT_UNDO_COUNT_BITS 16

static inline uint64_t shmt_undo_word(uint64_t at, uint64_t n) { return (at + 1) << SHMT_UNDO_COUNT_BITS | n; }
static inline bool shmt_undo_says(uint64_t word) { return word != 0; }
static inline uint64_t shmt_undo_at(uint64_t word) { return (word >> SHMT_UNDO_COUNT_BITS) - 1; }
static inline uint64_t shmt_undo_n(uint64_t word) { return word & ((1u << SHMT_UNDO_COUNT_BITS) - 1); }

struct shmt_undo {
    _Atomic uint64_t *word; /* NULL: nobody would take anything back */
    float *old;             /* (words of a parameter, n) */
    uint64_t first;         /* the place of the span's float 0 in the flat array */
};

/* I change n floats from place `at` of the flat array, and their `planes` further words, which are `plane` floats apart. */
static inline void shmt_undo_open(const struct shmt_undo *undo, uint64_t at, uint64_t n, const float *weight,
                                  const float *state, uint64_t plane, uint32_t planes) {
    if (!undo->word) return;
    memcpy(undo->old, weight, n * sizeof(float));
    for (uint32_t k = 0; k < planes; k++) memcpy(undo->old + (k + 1) * n, state + k * plane, n * sizeof(float));
    fence_compiler();
    SHMT_POINT("undo:kept");
    store_relaxed(undo->word, shmt_undo_word(at, n)); /* relaxed, here and below: read after my death only */
    fence_compiler();
}

/* What was open is complete; `word` says what is to be known from now on. */
static inline void shmt_undo_close(const struct shmt_undo *undo, uint64_t word) {
    if (!undo->word) return;
    fence_compiler();
    store_relaxed(undo->word, word);
    fence_compiler();
}
