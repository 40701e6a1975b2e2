/* bench_sync: what `sync` makes of two workers, by the size of its batches, and what its meetings and its lines cost.
 *
 * usage: bench_sync [--quick] [--rounds N]
 *
 * Two models: logistic regression on data with the shape of RCV1 (builtin:sparse, 74 of 47,236 features), and softmax on
 * builtin:dense (784 features, 10 classes); four times the last-level cache of each. For each size of a batch there are three
 * runs in a round, one right behind the other: one worker alone; two workers of one store; and two runs of one worker each, at
 * the same time, on the same cores, that share nothing: each with parameters of its own, half of the data, and batches of the
 * same size, so that each worker computes, adds and applies as much for an example. "Of independent" is how fast the two of one
 * store are, as a share of the two that share nothing. The shortest epoch of each run counts, but for its first.
 *
 * Beside that stand the lines that must move, counted on the data, and what they would cost at the price of a line that is
 * measured in the same round (docs/performance.md has the formula): the share that is left when nothing else is lost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "examples.h"
#include "store/span.h"
#include "training.h"

enum { EPOCHS = 4, FEATURES = 47236, NONZEROS = 74, DENSE_FEATURES = 784, SIZES = 5, BATCHES_COUNTED = 8 };
static const uint32_t sizes[SIZES] = {64, 256, 1024, 4096, 16384};

/* ---- what a line costs that another core has written ---- */

enum { LINES = 4096, TURNS = 9 }; /* 256 KiB: in the second-level caches */

struct lines {
    struct bench_meeting meeting;
    _Alignas(128) double ns; /* of one line: to read it, and to write it again */
    _Alignas(128) float at[LINES * SHMT_TOUCH_FLOATS];
};

/* What a batch does to a line of a gradient buffer: one writes it, the other reads it, the first writes it again. */
static void lines_body(void *arg, uint32_t rank) {
    struct lines *l = arg;
    struct bench_figure read = {0}, write = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        const uint64_t from = shmt_now_ns();
        float sum = 0;
        if (rank == 0)
            for (uint32_t i = 0; i < LINES; i++) l->at[i * SHMT_TOUCH_FLOATS] += 1;
        if (rank == 0) bench_add(&write, (double)(shmt_now_ns() - from) / LINES);
        bench_meet(&l->meeting, rank);
        const uint64_t read_from = shmt_now_ns();
        if (rank == 1)
            for (uint32_t i = 0; i < LINES; i++) sum += l->at[i * SHMT_TOUCH_FLOATS];
        volatile float sink = sum;
        (void)sink;
        if (rank == 1) bench_add(&read, (double)(shmt_now_ns() - read_from) / LINES);
        bench_meet(&l->meeting, rank);
    }
    if (rank == 0) l->ns = bench_median(&write);
    bench_meet(&l->meeting, rank);
    if (rank == 1) l->ns += bench_median(&read);
}

/* ---- the lines of a batch that one worker must get from the other ---- */

/* A map of the lines of the parameters that some examples touch. */
static void touch(const struct shmtrain_data *data, uint64_t from, uint64_t to, uint8_t *map, uint64_t n_lines) {
    if (data->dense) {
        memset(map, 1, n_lines);
        return;
    }
    memset(map, 0, n_lines);
    for (uint64_t k = data->start[from]; k < data->start[to]; k++) map[data->id[k] / SHMT_TOUCH_FLOATS] = 1;
}

/* The second worker's part of a batch begins at `from + n`, the batch behind it at `from + 2 n`. The first has the lower half of
 * the parameters: of this half it reads the other's gradients, and in the next batch it reads those parameters of the upper half
 * that were changed. */
static double count_batch(const struct shmtrain_data *data, uint64_t from, uint64_t n, uint8_t *map[3], uint64_t n_lines) {
    uint64_t lines = 0;
    for (uint32_t i = 0; i < 3; i++) touch(data, from + i * n, from + (i + 1) * n, map[i], n_lines);
    for (uint64_t line = 0; line < n_lines / 2; line++) lines += map[1][line];
    for (uint64_t line = n_lines / 2; line < n_lines; line++) lines += (map[0][line] | map[1][line]) & map[2][line];
    return (double)lines;
}

