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
#include <sys/mman.h>
#include <time.h>

#include "bench.h"
#include "data/order.h"
#include "data/source.h"
#include "math/logistic.h"
#include "store/kernels.h"
#include "store/path.h"

enum { ITEM = 1024, MAX_ROUNDS = 99, SEED = 1, AHEAD = 16 /* examples whose labels are asked for early */ };

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
    struct shmt_arrays arrays;
    uint64_t n, n_nonzeros;
    uint32_t *order;
    float *sign;     /* the labels, -1 and 1 */
    uint32_t *given; /* (n_nonzeros) ids as they were given; arrays.id: as the option says */
};

static void give_up(const char *what) {
    fprintf(stderr, "bench_kernels: %s\n", what);
    exit(1);
}

/* Small pages shared with children, as the segment's are. */
static void *shared(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) give_up("not enough memory");
    return at;
}

/* sysconf asks the processor, which in a virtual machine may speak of a larger one; the kernel knows better. */
static unsigned long last_level_cache(void) {
    unsigned long kib = 0;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (file) {
        if (fscanf(file, "%luK", &kib) != 1) kib = 0;
        fclose(file);
    }
    return kib > 0 ? kib << 10 : 32ul << 20;
}

/* Ids become places, 0 being the most frequent feature's; by a counting sort, as api/places.c does it on a sample. */
static void order_columns(const struct options *o, struct examples *x) {
    uint32_t *place = calloc(o->features, sizeof *place), *next = calloc(x->n + 2, sizeof *next);
    if (!place || !next) give_up("not enough memory");
    for (uint64_t i = 0; i < x->n_nonzeros; i++) place[x->given[i]]++;
    for (uint64_t i = 0; i < o->features; i++) next[x->n - place[i] + 1]++;
    for (uint64_t c = 1; c <= x->n + 1; c++) next[c] += next[c - 1];
    for (uint64_t i = 0; i < o->features; i++) place[i] = next[x->n - place[i]]++;
    for (uint64_t i = 0; i < x->n_nonzeros; i++) x->arrays.id[i] = place[x->given[i]];
    free(place);
    free(next);
}

static void make_examples(const struct options *o, struct examples *out) {
    char name[128];
    struct shmt_source *source = NULL;
    struct shmt_error e = {0};
    struct shmt_part *part = calloc(1, sizeof *part);
    const uint64_t n = o->mbytes * 1000000 / (8 * o->nonzeros);
    snprintf(name, sizeof name, "builtin:sparse:examples=%llu,features=%lu,nonzeros=%lu", (unsigned long long)n, o->features,
             o->nonzeros);
    if (!part || shmt_source_open(name, SEED, false, &source, &e) < 0) give_up(e.text);
    if (shmt_source_count(source, &SHMT_ALL_COLUMNS, 0, 1, NULL, part) < 0) give_up(part->error.text);
    out->n = part->n_examples;
    out->n_nonzeros = part->n_nonzeros;
    out->arrays = (struct shmt_arrays){.start = shared((out->n + 1) * sizeof(uint64_t)),
                                       .id = shared(out->n_nonzeros * sizeof(uint32_t)),
                                       .value = shared(out->n_nonzeros * sizeof(float)),
                                       .label = shared(out->n * sizeof(float)),
                                       .columns = SHMT_ALL_COLUMNS};
    if (shmt_source_fill(source, 0, 1, part, &out->arrays, &e) < 0) give_up(e.text);
    shmt_source_close(source);
    free(part);
    out->given = out->arrays.id;
    if (!o->as_given) {
        out->arrays.id = shared(out->n_nonzeros * sizeof *out->arrays.id);
        order_columns(o, out);
    }
    out->sign = out->arrays.label;
    out->order = shared(out->n * sizeof *out->order);
    const struct shmt_order order = {.seed = SEED, .n_examples = out->n, .shuffle = o->shuffle != 0};
    shmt_order_fill(&order, 0, 0, (uint32_t)out->n, out->order);
}

static double floor_ns(const struct examples *x) {
    const uint64_t bytes = x->n_nonzeros * 4;
    const struct shmt_ranges read = {.at = {x->arrays.id, x->arrays.value}, .bytes = {bytes, bytes}};
    return shmt_stream_ns(&read);
}

static double lines_ns(const struct examples *x, float *weight) {
    const struct shmtrain_data data = {.size = sizeof(struct shmtrain_data),
                                       .n_examples = x->n,
                                       .n_nonzeros = x->n_nonzeros,
                                       .start = x->arrays.start,
                                       .id = x->arrays.id,
                                       .value = x->arrays.value};
    return shmt_lines_ns(&data, x->order, weight);
}

/* ---- the plain loop ---- */

