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
 * "Independent" are two runs at the same time, on two cores, that share nothing: each trains weights of its own on its half of
 * the data. What two workers of one run reach is told as a multiple of one worker, and divided by what the independent ones
 * reach in the same round. */
#include <shmtrain/shmtrain.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "examples.h"

enum { EPOCHS = 6, FEATURES = 47236, NONZEROS = 74 }; /* the first epoch warms up */

/* One run: what is run, and what its first worker measured. */
struct run {
    const struct shmtrain_model *model;
    struct shmtrain_data data;
    struct shmtrain_settings settings;
    struct bench_meeting *meeting; /* NULL, or: the two independent runs begin each epoch together */
    uint32_t half;                 /* which of them this is */
    bool with_floor;
    double epoch_ns;         /* the shortest epoch */
    double own_ns, floor_ns; /* in the first worker's own time: the shortest epoch, and the shortest streaming of its bytes */
};

/* ---- in the worker ---- */

struct lap {
    uint64_t began_ns, own_ns; /* by the clock; of the thread */
    double floor_ns;
    uint32_t epoch;
};

static void end_lap(struct run *run, const struct lap *lap) {
    const double ns = (double)(shmt_now_ns() - lap->began_ns), own_ns = (double)(bench_thread_ns() - lap->own_ns);
    if (lap->epoch == 0) return;
    run->epoch_ns = fmin(run->epoch_ns, ns);
    run->own_ns = fmin(run->own_ns, own_ns);
    run->floor_ns = fmin(run->floor_ns, lap->floor_ns);
}

static void begin_lap(struct run *run, uint32_t epoch, struct lap *lap) {
    const struct bench_bytes bytes = bench_bytes_of_examples(&run->data);
    *lap = (struct lap){.epoch = epoch};
    if (run->with_floor) lap->floor_ns = bench_floor_ns(&bytes);
    if (run->meeting) bench_meet(run->meeting, run->half);
    lap->began_ns = shmt_now_ns();
    lap->own_ns = bench_thread_ns();
}

