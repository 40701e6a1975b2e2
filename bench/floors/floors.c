/* The machine at its best: see floors.h. */
#include "bench/floors/floors.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/floors/stream.h"
#include "sync/host.h"
#include "base/random.h"
#include "math/blas.h"

#define HOLD_NS 50000

typedef double task(const struct shmt_floors *f, uint32_t rank); /* a helper's nanoseconds */

/* The helpers' results come back in it. */
struct shmt_floors {
    struct shmt_meeting meeting;
    _Alignas(128) _Atomic uint32_t ball;
    _Alignas(128) uint32_t n;
    task *work;
    uint32_t square;                  /* rows of matrices */
    const struct shmtrain_data *data; /* of products */
    bool sleeping;
    unsigned char *memory[3]; /* of one helper, of two, of more; each takes its part on its own node */
    struct shmt_floor_sizes sizes;
    double alone_ns, together_ns[SHMT_MOST_HELPERS];
};

struct shmt_floors *shmt_floors_make(const struct shmt_floor_sizes *sizes) {
    struct shmt_floors *f = shmt_measure_shared(sizeof *f);
    f->sizes = *sizes;
    for (int i = 0; i < 3; i++) f->memory[i] = shmt_measure_shared_later(sizes->bytes);
    return f;
}

void shmt_floors_free(struct shmt_floors *f) {
    for (int i = 0; i < 3; i++) shmt_measure_unshare(f->memory[i], f->sizes.bytes);
    shmt_measure_unshare(f, sizeof *f);
}

static void run(struct shmt_floors *f, uint32_t n, task *work, void (*body)(void *arg, uint32_t rank)) {
    memset(&f->meeting, 0, sizeof f->meeting);
    store_relaxed(&f->ball, 0); /* relaxed: before the fork */
    f->n = n;
    f->work = work;
    shmt_helpers_run(n, body, f);
}

static void alone_body(void *arg, uint32_t rank) {
    struct shmt_floors *f = arg;
    f->alone_ns = f->work(f, rank);
}

static double alone(struct shmt_floors *f, task *work) {
    run(f, 1, work, alone_body);
    return f->alone_ns;
}

static void at_once_body(void *arg, uint32_t rank) {
    struct shmt_floors *f = arg;
    (void)f->work(f, rank); /* warm: pages, page tables, clock speed */
    shmt_meet_all(&f->meeting, rank, f->n);
    f->together_ns[rank] = f->work(f, rank);
}

static double slowest_ns(const struct shmt_floors *f) {
    double most = 0;
    for (uint32_t i = 0; i < f->n; i++) most = fmax(most, f->together_ns[i]);
    return most;
}

static double at_once(struct shmt_floors *f, uint32_t n, task *work) {
    run(f, n, work, at_once_body);
    return slowest_ns(f);
}

/* ---- memory ---- */

/* In whole pages: loops read and write vectors where they are aligned. */
static uint64_t part_bytes(const struct shmt_floors *f) { return f->sizes.bytes / f->n / 4096 * 4096; }

static unsigned char *part_of(const struct shmt_floors *f, uint32_t rank) {
    return f->memory[f->n < 3 ? f->n - 1 : 2] + rank * part_bytes(f);
}

static double read_part(const struct shmt_floors *f, uint32_t rank) {
    const struct shmt_ranges b = {.at = {part_of(f, rank)}, .bytes = {part_bytes(f)}};
    return shmt_stream_ns(&b);
}

static double write_part(const struct shmt_floors *f, uint32_t rank) { return shmt_write_ns(part_of(f, rank), part_bytes(f)); }

double shmt_floor_read(struct shmt_floors *f, uint32_t n) { return at_once(f, n, read_part); }
double shmt_floor_write(struct shmt_floors *f, uint32_t n) { return at_once(f, n, write_part); }

/* ---- lines at random ---- */

static double random_ns(const struct shmt_floors *f, uint32_t rank) {
    (void)read_part(f, rank); /* warm: all pages are there */
    return shmt_random_ns(f->memory[0], f->sizes.bytes, f->sizes.jumps);
}

double shmt_floor_random(struct shmt_floors *f) { return alone(f, random_ns); }

/* Whether most of this process's own memory that is at hand is in huge pages: said in KiB. */
static bool is_huge(uint64_t bytes) {
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    if (!file) return false;
    while (fgets(line, sizeof line, file) && sscanf(line, "AnonHugePages: %llu", &kib) != 1) continue;
    fclose(file);
    return kib * 1024 >= bytes / 2;
}

/* In memory of its own: whether the system makes huge pages for shared memory, too, is another matter. */
static double random_huge_ns(const struct shmt_floors *f, uint32_t rank) {
    (void)rank;
    unsigned char *at = mmap(NULL, f->sizes.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || madvise(at, f->sizes.bytes, MADV_HUGEPAGE) != 0) return NAN;
    memset(at, 1, f->sizes.bytes);
    return is_huge(f->sizes.bytes) ? shmt_random_ns(at, f->sizes.bytes, f->sizes.jumps) : (double)NAN;
}

double shmt_floor_random_huge(struct shmt_floors *f) { return alone(f, random_huge_ns); }

/* ---- two that share nothing ---- */

static double compute(const struct shmt_floors *f, uint32_t rank) {
    const uint64_t from = shmt_thread_ns(), n = f->sizes.multiplications;
    uint64_t x = rank;
    for (uint64_t i = 0; i < n; i++) x = shmt_mix64(x);
    volatile uint64_t sink = x;
    (void)sink;
    return (double)(shmt_thread_ns() - from);
}

