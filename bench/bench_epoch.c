/* bench_epoch: an epoch of logistic regression on data that no cache holds, through the public API.
 *
 * usage: bench_epoch [--quick] [--rounds N]
 *
 * The data has the shape of RCV1 (builtin:sparse: 74 of 47,236 features per example, 8 bytes per nonzero), four times the last-
 * level cache. The floor is streaming just these bytes, by the best of several loops, in the same worker right before each
 * epoch. Runs of the library with the built-in model take turns. A run has a first epoch that maps the pages and warms up, then
 * five more; the shortest of them counts, and the shortest streaming. Against the floor stands one worker's own time, which
 * others on the machine do not lengthen; two workers are compared with one by the clock.
 *
 * What two workers of one run reach is told as a multiple of one worker, and divided by what two independent runs
 * reach in the same round (training.h). */
#include "bench.h"
#include "bench/runs/examples.h"
#include "bench/runs/training.h"

enum { EPOCHS = 6, FEATURES = 47236, NONZEROS = 74 }; /* the first epoch warms up */

/* ---- one worker against the floor ---- */

static void round_of_one(void *arg, double *x) {
    static const uint32_t group[] = {1, 4, 16};
    struct shmt_timed *run = arg;
    for (int g = 0; g < 3; g++) {
        shmt_timed_train(run, &(struct shmt_timed_how){.workers = "1", .mode = "async", .group = group[g], .epochs = EPOCHS});
        if (g == 0) x[0] = 8 * (double)run->data.n_nonzeros / run->floor_ns;
        if (g == 0) x[1] = run->own_ns / (double)run->data.n_examples;
        x[2 + g] = run->own_ns / run->floor_ns;
    }
}

static void measure_one(struct shmt_timed *run, const struct bench_options *o) {
    struct shmt_figure figure[] = {{.name = "floor", .unit = "GB/s"},
                                   {.name = "one worker, async", .unit = "ns/example"},
                                   {.name = "epoch / floor, group 1 (plain SGD)", .unit = "x"},
                                   {.name = "epoch / floor, group 4", .unit = "x"},
                                   {.name = "epoch / floor, group 16", .unit = "x"}};
    run->with_floor = true;
    bench_rounds(o, figure, 5, round_of_one, run);
    run->with_floor = false;
    bench_show(figure, 5);
}

/* ---- two workers against one ---- */

/* The time that two need who share nothing. */
static double independent_ns(struct shmt_independent *i) {
    shmt_independent_train(i, &(struct shmt_timed_how){.workers = "1", .mode = "async", .group = 1, .epochs = EPOCHS});
    const double a = i->half[0]->epoch_ns, b = i->half[1]->epoch_ns;
    return a > b ? a : b;
}

/* One worker's time divided by two workers' time. */
static double multiple(struct shmt_timed *run, const char *mode, const char *batch, double *one_ns_out) {
    struct shmt_timed_how how = {
        .workers = "1", .mode = mode, .batch = batch, .group = batch ? SHMTRAIN_MODEL_GROUP : 1, .epochs = EPOCHS};
    shmt_timed_train(run, &how);
    *one_ns_out = run->epoch_ns;
    how.workers = "2";
    shmt_timed_train(run, &how);
    return *one_ns_out / run->epoch_ns;
}

enum { WAYS = 4 };
static const struct {
    const char *mode, *batch, *title;
} ways[WAYS] = {{"async", NULL, "async, 2 workers"},
                {"sync", "256", "sync, batch 256, 2 workers"},
                {"sync", "1024", "sync, batch 1024, 2 workers"},
                {"sync", "4096", "sync, batch 4096, 2 workers"}};

struct two {
    struct shmt_timed *run;
    struct shmt_independent *independent;
};

static void round_of_two(void *arg, double *x) {
    const struct two *two = arg;
    double by[WAYS], one_ns[WAYS];
    for (int w = 0; w < WAYS; w++) by[w] = multiple(two->run, ways[w].mode, ways[w].batch, &one_ns[w]);
    const double factor = *x++ = one_ns[0] / independent_ns(two->independent);
    for (int w = 0; w < WAYS; w++) {
        *x++ = by[w];
        *x++ = by[w] / factor;
        if (w > 0) *x++ = one_ns[w] / one_ns[0];
    }
}

static void measure_two(struct shmt_timed *run, struct shmt_independent *i, const struct bench_options *o) {
    struct shmt_figure figure[3 * WAYS] = {{.name = "independence factor, two epochs", .unit = "of one"}}, *f = figure + 1;
    for (int w = 0; w < WAYS; w++) {
        *f++ = (struct shmt_figure){.name = ways[w].title, .unit = "of one"};
        *f++ = (struct shmt_figure){.name = "  divided by independence", .unit = "of it"};
        if (w > 0) *f++ = (struct shmt_figure){.name = "  one worker's time, of its async time", .unit = "x"};
    }
    bench_rounds(o, figure, 3 * WAYS, round_of_two, &(struct two){run, i});
    bench_show(figure, 3 * WAYS);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    struct shmtrain_data data;
    shmt_make_examples(bench_far_bytes(&o), FEATURES, NONZEROS, &data);
    bench_head("epoch: logistic regression, %llu examples, %.1f nonzeros each, %.0f MiB", (unsigned long long)data.n_examples,
               (double)data.n_nonzeros / (double)data.n_examples, (double)data.n_nonzeros * 8 / (1 << 20));
    struct shmt_timed *run = shmt_timed_make(&data);
    measure_one(run, &o);
    if (shmt_measure_cores() >= 2)
        measure_two(run, shmt_independent_make(&data), &o);
    else
        bench_head("  one core: nothing to say about two workers");
    bench_show_noise();
    return 0;
}
