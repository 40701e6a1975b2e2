/* bench_floors: what this machine can do at best, whatever program runs on it.
 *
 * usage: bench_floors [--quick] [--rounds N]
 *
 * How fast one process and two read memory; what two processes that share nothing reach, as a multiple of one; how long a cache
 * line takes to the other core and back; how long it takes to wake a sleeper there. The figures of bench_epoch and
 * bench_kernels are to be seen against these. */
#include "bench.h"
#include "bench/floors/floors.h"

struct ground {
    struct shmt_floors *floors;
    double bytes;
};

static void round_of_one(void *arg, double *x) {
    const struct ground *g = arg;
    x[0] = g->bytes / shmt_floor_read(g->floors, 1);
}

static void round_of_two(void *arg, double *x) {
    const struct ground *g = arg;
    double together_ns;
    x[1] = shmt_floor_read_factor(g->floors, &together_ns);
    x[0] = g->bytes / together_ns;
    x[2] = shmt_floor_compute_factor(g->floors);
    x[3] = shmt_floor_line(g->floors);
    x[4] = shmt_floor_wake(g->floors) / 1e3;
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    const struct shmt_floor_sizes sizes = {.bytes = bench_far_bytes(&o),
                                           .multiplications = o.quick ? 1000 : 2000000,
                                           .trips = o.quick ? 10 : 10000,
                                           .wakes = o.quick ? 10 : 100,
                                           .matches = 20};
    struct ground ground = {shmt_floors_make(&sizes), (double)sizes.bytes};
    struct shmt_figure one = {.name = "streaming, one process", .unit = "GB/s"},
                       two[] = {{.name = "streaming, two processes", .unit = "GB/s"},
                                {.name = "independence factor, streaming", .unit = "of one"},
                                {.name = "independence factor, arithmetic", .unit = "of one"},
                                {.name = "cache line to the other core and back", .unit = "ns"},
                                {.name = "futex wake of the other core and back", .unit = "us"}};
    bench_head("floors: what this machine can do, over %.0f MiB", ground.bytes / (1 << 20));
    bench_rounds(&o, &one, 1, round_of_one, &ground);
    bench_show(&one, 1);
    if (shmt_measure_cores() >= 2) {
        bench_rounds(&o, two, 5, round_of_two, &ground);
        bench_show(two, 5);
    } else {
        bench_head("  one core: nothing to say about two");
    }
    bench_show_noise();
    return 0;
}
