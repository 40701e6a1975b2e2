/* bench_sync: what `sync` makes of two workers, by the size of its batches, and what its meetings and its lines cost.
 *
 * usage: bench_sync [--quick] [--rounds N]
 *
 * Two models: logistic regression on data with the shape of RCV1 (builtin:sparse, 74 of 47,236 features), and softmax on
 * builtin:dense (784 features, 10 classes); four times the last-level cache of each. For each size of a batch there are three
 * runs in a round, one right behind the other: one worker alone; two workers of one store; and two runs of one worker each, at
 * the same time, on the same cores, that share nothing: each with parameters of its own, half of the data, and batches of the
 * same size, so that each worker computes, adds and applies as much for an example. The shortest epoch of each run counts, but
 * for its first.
 *
 * Beside that stand the lines that must move, counted on the data, and what they would cost at the price of a line that is
 * measured in the same round (docs/performance.md has the formula): the share that is left when nothing else is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/runs/examples.h"
#include "bench/runs/training.h"
#include "base/atomic.h"
#include "sync/host.h"
#include "update/span.h"

enum { EPOCHS = 4, FEATURES = 47236, NONZEROS = 74, DENSE_FEATURES = 784, SIZES = 5, BATCHES_COUNTED = 8 };
static const uint32_t sizes[SIZES] = {64, 256, 1024, 4096, 16384};

/* ---- what a line costs that another core has written ---- */

enum { LINES = 4096, TURNS = 9 }; /* 256 KiB: in the second-level caches */

struct lines {
    struct shmt_meeting meeting;
    _Alignas(128) double ns; /* of one line: to read it, and to write it again */
    _Alignas(128) float at[LINES * SHMT_TOUCH_FLOATS];
};

/* What a batch does to a line of a gradient buffer or of the parameters: one writes all of it, the other reads it, the first
 * writes it again, for which it must be taken back. */
static void write_lines(struct lines *l) {
    for (uint32_t i = 0; i < LINES * SHMT_TOUCH_FLOATS; i++) l->at[i] += 1;
}

static void read_lines(struct lines *l) {
    float sum = 0;
    for (uint32_t i = 0; i < LINES; i++) sum += l->at[i * SHMT_TOUCH_FLOATS];
    volatile float sink = sum;
    (void)sink;
}

static double time_of(void (*work)(struct lines *l), struct lines *l) {
    const uint64_t from = shmt_now_ns();
    work(l);
    return (double)(shmt_now_ns() - from) / LINES;
}

static void lines_body(void *arg, uint32_t rank) {
    struct lines *l = arg;
    struct shmt_figure mine = {.name = "lines"};
    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 0) shmt_figure_add(&mine, time_of(write_lines, l));
        shmt_meet(&l->meeting, rank);
        if (rank == 1) shmt_figure_add(&mine, time_of(read_lines, l));
        shmt_meet(&l->meeting, rank);
    }
    if (rank == 0) l->ns = shmt_figure_median(&mine);
    shmt_meet(&l->meeting, rank);
    if (rank == 1) l->ns += shmt_figure_median(&mine);
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

/* The second worker's part of a batch begins at `from + n`, the batch behind it at `from + 2 n`. The first has the lower half
 * of the parameters: of this half it reads the other's gradients, and in the next batch it reads those parameters of the upper
 * half that were changed. */
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
    return (counted ? lines / counted : 0) + (double)n_lines / 128;
}

/* ---- runs ---- */

struct contest {
    const char *model;
    const struct shmtrain_data *data;
    struct shmt_timed *run;
    struct shmt_independent *independent;
    struct lines *lines;
    uint32_t batch;
    double moving; /* lines that each worker must get, per batch */
};

enum { SPEEDUP, OF_APART, ALLOWED, MOVED, LINE, ONE, APART, FIGURES };

/* What is left of the speed of the two who share nothing when a batch takes as much longer as its lines need: `ALLOWED`. */
static void round_of_size(void *arg, double *x) {
    const struct contest *c = arg;
    const double examples = (double)c->data->n_examples;
    char batch[16];
    snprintf(batch, sizeof batch, "%u", c->batch);
    struct shmt_timed_how how = {
        .model = c->model, .workers = "2", .mode = "sync", .batch = batch, .group = SHMTRAIN_MODEL_GROUP, .epochs = EPOCHS};
    shmt_timed_train(c->run, &how);
    const double two_ns = c->run->epoch_ns;
    how.workers = "1";
    shmt_independent_train(c->independent, &how);
    const double apart_ns = (c->independent->half[0]->epoch_ns + c->independent->half[1]->epoch_ns) / 2;
    shmt_timed_train(c->run, &how);
    const double one_ns = c->run->epoch_ns, batch_ns = apart_ns * c->batch / examples;
    c->lines->meeting = (struct shmt_meeting){0};
    shmt_helpers_run(2, lines_body, c->lines);
    x[SPEEDUP] = one_ns / two_ns;
    x[OF_APART] = apart_ns / two_ns;
    x[ALLOWED] = batch_ns / (batch_ns + c->moving * c->lines->ns);
    x[MOVED] = c->moving;
    x[LINE] = c->lines->ns;
    x[ONE] = one_ns / examples;
    x[APART] = one_ns / apart_ns;
}

