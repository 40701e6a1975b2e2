/* One round of shmtrain bench: see measure_priv.h. What stands against what, and why, is in docs/performance.md. */
#include "bench/measure/measure_priv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/floors/barriers.h"
#include "bench/floors/floors.h"
#include "bench/floors/stream.h"
#include "bench/runs/examples.h"
#include "bench/runs/text_file.h"
#include "bench/runs/training.h"
#include "data/order.h"

/* Data of RCV1's shape; the same with more features than any cache has room for; images of MNIST's size. */
enum { FEATURES = 47236, NONZEROS = 74, MANY_FEATURES = 1 << 24, PIXELS = 784, CLASSES = 10, GROUP = 4, SQUARE = 512 };

struct shmt_bed {
    bool quick;
    uint64_t bytes;
    uint32_t cores;
    struct shmt_floors *floors;
    struct shmt_timed *sparse, *many, *dense;
    struct shmt_independent *independent;
    uint32_t *order; /* of the examples of `many` */
    float *weight;   /* (MANY_FEATURES) */
    struct shmt_text_file text;
};

struct shmt_bed *shmt_bed_make(uint64_t far_bytes, bool quick) {
    const struct shmt_floor_sizes sizes = {.bytes = far_bytes,
                                           .multiplications = quick ? 500000 : 2000000,
                                           .jumps = quick ? 500000 : 4000000,
                                           .trips = quick ? 2000 : 10000,
                                           .wakes = quick ? 20 : 100,
                                           .matches = 5};
    struct shmtrain_data sparse, many, dense;
    struct shmt_bed *bed = calloc(1, sizeof *bed);
    if (!bed) shmt_measure_fail("not enough memory for measuring");
    bed->quick = quick;
    bed->bytes = far_bytes;
    bed->cores = shmt_measure_cores();
    bed->floors = shmt_floors_make(&sizes);
    shmt_make_examples(far_bytes, FEATURES, NONZEROS, &sparse);
    shmt_make_examples(quick ? far_bytes / 8 : far_bytes / 2, MANY_FEATURES, NONZEROS, &many);
    shmt_make_dense(quick ? far_bytes / 8 : far_bytes / 2, PIXELS, &dense);
    bed->sparse = shmt_timed_make(&sparse);
    bed->many = shmt_timed_make(&many);
    bed->dense = shmt_timed_make(&dense);
    if (bed->cores >= 2) bed->independent = shmt_independent_make(&sparse);
    const struct shmt_order order = {.seed = 1, .n_examples = many.n_examples, .shuffle = true};
    bed->order = shmt_measure_shared(many.n_examples * sizeof *bed->order);
    shmt_order_fill(&order, 0, 0, (uint32_t)many.n_examples, bed->order);
    bed->weight = shmt_measure_shared((uint64_t)many.n_features * sizeof *bed->weight);
    shmt_text_file_make(&sparse, quick ? far_bytes / 8 : far_bytes / 2, &bed->text);
    return bed;
}

/* The data goes with the process, as examples.h says. */
void shmt_bed_free(struct shmt_bed *bed) {
    shmt_text_file_free(&bed->text);
    shmt_floors_free(bed->floors);
    free(bed);
}

/* ---- what a round has found ---- */

