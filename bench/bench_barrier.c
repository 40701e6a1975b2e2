/* bench_barrier: what it costs to wait for one another.
 *
 * usage: bench_barrier [--quick] [--rounds N]
 *
 * Forked processes go through many barriers, one right behind the other, in a shared mapping: the meetings and clocks of the
 * library (sync/gate.h, as its workers use them), a process-shared pthread_barrier, and the plain barriers that one writes
 * first: a counter, and FUTEX_WAKE of all by the last one, or sched_yield until it has come. With two workers on two cores the
 * floor is a cache line's way to the other core and back; with eight on two cores it is the plain barrier that sleeps.
 *
 * All take turns within a round, in short matches; a round's figure is the median of its matches. Then what waiters burn: the
 * processor time of all who wait for one that comes 50 milliseconds late, as a share of that time. */
#include "bench.h"
#include "bench/floors/barriers.h"

enum { MATCHES = 21 };

struct hall {
    uint32_t n, n_barriers;
};

/* All kinds; meeting and clock against the floor, pthread_barrier and sched_yield; what waiters burn. */
static void round_of(void *arg, double *x) {
    const struct hall *hall = arg;
    const enum shmt_barrier against[3] = {hall->n > 2 ? SHMT_BARRIER_PLAIN : SHMT_BARRIER_LINE, SHMT_BARRIER_PTHREAD,
                                          SHMT_BARRIER_YIELD};
    struct shmt_barriers b;
    shmt_barriers_run(hall->n, hall->n_barriers, MATCHES, &b);
    if (hall->n == 2) *x++ = b.ns[SHMT_BARRIER_LINE];
    for (enum shmt_barrier kind = SHMT_BARRIER_MEETING; kind < SHMT_BARRIERS; kind++) *x++ = b.ns[kind];
    for (int i = 0; i < 6; i++) *x++ = b.ns[i % 2 == 0 ? SHMT_BARRIER_MEETING : SHMT_BARRIER_CLOCK] / b.ns[against[i / 2]];
    *x = 100 * b.late_ns / (SHMT_LATE_MS * 1e6);
}

static void measure(uint32_t n, const struct bench_options *o) {
    struct hall hall = {n, o->quick ? 20 : n > 2 ? 500 : 5000};
    struct shmt_figure figure[] = {{.name = "cache line to the other core and back", .unit = "ns"},
                                   {.name = "meeting", .unit = "ns"},
                                   {.name = "clock", .unit = "ns"},
                                   {.name = "pthread_barrier, process-shared", .unit = "ns"},
                                   {.name = "plain counter and FUTEX_WAKE", .unit = "ns"},
                                   {.name = "plain counter and sched_yield", .unit = "ns"},
                                   {.name = n > 2 ? "meeting / plain barrier" : "meeting / cache line", .unit = "x"},
                                   {.name = n > 2 ? "clock / plain barrier" : "clock / cache line", .unit = "x"},
                                   {.name = "meeting / pthread_barrier", .unit = "x"},
                                   {.name = "clock / pthread_barrier", .unit = "x"},
                                   {.name = "meeting / counter and sched_yield", .unit = "x"},
                                   {.name = "clock / counter and sched_yield", .unit = "x"},
                                   {.name = "processor time of all who wait 50 ms", .unit = "percent"}};
    const uint32_t first = n > 2 ? 1 : 0, n_figures = sizeof figure / sizeof *figure - first;
    bench_rounds(o, figure + first, n_figures, round_of, &hall);
    bench_show(figure + first, n_figures);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 31);
    if (shmt_measure_cores() >= 2) {
        bench_head("barrier: 2 workers on 2 cores");
        measure(2, &o);
    }
    bench_head("barrier: 8 workers on %s", shmt_measure_cores() >= 2 ? "2 cores" : "one core");
    measure(SHMT_MOST_IN_HALL, &o);
    bench_show_noise();
    return 0;
}
