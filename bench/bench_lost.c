/* bench_lost: how many updates racy stores lose, by a counting experiment, and what option count-lost says of the same runs.
 *
 * usage: bench_lost [--quick] [--rounds N]
 *
 * A worker function whose every update of a parameter takes exactly 1 from it, at rate 1. Parameters stay whole numbers that f32
 * has exactly, so the updates that were made, less the sum of all parameters, are those that were lost, whatever the library
 * counts. Each round makes two runs of each shape: one as they are made without the option, and one with it. */
#include <shmtrain/shmtrain.h>
#include <stdio.h>

#include "base/random.h"
#include "bench.h"

enum { MOST_ROWS = 1 << 16, NONZEROS = 16, MOST_ITEM = 1024, EPOCHS = 4 };

/* Columns of an example: one of each of 16 equal parts of the rows, drawn so that low ones are frequent. */
struct shape {
    const char *title, *workers, *window;
    uint32_t rows, group, examples;
};

static const struct shape SHAPES[] = {
    {"16 features, all in each example", "2", "", 16, 4, 200000},
    {"16 features, group 1", "2", "", 16, 1, 200000},
    {"256 features", "2", "", 256, 4, 200000},
    {"65,536 features", "2", "", MOST_ROWS, 4, 200000},
    {"256 features, 8 workers", "8", "", 256, 4, 400000},
    {"256 features, waiting for 2 us", "2", "2us", 256, 4, 20000},
    {"256 features, 8 workers, waiting for 0.2 ms", "8", "200us", 256, 4, 4000},
};

static void must(const struct shmtrain_store *store, int rc) {
    if (rc < 0) bench_fail("%s", shmtrain_store_message(store));
}

static void set(struct shmtrain_store *store, const char *option, const char *value) {
    must(store, shmtrain_store_set(store, option, value));
}

static void always_one(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg, (void)first, (void)dot;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = 1;
}

static uint32_t column_of(const struct shape *shape, uint64_t example, uint32_t part) {
    const uint32_t each = shape->rows / NONZEROS;
    const double u = shmt_unit(shmt_hash64(1, 2, example, part));
    return part * each + (uint32_t)(u * u * u * each);
}

static int count_down(shmtrain_session *s, void *arg) {
    static _Thread_local uint64_t start[MOST_ITEM + 1];
    static _Thread_local uint32_t id[MOST_ITEM * NONZEROS];
    const struct shape *shape = arg;
    struct shmtrain_csr x = {.size = sizeof x, .start = start, .id = id};
    struct shmtrain_work work;
    int rc;
    for (uint32_t k = 0; k <= MOST_ITEM; k++) start[k] = (uint64_t)k * NONZEROS;
    while ((rc = shmtrain_next(s, &work)) == 1) {
        x.n = (uint32_t)work.n; /* at most an item */
        for (uint32_t i = 0; i < x.n * NONZEROS; i++) id[i] = column_of(shape, work.first + i / NONZEROS, i % NONZEROS);
        rc = shmtrain_each(s, 0, &x, shape->group, always_one, NULL);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

/* In percent: by the parameters, and as reported (0 where nobody counts). */
static double run(const struct shape *shape, const char *count, uint32_t examples, double *reported_out) {
    static float value[MOST_ROWS];
    struct shmtrain_store *store = NULL;
    double left = (double)examples * NONZEROS * EPOCHS;
    const double made = left;
    if (shmtrain_store_create(&store) < 0) bench_fail("no memory for a store");
    set(store, "workers", shape->workers);
    set(store, "mode", "hogwild");
    set(store, "rate", "1");
    set(store, "schedule", "constant");
    set(store, "epochs", "4");
    set(store, "item", "1024");
    set(store, "count-lost", count);
    if (shape->window[0]) set(store, "race-window", shape->window);
    must(store, shmtrain_store_table(store, "counters", shape->rows, 1));
    must(store, shmtrain_store_examples(store, examples));
    must(store, shmtrain_store_run(store, count_down, (void *)shape));
    must(store, shmtrain_store_read(store, 0, 0, shape->rows, value));
    *reported_out = 100 * shmtrain_store_report(store)->lost_updates;
    shmtrain_store_destroy(store);
    for (uint32_t i = 0; i < shape->rows; i++) left += (double)value[i];
    return 100 * left / made;
}

static void measure(const struct shape *shape, const struct bench_options *o) {
    struct shmt_figure plain = {.name = "by the parameters, without counting", .unit = "%"};
    struct shmt_figure counted = {.name = "by the parameters, with count-lost", .unit = "%"};
    struct shmt_figure reported = {.name = "as count-lost reports it", .unit = "%"};
    const uint32_t examples = o->quick ? shape->examples / 20 : shape->examples;
    double said;
    bench_head("%s", shape->title);
    for (uint32_t round = 0; round < o->rounds; round++) {
        if (!shape->window[0]) shmt_figure_add(&plain, run(shape, "0", examples, &said));
        shmt_figure_add(&counted, run(shape, "1", examples, &said));
        shmt_figure_add(&reported, said);
    }
    if (!shape->window[0]) bench_show(&plain); /* runs that wait always count */
    bench_show(&counted);
    bench_show(&reported);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 9);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) measure(&SHAPES[i], &o);
    return 0;
}