/* What the library's own driver does with a model: order, step, report, clock. */
static int train(shmtrain_session *s, struct run *run, uint32_t *example) {
    struct shmtrain_work work;
    struct lap lap = {.epoch = UINT32_MAX};
    const bool chief = shmtrain_rank(s) == 0;
    int rc;
    while ((rc = shmtrain_next(s, &work)) == 1) {
        const struct shmtrain_batch batch = {.data = &run->data, .example = example, .n = (uint32_t)work.n};
        double loss = 0;
        if (chief && work.epoch != lap.epoch) {
            if (lap.epoch != UINT32_MAX) end_lap(run, &lap);
            begin_lap(run, work.epoch, &lap);
        }
        if ((rc = shmtrain_order(s, &work, example)) < 0) return rc;
        if ((rc = run->model->step(s, &batch, &run->settings, &loss)) < 0) return rc;
        if ((rc = shmtrain_report(s, loss)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    if (chief && rc == 0) end_lap(run, &lap);
    return rc;
}

static int worker(shmtrain_session *s, void *arg) {
    struct run *run = arg;
    uint32_t *example = malloc(run->data.n_examples * sizeof *example);
    if (!example) return SHMTRAIN_E_MEMORY;
    const int rc = train(s, run, example);
    free(example);
    return rc;
}

/* ---- a run ---- */

struct how {
    const char *workers, *mode, *batch;
    uint32_t group;
};

static void must(struct shmtrain_store *store, int rc) {
    if (rc < 0) bench_fail("%s", shmtrain_store_message(store));
}

static void run_one(struct run *run, const struct how *how) {
    struct shmtrain_store *store;
    if (shmtrain_store_create(&store) < 0) bench_fail("no memory for a store");
    char epochs[16];
    snprintf(epochs, sizeof epochs, "%d", EPOCHS);
    run->model = shmtrain_store_model_at(store, 0);
    run->settings = (struct shmtrain_settings){
        .bias = 1, .group = how->group, .n_classes = run->data.n_labels, .classes = run->data.classes};
    run->epoch_ns = run->own_ns = run->floor_ns = INFINITY;
    must(store, shmtrain_store_set(store, "workers", how->workers));
    must(store, shmtrain_store_set(store, "mode", how->mode));
    must(store, shmtrain_store_set(store, "epochs", epochs));
    must(store, shmtrain_store_set(store, "rate", "0.5"));
    if (how->batch) must(store, shmtrain_store_set(store, "batch", how->batch));
    must(store, shmtrain_store_examples(store, run->data.n_examples));
    must(store, shmtrain_store_table(store, "weight", (uint64_t)run->data.n_features + 1, 1));
    must(store, shmtrain_store_run(store, worker, run));
    shmtrain_store_destroy(store);
}

/* ---- one worker against the floor ---- */

static void measure_one(struct run *run, const struct bench_options *o) {
    static const uint32_t group[] = {1, 4, 16};
    struct bench_figure floor = {.name = "floor", .unit = "GB/s"},
                        example = {.name = "one worker, async", .unit = "ns/example"},
                        ratio[3] = {{.name = "epoch / floor, group 1 (plain SGD)", .unit = "x"},
                                    {.name = "epoch / floor, group 4", .unit = "x"},
                                    {.name = "epoch / floor, group 16", .unit = "x"}};
    run->with_floor = true;
    while (floor.n < o->rounds) {
        struct bench_round round;
        double epoch_ns[3], floor_ns[3];
        bench_round_begin(&round);
        for (int g = 0; g < 3; g++) {
            run_one(run, &(struct how){.workers = "1", .mode = "async", .group = group[g]});
            epoch_ns[g] = run->own_ns;
            floor_ns[g] = run->floor_ns;
        }
        if (!bench_round_end(&round, o)) continue;
        bench_add(&floor, 8 * (double)run->data.n_nonzeros / floor_ns[0]);
        bench_add(&example, epoch_ns[0] / (double)run->data.n_examples);
        for (int g = 0; g < 3; g++) bench_add(&ratio[g], epoch_ns[g] / floor_ns[g]);
    }
    run->with_floor = false;
    bench_show(&floor);
    bench_show(&example);
    for (int g = 0; g < 3; g++) bench_show(&ratio[g]);
}

/* ---- two workers against one ---- */

struct independent {
    struct bench_meeting meeting;
    struct run *half[2];
};

static void independent_body(void *arg, uint32_t rank) {
    struct independent *i = arg;
    run_one(i->half[rank], &(struct how){.workers = "1", .mode = "async", .group = 1});
}

/* The time that two need who share nothing. */
static double independent_ns(struct independent *i) {
    i->meeting = (struct bench_meeting){0};
    bench_run(2, independent_body, i);
    const double a = i->half[0]->epoch_ns, b = i->half[1]->epoch_ns;
    return a > b ? a : b;
}

/* One worker's time divided by two workers' time. */
static double multiple(struct run *run, const char *mode, const char *batch, double *one_ns_out) {
    struct how how = {.workers = "1", .mode = mode, .batch = batch, .group = batch ? SHMTRAIN_MODEL_GROUP : 1};
    run_one(run, &how);
    *one_ns_out = run->epoch_ns;
    how.workers = "2";
    run_one(run, &how);
    return *one_ns_out / run->epoch_ns;
}

enum { WAYS = 4 };
static const struct {
    const char *mode, *batch, *multiple, *part;
} ways[WAYS] = {{"async", NULL, "async, 2 workers", "  divided by independence"},
                {"sync", "256", "sync, batch 256, 2 workers", "  divided by independence"},
                {"sync", "1024", "sync, batch 1024, 2 workers", "  divided by independence"},
                {"sync", "4096", "sync, batch 4096, 2 workers", "  divided by independence"}};

static void measure_two(struct run *run, struct independent *i, const struct bench_options *o) {
    struct bench_figure factor = {.name = "independence factor, two epochs", .unit = "of one"}, all[WAYS], part[WAYS],
                        alone[WAYS];
    for (int w = 0; w < WAYS; w++) {
        all[w] = (struct bench_figure){.name = ways[w].multiple, .unit = "of one"};
        part[w] = (struct bench_figure){.name = ways[w].part, .unit = "of it"};
        alone[w] = (struct bench_figure){.name = "  one worker's time, of its async time", .unit = "x"};
    }
    while (factor.n < o->rounds) {
        struct bench_round round;
        double by[WAYS], one_ns[WAYS];
        bench_round_begin(&round);
        for (int w = 0; w < WAYS; w++) by[w] = multiple(run, ways[w].mode, ways[w].batch, &one_ns[w]);
        const double f = one_ns[0] / independent_ns(i);
        if (!bench_round_end(&round, o)) continue;
        bench_add(&factor, f);
        for (int w = 0; w < WAYS; w++) {
            bench_add(&all[w], by[w]);
            bench_add(&part[w], by[w] / f);
            bench_add(&alone[w], one_ns[w] / one_ns[0]);
        }
    }
    bench_show(&factor);
    for (int w = 0; w < WAYS; w++) {
        bench_show(&all[w]);
        bench_show(&part[w]);
        if (w > 0) bench_show(&alone[w]);
    }
}

static struct run *make_run(const struct shmtrain_data *data) {
    struct run *run = bench_shared(sizeof *run);
    run->data = *data;
    return run;
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    struct shmtrain_data data;
    bench_make_examples(bench_far_bytes(&o), FEATURES, NONZEROS, &data);
    bench_head("epoch: logistic regression, %llu examples, %.1f nonzeros each, %.0f MiB", (unsigned long long)data.n_examples,
               (double)data.n_nonzeros / (double)data.n_examples, (double)data.n_nonzeros * 8 / (1 << 20));
    struct run *run = make_run(&data);
    measure_one(run, &o);
    if (bench_two_cores()) {
        struct independent *i = bench_shared(sizeof *i);
        for (uint32_t h = 0; h < 2; h++) {
            const uint64_t n = data.n_examples / 2;
            const struct shmtrain_data half = bench_part_of_examples(&data, h * n, n);
            i->half[h] = make_run(&half);
            i->half[h]->meeting = &i->meeting;
            i->half[h]->half = h;
        }
        measure_two(run, i, &o);
    } else {
        bench_head("  one core: nothing to say about two workers");
    }
    bench_show_noise();
    return 0;
}
