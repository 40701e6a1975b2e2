/* Which CPU paths there are: see cpu.h. */
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>

static const char *const NAMES[SHMT_N_CPUS] = {"portable", "avx2", "avx512", "neon"};

const char *shmt_cpu_name(enum shmt_cpu cpu) { return NAMES[cpu]; }

/* The compiler's builtin asks the processor, and whether the operating system saves the registers. SHMT_HAS_...: configure has
 * found that the compiler can make the path. */
bool shmt_cpu_has(unsigned cpu) {
    switch (cpu) {
        case SHMT_CPU_PORTABLE:
            return true;
#ifdef SHMT_HAS_AVX2
        case SHMT_CPU_AVX2:
            return __builtin_cpu_supports("avx2");
#endif
#ifdef SHMT_HAS_AVX512
        case SHMT_CPU_AVX512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
#ifdef __aarch64__
        case SHMT_CPU_NEON:
            return true;
#endif
        default:
            return false;
    }
}

enum shmt_cpu shmt_cpu_best(void) {
    if (shmt_cpu_has(SHMT_CPU_AVX2)) return SHMT_CPU_AVX2;
    return shmt_cpu_has(SHMT_CPU_NEON) ? SHMT_CPU_NEON : SHMT_CPU_PORTABLE;
}

/* "auto, portable, avx2 or avx512" */
static void list_paths(char *out, size_t bytes) {
    unsigned last = 0;
    size_t used = (size_t)snprintf(out, bytes, "auto");
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        if (shmt_cpu_has(cpu)) last = cpu;
    for (unsigned cpu = 0; cpu < SHMT_N_CPUS && used < bytes; cpu++)
        if (shmt_cpu_has(cpu))
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", cpu == last ? " or " : ", ", NAMES[cpu]);
}

int shmt_cpu_parse(const char *given_as, const char *value, enum shmt_cpu *out, struct shmt_error *e) {
    char there[64];
    unsigned cpu = 0;
    while (cpu < SHMT_N_CPUS && strcmp(value, NAMES[cpu]) != 0) cpu++;
    if (strcmp(value, "auto") == 0) cpu = shmt_cpu_best();
    if (shmt_cpu_has(cpu)) {
        *out = (enum shmt_cpu)cpu;
        return 0;
    }
    list_paths(there, sizeof there);
    if (cpu < SHMT_N_CPUS)
        return shmt_refuse(e, "%s %s: this machine or this build does not have this path; use %s", given_as, value, there);
    return shmt_refuse(e, "%s %.60s: expected %s", given_as, value[0] ? value : "\"\"", there);
}
