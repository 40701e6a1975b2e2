/* bench_async: what asynchronous training makes of two workers, against two that share nothing.
 *
 * usage: bench_async [rcv1|large|dense] [--quick] [--rounds N]        (without a shape: all three)
 *
 * Three shapes: RCV1's (builtin:sparse: 74 of 47,236 features); the same with 2^26 features, four times as many examples, and
 * without sync, whose updates go over all parameters; and a9a's (14 of 123 features, all
 * ones, so that everybody writes everything), from a file that is made for it. In each round there are five runs of the
 * library as the program makes them, one right behind the other: one worker; two workers with one copy of the parameters, which
 * is plain Hogwild!; two workers as `--mode async` chooses; two workers in `sync`; and two runs of one worker each, at the same
 * time, on the same cores, that share nothing, each with half of the examples. An epoch's time is the median of those after
 * the first. Validation losses are compared after each epoch: the largest excess over one worker's counts.
 *
 * Beside that stands how long a cache line takes to the other core and back in the same round. */
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench/floors/floors.h"
#include "bench/runs/options.h"
#include "base/random.h"

enum { EPOCHS = 6, NONZEROS = 74, ATTRIBUTES = 14, ATTRIBUTE_VALUES = 123, NAME = 512 };

/* ---- one run ---- */

/* What is trained on, and what came out. In shared memory. */
struct run {
    const char *data, *seed, *valid; /* valid: an option more; "": what belongs to generated data */
    uint32_t n_epochs;
    double epoch_s; /* median, without the first */
    double valid_loss[EPOCHS];
};

static void collect(const struct shmtrain_report *report, struct run *out) {
    struct shmt_figure seconds = {.name = "epochs"};
    out->n_epochs = report->n_epochs;
    for (uint32_t e = 0; e < report->n_epochs && e < EPOCHS; e++) {
        out->valid_loss[e] = report->epoch[e].valid_loss;
        if (e > 0) shmt_figure_add(&seconds, report->epoch[e].seconds);
    }
    out->epoch_s = shmt_figure_median(&seconds);
}

struct way {
    const char *title, *options;
};

static void train(struct run *run, const char *workers, const struct way *way) {
    struct shmtrain_store *store =
        shmt_handle_with("workers=%s epochs=%d seed=%s%s %s", workers, EPOCHS, run->seed, run->valid, way->options);
    shmt_handle_must(store, shmtrain_store_train(store, run->data));
    collect(shmtrain_store_report(store), run);
    shmtrain_store_destroy(store);
}

/* ---- two that share nothing ---- */

struct apart {
    struct run half[2];
    const struct way *way;
};

static void apart_body(void *arg, uint32_t rank) {
    struct apart *a = arg;
    train(&a->half[rank], "1", a->way);
}

/* ---- shapes ---- */

struct shape {
    const char *name, *title;
    const char *valid;            /* as in a run */
    char whole[NAME], half[NAME]; /* data */
    bool is_file;
    int ways; /* the first of WAYS */
};

/* One attribute after the other has one of its values, as in a9a: the first values of each are the frequent ones. */
static void write_example(FILE *file, uint64_t i) {
    double margin = 0;
    char text[8 * ATTRIBUTES];
    int at = 0;
    for (uint32_t a = 0; a < ATTRIBUTES; a++) {
        const uint32_t first = a * ATTRIBUTE_VALUES / ATTRIBUTES, n = (a + 1) * ATTRIBUTE_VALUES / ATTRIBUTES - first;
        const double u = (double)(shmt_mix64(i * ATTRIBUTES + a) >> 11) * 0x1p-53;
        const uint32_t feature = first + (uint32_t)(u * u * n);
        margin += (double)(shmt_mix64(feature) >> 11) * 0x1p-52 - 1;
        at += snprintf(text + at, sizeof text - (size_t)at, " %u:1", feature + 1);
    }
    const double coin = (double)(shmt_mix64(~i) >> 11) * 0x1p-53;
    fprintf(file, "%s%s\n", coin < 1 / (1 + exp(-margin)) ? "+1" : "-1", text);
}

static void write_examples(char *path, const char *folder, uint64_t n) {
    snprintf(path, NAME, "%s/bench_async.XXXXXX", folder);
    const int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) bench_fail("no file could be made in %s: set TMPDIR", folder);
    for (uint64_t i = 0; i < n; i++) write_example(file, i);
    if (fclose(file) != 0) {
        unlink(path);
        bench_fail("no room for %llu examples in %s: set TMPDIR", (unsigned long long)n, folder);
    }
}

static void make_sparse(struct shape *s, uint64_t features, uint64_t bytes) {
    const uint64_t n = bytes / (8 * NONZEROS) + 1;
    const char *form = "builtin:sparse:examples=%llu,features=%llu,nonzeros=%d";
    snprintf(s->whole, NAME, form, (unsigned long long)n, (unsigned long long)features, NONZEROS);
    snprintf(s->half, NAME, form, (unsigned long long)(n / 2), (unsigned long long)features, NONZEROS);
}

static void make_dense(struct shape *s, const struct bench_options *o) {
    const uint64_t n = bench_far_bytes(o) / (sizeof(uint32_t) * ATTRIBUTES) + 1;
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    write_examples(s->whole, folder, n);
    write_examples(s->half, folder, n / 2);
    s->is_file = true;
}

