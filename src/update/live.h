/* Reading and writing floats that other workers may be updating at the same time.
 *
 * RACE(hogwild): the elements that one reads may be of different moments, and of two updates at one time one may be lost.
 * What is asked for is that each f32 is loaded and stored whole, once, and only where the program says so: no torn value, no
 * value read twice, no store that was not written. A volatile access gives just that, with one plain move on x86 and arm64,
 * as in the READ_ONCE and WRITE_ONCE of Linux. Relaxed atomics say the same in the words of C11, but gcc moves atomic floats
 * through integer registers; a build for ThreadSanitizer uses them, so that it knows which races are meant. Kernels move four
 * floats in a row by one volatile vector (words_priv.h), each of them whole: docs/memory-model.md says on what that relies. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/sanitizer.h"

#if SHMT_UNDER_TSAN
_Static_assert(sizeof(_Atomic float) == sizeof(float), "parameters are seen as floats and as atomic floats");
static inline float shmt_live_load(const float *at) { return load_relaxed((const _Atomic float *)at); }
static inline void shmt_live_store(float *at, float value) { store_relaxed((_Atomic float *)at, value); }
#else
static inline float shmt_live_load(const float *at) { return *(const volatile float *)at; }
static inline void shmt_live_store(float *at, float value) { *(volatile float *)at = value; }
#endif

static inline void shmt_live_read(float *out, const float *from, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) out[i] = shmt_live_load(from + i);
}