static double moving_lines(const struct shmtrain_data *data, uint32_t batch) {
    const uint64_t floats = (uint64_t)data->n_features * (data->dense ? data->n_labels : 1), n = batch / 2,
                   n_lines = floats / SHMT_TOUCH_FLOATS + 1;
    uint8_t *map[3] = {malloc(n_lines), malloc(n_lines), malloc(n_lines)};
    double lines = 0;
    uint32_t counted = 0;
    if (!map[0] || !map[1] || !map[2]) bench_fail("no memory for maps");
    for (; counted < BATCHES_COUNTED && (counted + 1) * 3 * n <= data->n_examples; counted++)
        lines += count_batch(data, counted * 3 * n, n, map, n_lines);
    for (int i = 0; i < 3; i++) free(map[i]);
    /* Where there is a map of touched lines, the other half of it is read, too. */
    return (counted ? lines / counted : 0) + (double)(n_lines / 2) / 64;
}

/* ---- runs ---- */

struct contest {
    const char *model;
    const struct shmtrain_data *data;
    struct bench_training *run;
    struct bench_independent *independent;
};

struct times {
    double one_ns, two_ns, apart_ns; /* of an epoch of all of the data */
};

static void measure_times(struct contest *c, const char *batch, struct times *out) {
    struct bench_how how = {.model = c->model, .mode = "sync", .batch = batch, .group = SHMTRAIN_MODEL_GROUP, .epochs = EPOCHS};
    how.workers = "2";
    bench_train(c->run, &how);
    out->two_ns = c->run->epoch_ns;
    how.workers = "1";
    bench_train_independent(c->independent, &how);
    out->apart_ns = (c->independent->half[0]->epoch_ns + c->independent->half[1]->epoch_ns) / 2;
    bench_train(c->run, &how);
    out->one_ns = c->run->epoch_ns;
}

/* What is left of the speed of the two who share nothing when a batch takes as much longer as its lines need. */
static double predicted(const struct contest *c, const struct times *t, double lines, double line_ns, uint32_t batch) {
    const double batch_ns = t->apart_ns * batch / (double)c->data->n_examples;
    return batch_ns / (batch_ns + lines * line_ns);
}

static void measure_size(struct contest *c, uint32_t batch, struct lines *l, const struct bench_options *o) {
    char name[4][48], text[16];
    snprintf(text, sizeof text, "%u", batch);
    static const char *const form[4] = {"batch %u: two workers of one store", "  of independent",
                                        "  of independent, as the lines would have it", "  one worker"};
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], form[i], batch);
    struct bench_figure speedup = {.name = name[0], .unit = "of one"}, of = {.name = name[1], .unit = "of it"},
                        by_lines = {.name = name[2], .unit = "of it"}, one = {.name = name[3], .unit = "ns/example"},
                        moved = {.name = "  lines that each worker must get, per batch", .unit = "lines"},
                        line = {.name = "  such a line, to read and to write again", .unit = "ns"};
    const double lines = moving_lines(c->data, batch);
    while (of.n < o->rounds) {
        struct bench_round round;
        struct times t;
        bench_round_begin(&round);
        measure_times(c, text, &t);
        l->meeting = (struct bench_meeting){0};
        bench_run(2, lines_body, l);
        if (!bench_round_end(&round, o)) continue;
        bench_add(&speedup, t.one_ns / t.two_ns);
        bench_add(&of, t.apart_ns / t.two_ns);
        bench_add(&by_lines, predicted(c, &t, lines, l->ns, batch));
        bench_add(&one, t.one_ns / (double)c->data->n_examples);
        bench_add(&moved, lines);
        bench_add(&line, l->ns);
    }
    bench_show(&speedup);
    bench_show(&of);
    bench_show(&by_lines);
    bench_show(&moved);
    bench_show(&line);
    bench_show(&one);
}

static void measure(const char *model, const struct shmtrain_data *data, const struct bench_options *o) {
    struct contest c = {
        .model = model, .data = data, .run = bench_training_make(data), .independent = bench_independent_make(data)};
    struct lines *l = bench_shared(sizeof *l);
    for (int i = 0; i < SIZES; i++)
        if (sizes[i] <= data->n_examples / 2) measure_size(&c, sizes[i], l, o);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    struct shmtrain_data data;
    if (!bench_two_cores()) {
        bench_head("sync: one core, and nothing to say about two workers");
        return 0;
    }
    bench_make_dense(bench_far_bytes(&o), DENSE_FEATURES, &data);
    bench_head("sync: softmax, %llu dense examples of %u features, %u classes", (unsigned long long)data.n_examples,
               data.n_features, data.n_labels);
    measure("softmax", &data, &o);
    bench_make_examples(bench_far_bytes(&o), FEATURES, NONZEROS, &data);
    bench_head("sync: logistic regression, %llu examples, %.1f of %u features each", (unsigned long long)data.n_examples,
               (double)data.n_nonzeros / (double)data.n_examples, data.n_features);
    measure(NULL, &data, &o);
    bench_show_noise();
    return 0;
}
