/* Finding the loops of a CPU path: see path.h. Compiled once. */
#include "update/path.h"

extern const struct shmt_path SHMT_LOOPS_portable;
#ifdef SHMT_HAS_AVX2
extern const struct shmt_path SHMT_LOOPS_avx2;
#endif
#ifdef SHMT_HAS_AVX512
extern const struct shmt_path SHMT_LOOPS_avx512;
#endif

const struct shmt_path *shmt_path_of(uint32_t cpu) {
#ifdef SHMT_HAS_AVX2
    if (cpu == SHMT_CPU_AVX2 && shmt_cpu_has(cpu)) return &SHMT_LOOPS_avx2;
#endif
#ifdef SHMT_HAS_AVX512
    if (cpu == SHMT_CPU_AVX512 && shmt_cpu_has(cpu)) return &SHMT_LOOPS_avx512;
#endif
    (void)cpu;
    return &SHMT_LOOPS_portable;
}
