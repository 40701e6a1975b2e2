/* Loops that read memory, write it or jump in it, and do nothing else: see stream.h. The fastest tells what the memory gives.
 *
 * Which one that is depends on the machine: wide loads where the CPU is the limit, one load per cache line where it is not. */
#include "bench/floors/stream.h"

#include <math.h>
#include <string.h>
#include <time.h>

uint64_t shmt_thread_ns(void) {
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

static double time_of(reader *read, const struct shmt_ranges *b) {
    const uint64_t from = shmt_thread_ns();
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++)
        if (b->at[i]) sum ^= read(b->at[i], b->bytes[i]);
    volatile uint64_t sink = sum;
    (void)sink;
    return (double)(shmt_thread_ns() - from);
}

double shmt_stream_ns(const struct shmt_ranges *b) {
    reader *const readers[] = {read_portable, read_lines, read_four_places};
    double best = INFINITY;
    for (int i = 0; i < 3; i++) best = fmin(best, time_of(readers[i], b));
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) best = fmin(best, time_of(read_avx2, b));
#endif
    return best;
}

/* ---- writing ---- */

static void write_wide(void *to, uint64_t bytes, unsigned char byte) {
    wide *at = to, value;
    memset(&value, byte, sizeof value);
    for (uint64_t i = 0; i + 4 <= bytes / sizeof(wide); i += 4)
        for (int k = 0; k < 4; k++) at[i + (uint64_t)k] = value;
}

double shmt_write_ns(void *at, uint64_t bytes) {
    volatile unsigned char last;
    const uint64_t from = shmt_thread_ns();
    memset(at, 1, bytes); /* past the caches, where the C library thinks that better */
    last = ((volatile unsigned char *)at)[bytes / 2];
    const uint64_t between = shmt_thread_ns();
    write_wide(at, bytes, 2);
    last = ((volatile unsigned char *)at)[bytes / 2];
    (void)last;
    return fmin((double)(between - from), (double)(shmt_thread_ns() - between));
}

/* ---- jumping ---- */

double shmt_random_ns(const void *at, uint64_t bytes, uint64_t n) {
    const uint64_t *word = at, lines = bytes / 64, from = shmt_thread_ns();
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = i * 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
        sum ^= word[(uint64_t)(((unsigned __int128)x * lines) >> 64) * 8];
    }
    volatile uint64_t sink = sum;
    (void)sink;
    return (double)(shmt_thread_ns() - from) / (double)n;
}

/* ---- weights of sparse examples ---- */

enum { DATA_AHEAD = 8 }; /* examples, as the kernels ask for theirs */

static void ask_for_example(const struct shmtrain_data *x, const uint32_t *order, uint64_t k) {
    if (k >= x->n_examples) return;
    const uint64_t from = x->start[order[k]], to = x->start[order[k] + 1];
    for (uint64_t i = from; i < to; i += 16) { /* a line */
        __builtin_prefetch(x->id + i, 0, 2);
        __builtin_prefetch(x->value + i, 0, 2);
    }
}

static void ask_for_weights(const struct shmtrain_data *x, const uint32_t *order, const float *weight, uint64_t k) {
    if (k >= x->n_examples) return;
    for (uint64_t i = x->start[order[k]]; i < x->start[order[k] + 1]; i++) __builtin_prefetch(weight + x->id[i]);
}

/* Sums that do not wait for one another. */
static float sum_of_weights(const float *weight, const uint32_t *id, uint64_t n) {
    float a = 0, b = 0, c = 0, d = 0;
    uint64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        a += weight[id[j]];
        b += weight[id[j + 1]];
        c += weight[id[j + 2]];
        d += weight[id[j + 3]];
    }
    for (; j < n; j++) a += weight[id[j]];
    return (a + b) + (c + d);
}

/* `distance`: examples between asking for weights and reading them; 0: without asking. */
static double lines_at_ns(const struct shmtrain_data *x, const uint32_t *order, float *weight, uint32_t distance) {
    const uint64_t from = shmt_thread_ns();
    static volatile float one = 1; /* so that no compiler leaves out the stores */
    const float same = one;
    float sum = 0;
    for (uint64_t k = 0; k < x->n_examples; k++) {
        ask_for_example(x, order, k + DATA_AHEAD);
        if (distance > 0) ask_for_weights(x, order, weight, k + distance);
        const uint64_t i = order[k], n = x->start[i + 1] - x->start[i];
        const uint32_t *id = x->id + x->start[i];
        sum += sum_of_weights(weight, id, n);
        for (uint64_t j = 0; j < n; j++) weight[id[j]] *= same;
    }
    volatile float sink = sum;
    (void)sink;
    return (double)(shmt_thread_ns() - from);
}

double shmt_lines_ns(const struct shmtrain_data *x, const uint32_t *order, float *weight) {
    double best = INFINITY;
    for (uint32_t distance = 0; distance <= 4; distance = distance ? 2 * distance : 1)
        best = fmin(best, lines_at_ns(x, order, weight, distance));
    return best;
}
