/* The floor: loops that read memory and do nothing else. The fastest of them tells what the memory gives.
 *
 * Which one that is depends on the machine: wide loads where the CPU is the limit, one load per cache line where it is not. */
#include <time.h>

#include "bench.h"

uint64_t bench_thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef uint64_t wide __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) uint64_t read_wide(const void *from, uint64_t bytes) {
    const wide *at = from;
    wide sum[4] = {{0}};
    for (uint64_t i = 0; i + 4 <= bytes / sizeof(wide); i += 4)
        for (int k = 0; k < 4; k++) sum[k] ^= at[i + (uint64_t)k];
    return (sum[0] ^ sum[1] ^ sum[2] ^ sum[3])[0];
}

static uint64_t read_portable(const void *from, uint64_t bytes) { return read_wide(from, bytes); }

/* One word per cache line: all lines travel, the CPU does hardly anything. */
static uint64_t read_lines(const void *from, uint64_t bytes) {
    const uint64_t *at = from;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / 8; i += 8) sum ^= at[i];
    return sum;
}

/* The same, asking early and in four places at once, which keeps more lines on their way. */
static uint64_t read_four_places(const void *from, uint64_t bytes) {
    const uint64_t *at = from, quarter = bytes / 4 / 64 * 8;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < quarter; i += 8)
        for (uint64_t k = 0; k < 4; k++) {
            __builtin_prefetch(at + k * quarter + i + 128);
            sum ^= at[k * quarter + i];
        }
    return sum;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static uint64_t read_avx2(const void *from, uint64_t bytes) { return read_wide(from, bytes); }
#endif

typedef uint64_t reader(const void *from, uint64_t bytes);

static double time_of(reader *read, const struct bench_bytes *b) {
    const uint64_t from = bench_thread_ns();
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++)
        if (b->at[i]) sum ^= read(b->at[i], b->bytes[i]);
    volatile uint64_t sink = sum;
    (void)sink;
    return (double)(bench_thread_ns() - from);
}

double bench_floor_ns(const struct bench_bytes *b) {
    reader *const readers[] = {read_portable, read_lines, read_four_places};
    double best = time_of(readers[0], b);
    for (int i = 1; i < 3; i++) {
        const double ns = time_of(readers[i], b);
        if (ns < best) best = ns;
    }
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        const double ns = time_of(read_avx2, b);
        if (ns < best) best = ns;
    }
#endif
    return best;
}
