/* CPU paths: the inner loops are compiled several times, for instruction sets that not every machine has, and one compilation
 * is taken for a run.
 *
 * All paths give the same bits (update/kernels.h says how sums are made, and no compilation fuses multiplications with
 * additions), so which one is taken is a matter of time alone. Asked by `api`, which puts the choice into the spec, so that all
 * workers of a run take the same; the loops of a path: update/path.h. No state: the machine is asked each time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum shmt_cpu {
    SHMT_CPU_PORTABLE, /* what the compiler makes for every machine of the architecture: SSE2 on x86-64, NEON on arm64 */
    SHMT_CPU_AVX2,
    SHMT_CPU_AVX512, /* F, BW, DQ and VL: vectors of 32 bytes, and masks for what is left of a row */
    SHMT_CPU_NEON,   /* on arm64, where it is the same as portable: every arm64 machine has NEON */
    SHMT_N_CPUS
};

/* "portable", "avx2", "avx512", "neon". Of a number below SHMT_N_CPUS. */
const char *shmt_cpu_name(enum shmt_cpu cpu);

/* Whether this program has the path, and the processor and its operating system what it needs. False for numbers that are
 * none. */
bool shmt_cpu_has(unsigned cpu);

/* The fastest one there is, by measurement (docs/performance.md). avx512 is taken only when it is named: it is no faster than
 * avx2 where it was measured, and other processors gather slowly, or lower their clock for it. */
enum shmt_cpu shmt_cpu_best(void);

/* The name of a path, or "auto" for the best one. `given_as` is how the user wrote the option. Errors: _USAGE: no such path, or
 * not here; the sentence says which there are. */
int shmt_cpu_parse(const char *given_as, const char *value, enum shmt_cpu *out, struct shmt_error *e);
