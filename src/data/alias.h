/* Drawing a number with given probabilities in constant time: the alias method (Walker 1977, built as by Vose 1991).
 *
 * Called by the generator of sparse examples. The table is made of additions, multiplications and divisions in a fixed order,
 * so the same weights give the same numbers on every machine. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Slot i is drawn with probability 1 / n; then number i with probability keep / 2^32, and `other` otherwise. */
struct shmt_alias_slot {
    uint32_t keep, self, other;
};

/* Fills slot_out (n) for weights weight (n), all above 0; `self` is i. SHMTRAIN_E_MEMORY. */
int shmt_alias_make(const double *weight, uint32_t n, struct shmt_alias_slot *slot_out, struct shmt_error *e);

/* A number from 64 random bits. */
static inline uint32_t shmt_alias_draw(const struct shmt_alias_slot *slot, uint32_t n, uint64_t bits) {
    const struct shmt_alias_slot *s = &slot[(bits >> 32) * n >> 32];
    return (uint32_t)bits < s->keep ? s->self : s->other;
}
