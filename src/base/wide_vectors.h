/* For static functions that are compiled for wider vectors, too, and chosen by what the processor has. Without fused
 * multiplications, so bits are the same. Sanitizers start too late for the choice. */
#pragma once

#include "base/sanitizer.h"

#if defined __x86_64__ && !SHMT_UNDER_TSAN && !SHMT_UNDER_ASAN && !defined __clang__
#    define SHMT_FOR_WIDE_VECTORS __attribute__((target_clones("default", "avx2")))
#else
#    define SHMT_FOR_WIDE_VECTORS
#endif