/* What a size of batch came to: two workers as a multiple of one; as much as the lines allow; those who share nothing. */
struct outcome {
    double speedup, allowed, apart;
};

static void measure_size(struct contest *c, const struct bench_options *o, struct outcome *out) {
    char name[48];
    snprintf(name, sizeof name, "batch %u: two workers of one store", c->batch);
    struct shmt_figure f[FIGURES] = {[SPEEDUP] = {.name = name, .unit = "of one"},
                                     [OF_APART] = {.name = "  of two that share nothing", .unit = "of it"},
                                     [ALLOWED] = {.name = "  of the same, as the lines would have it", .unit = "of it"},
                                     [MOVED] = {.name = "  lines that each worker must get, per batch", .unit = "lines"},
                                     [LINE] = {.name = "  such a line, to read and to write again", .unit = "ns"},
                                     [ONE] = {.name = "  one worker", .unit = "ns/example"}};
    c->moving = moving_lines(c->data, c->batch);
    bench_rounds(o, f, FIGURES, round_of_size, c);
    bench_show(f, APART);
    *out = (struct outcome){.speedup = shmt_figure_median(&f[SPEEDUP]),
                            .apart = shmt_figure_median(&f[APART]),
                            .allowed = shmt_figure_median(&f[APART]) * shmt_figure_median(&f[ALLOWED])};
}

/* From 0 to 2 workers' worth: what was reached, up to what the lines allow, up to those who share nothing. */
static void plot(uint32_t batch, const struct outcome *x) {
    enum { COLUMNS = 48 };
    char bar[COLUMNS + 1];
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const double here = (i + 0.5) * 2 / COLUMNS;
        bar[i] = here < x->speedup ? '#' : here < x->allowed ? '+' : here < x->apart ? '.' : ' ';
    }
    bar[COLUMNS] = 0;
    printf("  %8u |%s| %.2f\n", batch, bar, x->speedup);
}

/* Of sizes[]: those of which each half of the data has one batch or more. */
static int n_sizes(uint64_t examples) {
    int n = 0;
    while (n < SIZES && sizes[n] <= examples / 2) n++;
    return n;
}

/* Whole batches only, of every size, in all of the data and in its halves: a short one would leave the second worker idle. */
static void measure(const char *model, const struct shmtrain_data *all, const struct bench_options *o) {
    const int n = n_sizes(all->n_examples);
    if (n == 0) bench_fail("too few examples");
    const uint64_t twice = 2 * (uint64_t)sizes[n - 1];
    const struct shmtrain_data part = shmt_part_of_examples(all, 0, all->n_examples / twice * twice), *const data = &part;
    struct contest c = {.model = model,
                        .data = data,
                        .run = shmt_timed_make(data),
                        .independent = shmt_independent_make(data),
                        .lines = shmt_measure_shared(sizeof *c.lines)};
    struct outcome outcome[SIZES];
    for (int i = 0; i < n; i++) {
        c.batch = sizes[i];
        measure_size(&c, o, &outcome[i]);
    }
    bench_head("  speed-up over one worker by batch, 0 to 2: # reached, + as the lines allow, . two that share nothing");
    for (int i = 0; i < n; i++) plot(sizes[i], &outcome[i]);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    struct shmtrain_data data;
    if (shmt_measure_cores() < 2) {
        bench_head("sync: one core, and nothing to say about two workers");
        return 0;
    }
    shmt_make_dense(bench_far_bytes(&o), DENSE_FEATURES, &data);
    bench_head("sync: softmax, %llu dense examples of %u features, %u classes", (unsigned long long)data.n_examples,
               data.n_features, data.n_labels);
    measure("softmax", &data, &o);
    shmt_make_examples(bench_far_bytes(&o), FEATURES, NONZEROS, &data);
    bench_head("sync: logistic regression, %llu examples, %.1f of %u features each", (unsigned long long)data.n_examples,
               (double)data.n_nonzeros / (double)data.n_examples, data.n_features);
    measure(NULL, &data, &o);
    bench_show_noise();
    return 0;
}
