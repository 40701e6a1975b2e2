/* Parameters with the number of their updates, in one word of 64 bits each (option count-lost): the count in the upper half, the
 * bits of the f32 in the lower one. Kernels that count: counted_priv.h. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

static inline uint32_t shmt_counted_updates(uint64_t word) { return (uint32_t)(word >> 32); }

static inline float shmt_counted_value(uint64_t word) {
    const uint32_t bits = (uint32_t)word;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The updates of all n parameters together. Called where nobody pushes. */
static inline uint64_t shmt_counted_sum(const _Atomic uint64_t *word, uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += shmt_counted_updates(load_relaxed(&word[i])); /* all have met, or have ended */
    return sum;
}

/* The floats that were updated take the values of their words. Called when all workers have ended. */
static inline void shmt_counted_settle(const _Atomic uint64_t *word, float *weight, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t both = load_relaxed(&word[i]);
        if (shmt_counted_updates(both) > 0) weight[i] = shmt_counted_value(both);
    }
}