static double plain_ns(const struct options *o, const struct examples *x, float *weight) {
    const uint64_t from = shmt_thread_ns();
    double loss = 0;
    for (uint64_t k = 0; k < x->n; k++) {
        const uint64_t i = x->order[k], first = x->arrays.start[i], end = x->arrays.start[i + 1];
        float dot = weight[o->features];
        for (uint64_t j = first; j < end; j++) dot += weight[x->given[j]] * x->arrays.value[j];
        const float margin = x->sign[i] * dot, step = o->rate * x->sign[i] / (1 + expf(margin));
        loss += log1p(exp((double)-margin));
        for (uint64_t j = first; j < end; j++) weight[x->given[j]] += step * x->arrays.value[j];
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
    if (first + AHEAD < s->n) __builtin_prefetch(&s->x->sign[order[AHEAD]]);
    for (uint32_t k = 0; k < n; k++) slope_out[k] = s->x->sign[order[k]] * dot[k];
    shmt_logistic_many(n, slope_out, loss);
    for (uint32_t k = 0; k < n; k++) slope_out[k] *= s->x->sign[order[k]];
    for (uint32_t k = 0; k < n; k++) s->loss += (double)loss[k];
}

static double pass_ns(const struct options *o, const struct examples *x, const struct shmt_span *span, uint32_t group,
                      double *loss_out) {
    const struct shmt_kernels *kernels = shmt_path_of(o->cpu)->find(o->write, o->rule, true, o->l1 > 0 || o->l2 > 0);
    const uint64_t from = shmt_thread_ns();
    const struct shmt_update update = {
        .rate = o->rate, .scale = 1, .l1 = o->l1, .l2 = o->l2, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .beta = 1};
    struct slopes s = {.x = x};
    for (uint64_t at = 0; at < x->n; at += ITEM) {
        const struct shmtrain_csr item = {.size = sizeof(struct shmtrain_csr),
                                          .n = (uint32_t)(x->n - at < ITEM ? x->n - at : ITEM),
                                          .bias = 1,
                                          .start = x->arrays.start,
                                          .id = x->arrays.id,
                                          .value = x->arrays.value,
                                          .order = x->order + at};
        s.order = item.order;
        s.n = item.n;
        kernels->each(span, &item, group, slope, &s, &update);
    }
    *loss_out = s.loss / (double)x->n;
    return (double)(shmt_thread_ns() - from);
}

static struct shmt_span make_span(const struct options *o) {
    const uint64_t rows = o->features + 1;
    const struct shmt_rule rule = {.kind = o->rule};
    const uint32_t planes = shmt_rule_planes(&rule, true);
    const bool live = o->write != SHMT_WRITE_AGGREGATE;
    float *weight = shared(rows * sizeof *weight);
    struct shmt_span span = {.weight = weight,
                             .sink = live ? weight : shared(rows * sizeof(float)),
                             .touched = live ? NULL : shared(rows / SHMT_TOUCH_FLOATS + 1),
                             .state = live && planes > 0 ? shared(planes * rows * sizeof(float)) : NULL,
                             .plane = rows,
                             .rows = rows,
                             .width = 1};
    if (o->write == SHMT_WRITE_LOCKED)
        span.locks = (struct shmt_locks){.word = shared(65536 * sizeof(uint32_t)), .mask = 65535, .owner = 1};
    return span;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *x, unsigned long n) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, compare);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

struct figures {
    double floor[MAX_ROUNDS], lines[MAX_ROUNDS], plain[MAX_ROUNDS];
    double pass[N_GROUPS][MAX_ROUNDS], of_floor[N_GROUPS][MAX_ROUNDS], of_lines[N_GROUPS][MAX_ROUNDS],
        of_plain[N_GROUPS][MAX_ROUNDS];
    double loss[N_GROUPS];
};

static void measure(const struct options *o, const struct examples *x, struct figures *f) {
    struct shmt_span span[N_GROUPS], plain = make_span(o);
    for (int g = 0; g < N_GROUPS; g++) span[g] = make_span(o);
    for (unsigned long round = 0; round < o->rounds; round++) {
        f->floor[round] = floor_ns(x);
        f->lines[round] = lines_ns(x, plain.sink);
        f->plain[round] = plain_ns(o, x, plain.sink);
        for (int g = 0; g < N_GROUPS; g++) {
            const double ns = f->pass[g][round] = pass_ns(o, x, &span[g], groups[g], &f->loss[g]);
            f->of_floor[g][round] = ns / f->floor[round];
            f->of_lines[g][round] = ns / f->lines[round];
            f->of_plain[g][round] = ns / f->plain[round];
        }
    }
}

static void run(const struct options *o, const struct examples *x) {
    struct figures *f = calloc(1, sizeof *f);
    if (!f) give_up("not enough memory");
    measure(o, x, f);
    const double n = (double)x->n, floor_ns = median(f->floor, o->rounds);
    printf("%llu examples, %.1f nonzeros each, %lu features, %.0f MB, path %s\n", (unsigned long long)x->n,
           (double)x->n_nonzeros / n, o->features, (double)x->n_nonzeros * 8e-6, shmt_cpu_name(o->cpu));
    printf("floor     %7.1f ns/example  (%.1f GB/s)\n", floor_ns / n, (double)x->n_nonzeros * 8 / floor_ns);
    printf("lines     %7.1f ns/example\n", median(f->lines, o->rounds) / n);
    printf("plain     %7.1f ns/example\n", median(f->plain, o->rounds) / n);
    for (int g = 0; g < N_GROUPS; g++)
        printf("group %2u  %7.1f ns/example  of floor %5.2f, lines %5.2f, plain %5.2f  loss after %lu epochs %.4f\n", groups[g],
               median(f->pass[g], o->rounds) / n, median(f->of_floor[g], o->rounds), median(f->of_lines[g], o->rounds),
               median(f->of_plain[g], o->rounds), o->rounds, f->loss[g]);
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
        if (!read_option(text[i], o)) give_up("see the head of bench/bench_kernels.c for the options");
    if (o->rounds < 1 || o->rounds > MAX_ROUNDS) give_up("rounds: 1 to 99");
    if (o->nonzeros < 1) give_up("nonzeros: at least 1");
    if (!shmt_kernels_find(o->write, o->rule, true, false)) give_up("this rule cannot be written so");
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
    if (o.mbytes == 0) o.mbytes = last_level_cache() * 4 / 1000000 + 1;
    make_examples(&o, &x);
    run(&o, &x);
    return 0;
}