static void factor_body(void *arg, uint32_t rank) {
    struct shmt_floors *f = arg;
    (void)f->work(f, rank); /* warm */
    shmt_meet(&f->meeting, rank);
    if (rank == 0) f->alone_ns = f->work(f, 0);
    shmt_meet(&f->meeting, rank); /* the other one spins on a line of its own meanwhile */
    f->together_ns[rank] = f->work(f, rank);
    shmt_meet(&f->meeting, rank);
}

static double factor(struct shmt_floors *f, task *work) {
    run(f, 2, work, factor_body);
    return 2 * f->alone_ns / slowest_ns(f);
}

double shmt_floor_read_factor(struct shmt_floors *f, double *together_ns) {
    const double of_one = factor(f, read_part);
    if (together_ns) *together_ns = slowest_ns(f);
    return of_one;
}

double shmt_floor_compute_factor(struct shmt_floors *f) { return factor(f, compute); }

/* ---- a ball between two cores ---- */

/* Keeps the ball until the other one has gone to sleep: else it would find it back before it has even asked the kernel. */
static void hold(void) {
    const uint64_t until = shmt_now_ns() + HOLD_NS;
    while (shmt_now_ns() < until) continue;
}

static void hit(struct shmt_floors *f, uint32_t rank, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen;
        if (!f->sleeping) {
            shmt_hit(&f->ball, rank, i);
            continue;
        }
        /* acquire: what the waker did is seen; the ball is all there is */
        while ((seen = load_acquire(&f->ball)) != 2 * i + rank) shmt_host()->wait(&f->ball, seen, 1000000000);
        hold();
        shmt_hit(&f->ball, rank, i);
        shmt_host()->wake(&f->ball);
    }
}

/* The shortest of several matches: others on the machine lengthen some of them a thousandfold. */
static void ball_body(void *arg, uint32_t rank) {
    struct shmt_floors *f = arg;
    const uint32_t n = f->sleeping ? f->sizes.wakes : f->sizes.trips;
    double best = INFINITY;
    for (uint32_t match = 0; match < f->sizes.matches; match++) {
        shmt_meet(&f->meeting, rank);
        if (rank == 0) store_relaxed(&f->ball, 0); /* relaxed: a meeting follows */
        shmt_meet(&f->meeting, rank);
        const uint64_t from = shmt_now_ns();
        hit(f, rank, n);
        best = fmin(best, (double)(shmt_now_ns() - from) / n - (f->sleeping ? 2.0 * HOLD_NS : 0));
    }
    if (rank == 0) f->alone_ns = best;
}

static double play(struct shmt_floors *f, bool sleeping) {
    f->sleeping = sleeping;
    run(f, 2, NULL, ball_body);
    return f->alone_ns;
}

double shmt_floor_line(struct shmt_floors *f) { return play(f, false); }
double shmt_floor_wake(struct shmt_floors *f) { return play(f, true); }

/* ---- products ---- */

static bool has_blas(void) {
    struct shmt_error e = {0};
    return shmt_blas_open(&e) == 0;
}

static double sgemm_ns(const struct shmt_floors *f, uint32_t rank) {
    const uint32_t n = f->square;
    (void)rank;
    if (!has_blas()) return NAN;
    float *x = calloc(3 * (size_t)n * n, sizeof *x);
    if (!x) shmt_measure_fail("not enough memory for matrices of %u rows", n);
    for (size_t i = 0; i < 2 * (size_t)n * n; i++) x[i] = (float)(i % 7);
    const struct shmt_factor a = {x, n, false}, b = {x + (size_t)n * n, n, false};
    const struct shmt_matrix c = {x + 2 * (size_t)n * n, n, n, n};
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        const uint64_t from = shmt_thread_ns();
        shmt_sgemm(a, b, n, 0, c);
        best = fmin(best, (double)(shmt_thread_ns() - from));
    }
    free(x);
    return best / ((double)n * n * n);
}

/* Scores of `tile` examples, then the gradient of the weights: as models/softmax.c has them, without what is around them. */
static double tiles_ns(const struct shmtrain_data *data, uint32_t tile, float *w, float *z) {
    const uint64_t from = shmt_thread_ns();
    const uint32_t features = data->n_features, classes = data->n_labels;
    const struct shmt_factor weights = {w, features, true}, slopes = {z, classes, true};
    const struct shmt_matrix gradient = {w + (size_t)classes * features, classes, features, features};
    for (uint64_t at = 0; at < data->n_examples; at += tile) {
        const uint32_t n = (uint32_t)(data->n_examples - at < tile ? data->n_examples - at : tile);
        const struct shmt_factor x = {data->dense + at * features, features, false};
        shmt_sgemm(x, weights, features, 0, (struct shmt_matrix){z, n, classes, classes});
        shmt_sgemm(slopes, x, n, 1, gradient);
    }
    return (double)(shmt_thread_ns() - from);
}

static double products_ns(const struct shmt_floors *f, uint32_t rank) {
    const struct shmtrain_data *data = f->data;
    const size_t weights = (size_t)data->n_features * data->n_labels;
    double best = INFINITY;
    (void)rank;
    if (!has_blas()) return NAN;
    float *w = calloc(2 * weights, sizeof *w), *z = calloc((size_t)1024 * data->n_labels, sizeof *z);
    if (!w || !z) shmt_measure_fail("not enough memory for products");
    for (uint32_t tile = 64; tile <= 1024; tile *= 4) best = fmin(best, tiles_ns(data, tile, w, z));
    free(w);
    free(z);
    return best;
}

double shmt_floor_sgemm(struct shmt_floors *f, uint32_t n) {
    f->square = n;
    return alone(f, sgemm_ns);
}

double shmt_floor_products(struct shmt_floors *f, const struct shmtrain_data *data) {
    f->data = data;
    return alone(f, products_ns);
}
