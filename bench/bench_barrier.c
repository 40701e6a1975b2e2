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
#include "measure/barriers.h"

enum { MATCHES = 21 };

static void measure(uint32_t n, const struct bench_options *o) {
    static const char *const name[SHMT_BARRIERS] = {"cache line to the other core and back",
                                                    "meeting",
                                                    "clock",
                                                    "pthread_barrier, process-shared",
                                                    "plain counter and FUTEX_WAKE",
                                                    "plain counter and sched_yield"};
    const enum shmt_barrier first = n > 2 ? SHMT_BARRIER_MEETING : SHMT_BARRIER_LINE,
                            floor = n > 2 ? SHMT_BARRIER_PLAIN : SHMT_BARRIER_LINE;
    struct shmt_figure ns[SHMT_BARRIERS],
        ratio[6] = {{.name = n > 2 ? "meeting / plain barrier" : "meeting / cache line", .unit = "x"},
                    {.name = n > 2 ? "clock / plain barrier" : "clock / cache line", .unit = "x"},
                    {.name = "meeting / pthread_barrier", .unit = "x"},
                    {.name = "clock / pthread_barrier", .unit = "x"},
                    {.name = "meeting / counter and sched_yield", .unit = "x"},
                    {.name = "clock / counter and sched_yield", .unit = "x"}},
        burn = {.name = "processor time of all who wait 50 ms", .unit = "percent"};
    for (int kind = 0; kind < SHMT_BARRIERS; kind++) ns[kind] = (struct shmt_figure){.name = name[kind], .unit = "ns"};
    while (burn.n < o->rounds) {
        struct shmt_barriers b;
        bench_round_begin();
        shmt_barriers_run(n, o->quick ? 20 : n > 2 ? 500 : 5000, MATCHES, &b);
        if (!bench_round_end(o)) continue;
        for (enum shmt_barrier kind = first; kind < SHMT_BARRIERS; kind++) shmt_figure_add(&ns[kind], b.ns[kind]);
        const enum shmt_barrier against[3] = {floor, SHMT_BARRIER_PTHREAD, SHMT_BARRIER_YIELD};
        for (int i = 0; i < 6; i++)
            shmt_figure_add(&ratio[i], b.ns[i % 2 == 0 ? SHMT_BARRIER_MEETING : SHMT_BARRIER_CLOCK] / b.ns[against[i / 2]]);
        shmt_figure_add(&burn, 100 * b.late_ns / (SHMT_LATE_MS * 1e6));
    }
    for (enum shmt_barrier kind = first; kind < SHMT_BARRIERS; kind++) bench_show(&ns[kind]);
    for (int i = 0; i < 6; i++) bench_show(&ratio[i]);
    bench_show(&burn);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 31);
    if ((shmt_measure_cores() >= 2)) {
        bench_head("barrier: 2 workers on 2 cores");
        measure(2, &o);
    }
    bench_head("barrier: 8 workers on %s", (shmt_measure_cores() >= 2) ? "2 cores" : "one core");
    measure(SHMT_MOST_IN_HALL, &o);
    bench_show_noise();
    return 0;
}
