/* bench_floors: what this machine can do at best, whatever program runs on it.
 *
 * usage: bench_floors [--quick] [--rounds N]
 *
 * How fast one process and two read memory; what two processes that share nothing reach, as a multiple of one; how long a cache
 * line takes to the other core and back; how long it takes to wake a sleeper there. The figures of bench_epoch and
 * bench_kernels are to be seen against these. */
#include "bench.h"
#include "measure/floors.h"

static void measure_one(struct shmt_floors *f, uint64_t bytes, const struct bench_options *o) {
    struct shmt_figure one = {.name = "streaming, one process", .unit = "GB/s"};
    while (one.n < o->rounds) {
        bench_round_begin();
        const double ns = shmt_floor_read(f, 1);
        if (bench_round_end(o)) shmt_figure_add(&one, (double)bytes / ns);
    }
    bench_show(&one);
}

enum { OF_TWO = 5 };

static void measure_two(struct shmt_floors *f, uint64_t bytes, const struct bench_options *o) {
    struct shmt_figure figure[OF_TWO] = {{.name = "streaming, two processes", .unit = "GB/s"},
                                         {.name = "independence factor, streaming", .unit = "of one"},
                                         {.name = "independence factor, arithmetic", .unit = "of one"},
                                         {.name = "cache line to the other core and back", .unit = "ns"},
                                         {.name = "futex wake of the other core and back", .unit = "us"}};
    while (figure[0].n < o->rounds) {
        double x[OF_TWO], together_ns;
        bench_round_begin();
        x[1] = shmt_floor_read_factor(f, &together_ns);
        x[0] = (double)bytes / together_ns;
        x[2] = shmt_floor_compute_factor(f);
        x[3] = shmt_floor_line(f);
        x[4] = shmt_floor_wake(f) / 1e3;
        if (!bench_round_end(o)) continue;
        for (int i = 0; i < OF_TWO; i++) shmt_figure_add(&figure[i], x[i]);
    }
    for (int i = 0; i < OF_TWO; i++) bench_show(&figure[i]);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    const struct shmt_floor_sizes sizes = {.bytes = bench_far_bytes(&o),
                                           .multiplications = o.quick ? 1000 : 2000000,
                                           .trips = o.quick ? 10 : 10000,
                                           .wakes = o.quick ? 10 : 100,
                                           .matches = 20};
    struct shmt_floors *f = shmt_floors_make(&sizes);
    bench_head("floors: what this machine can do, over %.0f MiB", (double)sizes.bytes / (1 << 20));
    measure_one(f, sizes.bytes, &o);
    if (shmt_measure_cores() >= 2)
        measure_two(f, sizes.bytes, &o);
    else
        bench_head("  one core: nothing to say about two");
    bench_show_noise();
    return 0;
}
