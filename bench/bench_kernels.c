/* bench_kernels: how close one worker's pass over sparse examples comes to reading their bytes.
 *
 * usage: bench_kernels [features=47236] [nonzeros=74] [mbytes=0] [rounds=9] [shuffle=1] [write=racy|atomic|locked|aggregate]
 *                      [rule=sgd|momentum|adagrad|adam|ftrl] [rate=0.5] [l1=0] [l2=0] [cpu=auto|portable|avx2|avx512|neon]
 *                      [columns=frequency|given]
 *
 * The examples are those of builtin:sparse, in shared memory, 8 bytes per nonzero, `mbytes` MB of them (0: four times the
 * last-level cache), their columns ordered by frequency, as programs have them, or as given. The floor is the best of several
 * loops that only read these bytes. `lines` is a second floor, for tables that no cache holds: a loop that reads and then
 * writes each weight of an example, and asks for those of the examples to come; the best of several distances. `plain` is the
 * loop that one writes first: an example after the other, in the columns given, without asking for anything early. Against
 * these stands `each` with the logistic slope and loss, by work items of 1,024 examples in the order of an epoch, for several
 * sizes of group. Rounds are interleaved, because machines drift: each figure is the median over the rounds, each ratio the
 * median of the ratios within a round. The last column is the mean loss of the last round, when a group has trained for as many
 * epochs as there are rounds at a constant rate: larger groups use staler weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/runs/examples.h"
#include "data/order.h"
#include "math/logistic.h"
#include "update/kernels.h"
#include "update/path.h"

enum { ITEM = 1024, SEED = 1, AHEAD = 16 /* examples whose labels are asked for early */ };

static const uint32_t groups[] = {1, 2, 4, 8, 16, 32};
enum { N_GROUPS = sizeof groups / sizeof *groups };

struct options {
    unsigned long features, nonzeros, mbytes, rounds, shuffle;
    enum shmt_write write;
    enum shmt_rule_kind rule;
    float rate, l1, l2;
    enum shmt_cpu cpu;
    bool as_given;
};

struct examples {
    struct shmtrain_data data; /* ids: as the option says */
    const uint32_t *given;     /* (n_nonzeros) ids as they were given */
    uint32_t *order;
};

/* Ids become places, 0 being the most frequent feature's; by a counting sort, as keeping/places.c does it on a sample. */
static uint32_t *order_columns(const struct options *o, const struct shmtrain_data *data) {
    uint32_t *place = calloc(o->features, sizeof *place), *next = calloc(data->n_examples + 2, sizeof *next);
    uint32_t *id = shmt_measure_shared(data->n_nonzeros * sizeof *id);
    const uint64_t n = data->n_examples;
    if (!place || !next) bench_fail("not enough memory");
    for (uint64_t i = 0; i < data->n_nonzeros; i++) place[data->id[i]]++;
    for (uint64_t i = 0; i < o->features; i++) next[n - place[i] + 1]++;
    for (uint64_t c = 1; c <= n + 1; c++) next[c] += next[c - 1];
    for (uint64_t i = 0; i < o->features; i++) place[i] = next[n - place[i]]++;
    for (uint64_t i = 0; i < data->n_nonzeros; i++) id[i] = place[data->id[i]];
    free(place);
    free(next);
    return id;
}

static void make_examples(const struct options *o, struct examples *out) {
    const uint64_t bytes = o->mbytes ? o->mbytes * 1000000 : 4 * shmt_measure_cache_bytes();
    shmt_make_examples(bytes, o->features, o->nonzeros, &out->data);
    out->given = out->data.id;
    if (!o->as_given) out->data.id = order_columns(o, &out->data);
    out->order = shmt_measure_shared(out->data.n_examples * sizeof *out->order);
    const struct shmt_order order = {.seed = SEED, .n_examples = out->data.n_examples, .shuffle = o->shuffle != 0};
    shmt_order_fill(&order, 0, 0, (uint32_t)out->data.n_examples, out->order);
}

static double floor_ns(const struct examples *x) {
    const struct shmt_ranges read = shmt_ranges_of_examples(&x->data);
    return shmt_stream_ns(&read);
}

/* ---- the plain loop ---- */

