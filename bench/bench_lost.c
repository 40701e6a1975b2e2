/* bench_lost: how many updates racy stores lose, by a counting experiment, and what option count-lost says of the same runs.
 *
 * usage: bench_lost [--quick] [--rounds N]
 *
 * A worker function whose every update of a parameter takes exactly 1 from it, at rate 1. Parameters stay whole numbers that f32
 * has exactly, so the updates that were made, less the sum of all parameters, are those that were lost, whatever the library
 * counts. Each round makes two runs of each shape: one as they are made without the option, and one with it. */
#include <shmtrain/shmtrain.h>

#include "bench.h"
#include "bench/runs/options.h"
#include "base/random.h"

enum { MOST_ROWS = 1 << 16, NONZEROS = 16, MOST_ITEM = 1024, EPOCHS = 4 };

/* Columns of an example: one of each of 16 equal parts of the rows, drawn so that low ones are frequent. */
struct shape {
    const char *title, *workers, *window; /* an option more, or "" */
    uint32_t rows, group, examples;
};

static const struct shape SHAPES[] = {
    {"16 features, all in each example", "2", "", 16, 4, 200000},
    {"16 features, group 1", "2", "", 16, 1, 200000},
    {"256 features", "2", "", 256, 4, 200000},
    {"65,536 features", "2", "", MOST_ROWS, 4, 200000},
    {"256 features, 8 workers", "8", "", 256, 4, 400000},
    {"256 features, waiting for 2 us", "2", " race-window=2us", 256, 4, 20000},
    {"256 features, 8 workers, waiting for 0.2 ms", "8", " race-window=200us", 256, 4, 4000},
};

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
    double left = (double)examples * NONZEROS * EPOCHS;
    const double made = left;
    struct shmtrain_store *store =
        shmt_handle_with("workers=%s mode=hogwild rate=1 schedule=constant epochs=%d item=1024 count-lost=%s%s", shape->workers,
                         EPOCHS, count, shape->window);
    shmt_handle_must(store, shmtrain_store_table(store, "counters", shape->rows, 1));
    shmt_handle_must(store, shmtrain_store_examples(store, examples));
    shmt_handle_must(store, shmtrain_store_run(store, count_down, (void *)shape));
    shmt_handle_must(store, shmtrain_store_read(store, 0, 0, shape->rows, value));
    *reported_out = 100 * shmtrain_store_report(store)->lost_updates;
    shmtrain_store_destroy(store);
    for (uint32_t i = 0; i < shape->rows; i++) left += (double)value[i];
    return 100 * left / made;
}

struct sized {
    const struct shape *shape;
    uint32_t examples;
};

static void round_of(void *arg, double *x) {
    const struct sized *s = arg;
    if (!s->shape->window[0]) {
        x[0] = run(s->shape, "0", s->examples, &x[2]);
        x++;
    }
    x[0] = run(s->shape, "1", s->examples, &x[1]);
}

static void measure(const struct shape *shape, const struct bench_options *o) {
    struct shmt_figure figure[] = {{.name = "by the parameters, without counting", .unit = "%"},
                                   {.name = "by the parameters, with count-lost", .unit = "%"},
                                   {.name = "as count-lost reports it", .unit = "%"}};
    struct sized s = {shape, o->quick ? shape->examples / 20 : shape->examples};
    const struct bench_options any = {.quick = true, .rounds = o->rounds}; /* counts do not depend on what others do */
    const uint32_t first = shape->window[0] ? 1 : 0;                       /* runs that wait always count */
    bench_head("%s", shape->title);
    bench_rounds(&any, figure + first, 3 - first, round_of, &s);
    bench_show(figure + first, 3 - first);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 9);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) measure(&SHAPES[i], &o);
    return 0;
}
