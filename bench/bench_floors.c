/* bench_floors: what this machine can do at best, whatever program runs on it.
 *
 * usage: bench_floors [--quick] [--rounds N]
 *
 * How fast one process and two read memory; what two processes that share nothing reach, as a multiple of one; how long a cache
 * line takes to the other core and back; how long it takes to wake a sleeper there. The figures of bench_epoch and
 * bench_kernels are to be seen against these. */
#include <math.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench.h"
#include "sync/futex.h"

#define HOLD_NS 50000
enum { MATCHES = 20 };

/* Work of one round; the helpers' results come back in it. */
struct floors {
    struct bench_meeting meeting;
    _Alignas(128) _Atomic uint32_t ball;
    _Alignas(128) double alone_ns, together_ns[2];
    const struct bench_options *o;
    unsigned char *memory;
    uint64_t bytes;
};

/* ---- two that share nothing: one's time for its half, while the other rests, and while it does the same ---- */

typedef double work(const struct floors *f, uint32_t rank);

static double stream_half(const struct floors *f, uint32_t rank) {
    const struct bench_bytes b = {.at = {f->memory + rank * f->bytes / 2}, .bytes = {f->bytes / 2}};
    return bench_floor_ns(&b);
}

/* A chain of multiplications, in registers. */
static double compute(const struct floors *f, uint32_t rank) {
    const uint64_t from = bench_thread_ns(), n = f->o->quick ? 1000 : 2000000;
    uint64_t x = rank;
    for (uint64_t i = 0; i < n; i++) x = shmt_mix64(x);
    volatile uint64_t sink = x;
    (void)sink;
    return (double)(bench_thread_ns() - from);
}

static void alone_and_together(struct floors *f, uint32_t rank, work *do_work) {
    (void)do_work(f, rank); /* warm: page tables, clock speed */
    bench_meet(&f->meeting, rank);
    if (rank == 0) f->alone_ns = do_work(f, 0);
    bench_meet(&f->meeting, rank); /* the other one spins on a line of its own meanwhile */
    f->together_ns[rank] = do_work(f, rank);
    bench_meet(&f->meeting, rank);
}

static void stream_body(void *arg, uint32_t rank) { alone_and_together(arg, rank, stream_half); }
static void compute_body(void *arg, uint32_t rank) { alone_and_together(arg, rank, compute); }

static double slower_ns(const struct floors *f) {
    return f->together_ns[0] > f->together_ns[1] ? f->together_ns[0] : f->together_ns[1];
}

/* ---- a ball between two cores ---- */

static uint32_t n_trips(const struct floors *f, uint32_t most) { return f->o->quick ? 10 : most; }

/* Keeps the ball until the other one has gone to sleep: else it would find it back before it has even asked the kernel. */
static void hold(void) {
    const uint64_t until = shmt_now_ns() + HOLD_NS;
    while (shmt_now_ns() < until) continue;
}

static void hit(struct floors *f, uint32_t rank, uint32_t n, bool sleeping) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen;
        if (!sleeping) {
            bench_hit(&f->ball, rank, i);
            continue;
        }
        /* acquire: what the waker did is seen; the ball is all there is */
        while ((seen = load_acquire(&f->ball)) != 2 * i + rank) shmt_futex_wait(&f->ball, seen, 1000000000);
        hold();
        bench_hit(&f->ball, rank, i);
        shmt_futex_wake(&f->ball);
    }
}

/* The shortest of several matches: others on the machine lengthen some of them a thousandfold. */
static void ball_body(struct floors *f, uint32_t rank, uint32_t n, bool sleeping) {
    double best = INFINITY;
    for (int match = 0; match < MATCHES; match++) {
        bench_meet(&f->meeting, rank);
        if (rank == 0) store_relaxed(&f->ball, 0); /* relaxed: a meeting follows */
        bench_meet(&f->meeting, rank);
        const uint64_t from = shmt_now_ns();
        hit(f, rank, n, sleeping);
        best = fmin(best, (double)(shmt_now_ns() - from) / n - (sleeping ? 2.0 * HOLD_NS : 0));
    }
    if (rank == 0) f->alone_ns = best;
}

static void line_body(void *arg, uint32_t rank) { ball_body(arg, rank, n_trips(arg, 10000), false); }
static void wake_body(void *arg, uint32_t rank) { ball_body(arg, rank, n_trips(arg, 100), true); }

/* ---- rounds ---- */

static void reset(struct floors *f) {
    f->meeting = (struct bench_meeting){0};
    store_relaxed(&f->ball, 0); /* relaxed: before the fork */
}

static void run_two(struct floors *f, void (*body)(void *arg, uint32_t rank)) {
    reset(f);
    bench_run(2, body, f);
}

static void read_alone(void *arg, uint32_t rank) {
    struct floors *f = arg;
    const struct bench_bytes b = {.at = {f->memory}, .bytes = {f->bytes}};
    (void)rank;
    (void)bench_floor_ns(&b); /* warm */
    f->alone_ns = bench_floor_ns(&b);
}

static void measure_one(struct floors *f) {
    struct bench_figure one = {.name = "streaming, one process", .unit = "GB/s"};
    while (one.n < f->o->rounds) {
        struct bench_round round;
        bench_round_begin(&round);
        bench_run(1, read_alone, f);
        if (bench_round_end(&round, f->o)) bench_add(&one, (double)f->bytes / f->alone_ns);
    }
    bench_show(&one);
}

static void measure_two(struct floors *f) {
    struct bench_figure two = {.name = "streaming, two processes", .unit = "GB/s"},
                        stream = {.name = "independence factor, streaming", .unit = "of one"},
                        arithmetic = {.name = "independence factor, arithmetic", .unit = "of one"},
                        line = {.name = "cache line to the other core and back", .unit = "ns"},
                        wake = {.name = "futex wake of the other core and back", .unit = "us"};
    while (two.n < f->o->rounds) {
        struct bench_round round;
        double x[5];
        bench_round_begin(&round);
        run_two(f, stream_body);
        x[0] = (double)f->bytes / slower_ns(f);
        x[1] = 2 * f->alone_ns / slower_ns(f);
        run_two(f, compute_body);
        x[2] = 2 * f->alone_ns / slower_ns(f);
        run_two(f, line_body);
        x[3] = f->alone_ns;
        run_two(f, wake_body);
        x[4] = f->alone_ns / 1e3;
        if (!bench_round_end(&round, f->o)) continue;
        struct bench_figure *const figure[] = {&two, &stream, &arithmetic, &line, &wake};
        for (int i = 0; i < 5; i++) bench_add(figure[i], x[i]);
    }
    bench_show(&two);
    bench_show(&stream);
    bench_show(&arithmetic);
    bench_show(&line);
    bench_show(&wake);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    struct floors *f = bench_shared(sizeof *f);
    f->o = &o;
    f->bytes = bench_far_bytes(&o);
    f->memory = bench_shared(f->bytes);
    bench_head("floors: what this machine can do, over %.0f MiB", (double)f->bytes / (1 << 20));
    measure_one(f);
    if (bench_two_cores())
        measure_two(f);
    else
        bench_head("  one core: nothing to say about two");
    bench_show_noise();
    return 0;
}