static double plain_ns(const struct options *o, const struct examples *x, float *weight) {
    const uint64_t from = shmt_thread_ns();
    double loss = 0;
    for (uint64_t k = 0; k < x->data.n_examples; k++) {
        const uint64_t i = x->order[k], first = x->data.start[i], end = x->data.start[i + 1];
        float dot = weight[o->features];
        for (uint64_t j = first; j < end; j++) dot += weight[x->given[j]] * x->data.value[j];
        const float margin = x->data.label[i] * dot, step = o->rate * x->data.label[i] / (1 + expf(margin));
        loss += log1p(exp((double)-margin));
        for (uint64_t j = first; j < end; j++) weight[x->given[j]] += step * x->data.value[j];
        weight[o->features] += step;
    }
    volatile double sink = loss;
    (void)sink;
    return (double)(shmt_thread_ns() - from);
}

/* ---- the pass ---- */

struct slopes {
    const struct examples *x;
    const uint32_t *order;
    uint32_t n;
    double loss;
};

/* As the logistic model does it (models/logistic.c). */
static void slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct slopes *s = arg;
    float loss[SHMT_MAX_GROUP];
    const uint32_t *order = s->order + first;
    if (first + AHEAD < s->n) __builtin_prefetch(&s->x->data.label[order[AHEAD]]);
    for (uint32_t k = 0; k < n; k++) slope_out[k] = s->x->data.label[order[k]] * dot[k];
    shmt_logistic_many(n, slope_out, loss);
    for (uint32_t k = 0; k < n; k++) slope_out[k] *= s->x->data.label[order[k]];
    for (uint32_t k = 0; k < n; k++) s->loss += (double)loss[k];
}

static double pass_ns(const struct options *o, const struct examples *x, const struct shmt_span *span, uint32_t group,
                      double *loss_out) {
    const struct shmt_kernels *kernels = shmt_path_of(o->cpu)->find(o->write, o->rule, true, o->l1 > 0 || o->l2 > 0);
    const uint64_t from = shmt_thread_ns();
    const struct shmt_update update = {
        .rate = o->rate, .scale = 1, .l1 = o->l1, .l2 = o->l2, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .beta = 1};
    struct slopes s = {.x = x};
    for (uint64_t at = 0; at < x->data.n_examples; at += ITEM) {
        const struct shmtrain_csr item = {.size = sizeof(struct shmtrain_csr),
                                          .n = (uint32_t)(x->data.n_examples - at < ITEM ? x->data.n_examples - at : ITEM),
                                          .bias = 1,
                                          .start = x->data.start,
                                          .id = x->data.id,
                                          .value = x->data.value,
                                          .order = x->order + at};
        s.order = item.order;
        s.n = item.n;
        kernels->each(span, &item, group, slope, &s, &update);
    }
    *loss_out = s.loss / (double)x->data.n_examples;
    return (double)(shmt_thread_ns() - from);
}

static struct shmt_span make_span(const struct options *o) {
    const uint64_t rows = o->features + 1;
    const struct shmt_rule rule = {.kind = o->rule};
    const uint32_t planes = shmt_rule_planes(&rule, true);
    const bool live = o->write != SHMT_WRITE_AGGREGATE;
    float *weight = shmt_measure_shared(rows * sizeof *weight);
    struct shmt_span span = {.weight = weight,
                             .sink = live ? weight : shmt_measure_shared(rows * sizeof(float)),
                             .touched = live ? NULL : shmt_measure_shared(rows / SHMT_TOUCH_FLOATS + 1),
                             .state = live && planes > 0 ? shmt_measure_shared(planes * rows * sizeof(float)) : NULL,
                             .plane = rows,
                             .rows = rows,
                             .width = 1};
    if (o->write == SHMT_WRITE_LOCKED)
        span.locks = (struct shmt_locks){.word = shmt_measure_shared(65536 * sizeof(uint32_t)), .mask = 65535, .owner = 1};
    return span;
}

struct figures {
    struct shmt_figure floor, lines, plain, pass[N_GROUPS], of_floor[N_GROUPS], of_lines[N_GROUPS], of_plain[N_GROUPS];
    double loss[N_GROUPS];
};