static void make_shape(struct shape *s, const struct bench_options *o) {
    if (strcmp(s->name, "rcv1") == 0) make_sparse(s, o->quick ? 4724 : 47236, bench_far_bytes(o));
    if (strcmp(s->name, "large") == 0) make_sparse(s, o->quick ? 1 << 16 : 1 << 26, 4 * bench_far_bytes(o));
    if (strcmp(s->name, "dense") == 0) make_dense(s, o);
}

static void forget_shape(const struct shape *s) {
    if (!s->is_file) return;
    unlink(s->whole);
    unlink(s->half);
}

/* ---- rounds ---- */

enum { PLAIN, CHOSEN, SYNC, WAYS };
static const struct way WAY[WAYS] = {
    [PLAIN] = {"plain Hogwild, 2 workers", "mode=async replicas=one"},
    [CHOSEN] = {"async as it chooses, 2 workers", "mode=async"},
    [SYNC] = {"sync, batch 4096, 2 workers", "mode=sync batch=4096"},
};

struct contest {
    struct run *one, *two[WAYS];
    int ways;
    struct apart *apart;
    struct shmt_floors *floors;
};

static struct run *make_run(const struct shape *s) {
    struct run *run = shmt_measure_shared(sizeof *run);
    *run = (struct run){.data = s->whole, .valid = s->valid, .seed = "1"};
    return run;
}

static void make_contest(const struct shape *s, struct contest *out) {
    out->ways = s->ways;
    out->one = make_run(s);
    for (int w = 0; w < WAYS; w++) out->two[w] = make_run(s);
    out->apart = shmt_measure_shared(sizeof *out->apart);
    out->floors = shmt_floors_make(&(struct shmt_floor_sizes){.bytes = 4096, .trips = 10000, .matches = 2});
    out->apart->way = &WAY[CHOSEN];
    for (int h = 0; h < 2; h++)
        out->apart->half[h] = (struct run){.data = s->half, .valid = s->valid, .seed = h == 0 ? "1" : "2"};
}

/* The largest excess of the two workers' loss over one worker's after any epoch, in percent. */
static double excess(const struct run *two, const struct run *one) {
    double most = -INFINITY;
    for (uint32_t e = 0; e < one->n_epochs && e < two->n_epochs; e++)
        most = fmax(most, 100 * (two->valid_loss[e] / one->valid_loss[e] - 1));
    return most;
}

static void round_of(void *arg, double *x) {
    struct contest *c = arg;
    *x++ = shmt_floor_line(c->floors);
    train(c->one, "1", &WAY[CHOSEN]);
    for (int w = 0; w < c->ways; w++) train(c->two[w], "2", &WAY[w]);
    shmt_helpers_run(2, apart_body, c->apart);
    const double one_s = c->one->epoch_s, apart_s = fmax(c->apart->half[0].epoch_s, c->apart->half[1].epoch_s);
    *x++ = 1e3 * one_s;
    *x++ = one_s / apart_s;
    for (int w = 0; w < c->ways; w++) {
        *x++ = one_s / c->two[w]->epoch_s;
        *x++ = apart_s / c->two[w]->epoch_s;
        *x++ = excess(c->two[w], c->one);
    }
}

static void measure(struct shape *s, const struct bench_options *o) {
    struct shmt_figure figure[3 + 3 * WAYS] = {{.name = "cache line to the other core and back", .unit = "ns"},
                                               {.name = "one worker", .unit = "ms/epoch"},
                                               {.name = "two that share nothing", .unit = "of one"}},
                                      *f = figure + 3;
    struct contest c;
    make_shape(s, o);
    make_contest(s, &c);
    for (int w = 0; w < c.ways; w++) {
        *f++ = (struct shmt_figure){.name = WAY[w].title, .unit = "of one"};
        *f++ = (struct shmt_figure){.name = "  of two that share nothing", .unit = "of it"};
        *f++ = (struct shmt_figure){.name = "  validation loss above one worker's, at most", .unit = "percent"};
    }
    bench_head("async: %s", s->title);
    bench_rounds(o, figure, (uint32_t)(f - figure), round_of, &c);
    forget_shape(s);
    bench_show(figure, (uint32_t)(f - figure));
}

int main(int argc, char **argv) {
    struct shape shape[] = {
        {.name = "rcv1", .title = "RCV1's shape, 74 of 47,236 features", .valid = "", .ways = WAYS},
        {.name = "large", .title = "74 of 2^26 features", .valid = "", .ways = SYNC},
        {.name = "dense", .title = "a9a's shape, 14 of 123 features, all ones", .valid = " valid=0.02", .ways = WAYS}};
    /* The name of a shape, if there is one, comes before the common options. */
    const char *only = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    const int skipped = only ? 1 : 0;
    const struct bench_options o = bench_options_read(argc - skipped, argv + skipped, 15);
    bool found = false;
    if (shmt_measure_cores() < 2) {
        bench_head("async: one core, and nothing to say about two");
        return 0;
    }
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        if (only && strcmp(only, shape[i].name) != 0) continue;
        found = true;
        measure(&shape[i], &o);
    }
    if (!found) bench_fail("no shape \"%s\": rcv1, large, or dense", only);
    bench_show_noise();
    return 0;
}