static void put_floor(struct shmt_bench *b, double value, const char *unit, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
static void put_floor(struct shmt_bench *b, double value, const char *unit, const char *name, ...) {
    struct shmt_bench_line *f = &b->floor[b->n_floors++];
    va_list args;
    va_start(args, name);
    vsnprintf(f->name, sizeof f->name, name, args);
    va_end(args);
    f->unit = unit;
    f->now = value;
}

static struct shmt_bench_line *put(struct shmt_bench *b, double ours, double floor, const char *unit, const char *on,
                                   const char *name) {
    struct shmt_bench_line *o = &b->operation[b->n_operations++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->unit = unit;
    o->on = on;
    o->now = ours;
    o->floor_now = floor;
    return o;
}

static void put_rate(struct shmt_bench *b, double ours, double floor, const char *unit, const char *on, const char *name) {
    put(b, ours, floor, unit, on, name)->is_rate = true;
}

/* ---- floors ---- */

/* Returns GB/s of reading by all cores. */
static double measure_memory(struct shmt_bed *bed, struct shmt_bench *r) {
    const double bytes = (double)bed->bytes;
    const uint32_t n = bed->cores;
    double all = bytes / shmt_floor_read(bed->floors, 1);
    put_floor(r, all, "GB/s", "streaming read, 1 process");
    if (n > 1) put_floor(r, all = bytes / shmt_floor_read(bed->floors, n), "GB/s", "streaming read, %u processes", n);
    put_floor(r, bytes / shmt_floor_write(bed->floors, 1), "GB/s", "streaming write, 1 process");
    if (n > 1) put_floor(r, bytes / shmt_floor_write(bed->floors, n), "GB/s", "streaming write, %u processes", n);
    put_floor(r, shmt_floor_random(bed->floors), "ns", "a line at random, pages of 4 KiB");
    put_floor(r, shmt_floor_random_huge(bed->floors), "ns", "a line at random, huge pages");
    return all;
}

/* Barriers by the way: with two workers all kinds take turns in one match. */
static void measure_two(struct shmt_bed *bed, struct shmt_bench *r) {
    struct shmt_barriers b;
    put_floor(r, shmt_floor_read_factor(bed->floors, NULL), "of one", "independence of two, streaming");
    put_floor(r, shmt_floor_compute_factor(bed->floors), "of one", "independence of two, arithmetic");
    put_floor(r, shmt_floor_line(bed->floors), "ns", "cache line to another core and back");
    put_floor(r, shmt_floor_wake(bed->floors) / 1e3, "us", "futex wake of another core and back");
    shmt_barriers_run(2, bed->quick ? 500 : 2000, bed->quick ? 3 : 7, &b);
    put_floor(r, b.ns[SHMT_BARRIER_PLAIN], "ns", "barrier of two, a counter and a futex");
    put_floor(r, b.ns[SHMT_BARRIER_PTHREAD], "ns", "barrier of two, pthread");
    put(r, b.ns[SHMT_BARRIER_MEETING], b.ns[SHMT_BARRIER_LINE], "ns", "a cache line's way and back", "meeting of 2 workers");
    put(r, b.ns[SHMT_BARRIER_CLOCK], b.ns[SHMT_BARRIER_LINE], "ns", "a cache line's way and back", "clock of 2 workers");
}

/* ---- operations ---- */

static void train(struct shmt_timed *run, const char *model, const char *workers, const char *mode, const char *batch) {
    shmt_timed_train(run, &(struct shmt_timed_how){
                              .model = model, .workers = workers, .mode = mode, .batch = batch, .group = GROUP, .epochs = 3});
}

static void measure_sparse(struct shmt_bed *bed, struct shmt_bench *r) {
    struct shmt_timed *run = bed->sparse;
    const double n = (double)run->data.n_examples;
    run->with_floor = true;
    train(run, NULL, "1", "async", NULL);
    run->with_floor = false;
    put(r, run->own_ns / n, run->floor_ns / n, "ns/example", "streaming its bytes", "sparse epoch, 1 worker");
    if (bed->independent) {
        const struct shmt_timed_how how = {.workers = "1", .mode = "async", .group = GROUP, .epochs = 3};
        train(run, NULL, "2", "async", NULL);
        const double ours = run->epoch_ns;
        shmt_independent_train(bed->independent, &how);
        put(r, ours / n, fmax(bed->independent->half[0]->epoch_ns, bed->independent->half[1]->epoch_ns) / n, "ns/example",
            "two runs that share nothing", "sparse epoch, 2 workers");
    }
    run = bed->many;
    train(run, NULL, "1", "async", NULL);
    const double many = (double)run->data.n_examples;
    put(r, run->own_ns / many, shmt_lines_ns(&run->data, bed->order, bed->weight) / many, "ns/example",
        "its lines read and written at random", "sparse epoch, 2^24 features");
}

static void measure_text(struct shmt_bed *bed, struct shmt_bench *r, double all_gbs) {
    const double bytes = (double)bed->text.bytes;
    put_rate(r, 1e3 * bytes / shmt_text_file_load(&bed->text, 1), 1e3 * bytes / shmt_text_file_stream(&bed->text), "MB/s",
             "streaming the file from the page cache", "loading LIBSVM text, 1 worker");
    if (bed->cores < 2) return;
    put_rate(r, 1e3 * bytes / shmt_text_file_load(&bed->text, bed->cores), 1e3 * all_gbs, "MB/s",
             "streaming read, all processes", "loading LIBSVM text, all workers");
}

/* Two products of 2 PIXELS * CLASSES operations for each example. */
static void measure_dense(struct shmt_bed *bed, struct shmt_bench *r) {
    struct shmt_timed *run = bed->dense;
    const double flops = 4.0 * run->data.n_features * run->data.n_labels * (double)run->data.n_examples;
    const double square_ns = shmt_floor_sgemm(bed->floors, SQUARE);
    put_floor(r, 2 / square_ns, "GFLOP/s", "sgemm of %d x %d, 1 thread", SQUARE, SQUARE);
    if (!isfinite(square_ns)) return; /* no OpenBLAS */
    const double products_ns = shmt_floor_products(bed->floors, &run->data);
    train(run, "softmax", "1", "sync", "1024");
    put_rate(r, flops / run->own_ns, flops / products_ns, "GFLOP/s", "its two products alone (sgemm)",
             "dense softmax, 1 worker");
}

void shmt_bed_measure(struct shmt_bed *bed, struct shmt_bench *out) {
    out->n_floors = out->n_operations = 0;
    const double all_gbs = measure_memory(bed, out);
    measure_sparse(bed, out);
    measure_text(bed, out, all_gbs);
    measure_dense(bed, out);
    if (bed->cores >= 2) measure_two(bed, out);
}