static void measure(const struct options *o, const struct examples *x, struct figures *f) {
    struct shmt_span span[N_GROUPS], plain = make_span(o);
    for (int g = 0; g < N_GROUPS; g++) span[g] = make_span(o);
    for (unsigned long round = 0; round < o->rounds; round++) {
        const double floor = floor_ns(x), lines = shmt_lines_ns(&x->data, x->order, plain.sink),
                     first = plain_ns(o, x, plain.sink);
        shmt_figure_add(&f->floor, floor);
        shmt_figure_add(&f->lines, lines);
        shmt_figure_add(&f->plain, first);
        for (int g = 0; g < N_GROUPS; g++) {
            const double ns = pass_ns(o, x, &span[g], groups[g], &f->loss[g]);
            shmt_figure_add(&f->pass[g], ns);
            shmt_figure_add(&f->of_floor[g], ns / floor);
            shmt_figure_add(&f->of_lines[g], ns / lines);
            shmt_figure_add(&f->of_plain[g], ns / first);
        }
    }
}

static void run(const struct options *o, const struct examples *x) {
    struct figures *f = calloc(1, sizeof *f);
    if (!f) bench_fail("not enough memory");
    measure(o, x, f);
    const double n = (double)x->data.n_examples, nonzeros = (double)x->data.n_nonzeros,
                 floor_ns = shmt_figure_median(&f->floor);
    printf("%.0f examples, %.1f nonzeros each, %lu features, %.0f MB, path %s\n", n, nonzeros / n, o->features, nonzeros * 8e-6,
           shmt_cpu_name(o->cpu));
    printf("floor     %7.1f ns/example  (%.1f GB/s)\n", floor_ns / n, nonzeros * 8 / floor_ns);
    printf("lines     %7.1f ns/example\n", shmt_figure_median(&f->lines) / n);
    printf("plain     %7.1f ns/example\n", shmt_figure_median(&f->plain) / n);
    for (int g = 0; g < N_GROUPS; g++)
        printf("group %2u  %7.1f ns/example  of floor %5.2f, lines %5.2f, plain %5.2f  loss after %lu epochs %.4f\n", groups[g],
               shmt_figure_median(&f->pass[g]) / n, shmt_figure_median(&f->of_floor[g]), shmt_figure_median(&f->of_lines[g]),
               shmt_figure_median(&f->of_plain[g]), o->rounds, f->loss[g]);
    free(f);
}

static bool read_option(const char *text, struct options *o) {
    char word[16];
    if (strcmp(text, "columns=given") == 0 || strcmp(text, "columns=frequency") == 0) {
        o->as_given = text[strlen("columns=")] == 'g';
        return true;
    }
    if (sscanf(text, "write=%15s", word) == 1) return shmt_write_parse(word, &o->write, NULL) == 0;
    if (sscanf(text, "cpu=%15s", word) == 1) return shmt_cpu_parse("cpu", word, &o->cpu, NULL) == 0;
    if (sscanf(text, "rule=%15s", word) == 1) return shmt_rule_parse(word, &o->rule, NULL) == 0;
    return sscanf(text, "features=%lu", &o->features) == 1 || sscanf(text, "nonzeros=%lu", &o->nonzeros) == 1 ||
           sscanf(text, "mbytes=%lu", &o->mbytes) == 1 || sscanf(text, "rounds=%lu", &o->rounds) == 1 ||
           sscanf(text, "shuffle=%lu", &o->shuffle) == 1 || sscanf(text, "rate=%f", &o->rate) == 1 ||
           sscanf(text, "l1=%f", &o->l1) == 1 || sscanf(text, "l2=%f", &o->l2) == 1;
}

static void read_options(int n, char **text, struct options *o) {
    for (int i = 1; i < n; i++)
        if (!read_option(text[i], o)) bench_fail("see the head of bench/bench_kernels.c for the options");
    if (o->rounds < 1 || o->rounds > SHMT_MOST_ROUNDS) bench_fail("rounds: 1 to 99");
    if (o->nonzeros < 1) bench_fail("nonzeros: at least 1");
    if (!shmt_kernels_find(o->write, o->rule, true, false)) bench_fail("this rule cannot be written so");
}

int main(int argc, char **argv) {
    struct options o = {.features = 47236,
                        .nonzeros = 74,
                        .rounds = 9,
                        .shuffle = 1,
                        .write = SHMT_WRITE_RACY,
                        .rate = 0.5f,
                        .cpu = shmt_cpu_best()};
    struct examples x;
    read_options(argc, argv, &o);
    make_examples(&o, &x);
    run(&o, &x);
    return 0;
}
