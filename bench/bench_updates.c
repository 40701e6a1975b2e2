/* bench_updates: the update of `aggregate`, rule by rule, against moving the bytes that it must move.
 *
 * usage: bench_updates [--quick] [--rounds N]
 *
 * A rule reads and writes a weight and its words of state, and reads a gradient: 12, 20 or 28 bytes for each parameter. Its floor is a
 * loop that adds the gradient to as many arrays: the best of several, in the same round, over the same memory. Measured are the rules'
 * loops, called as backends call them, for blocks of 256 floats; what backends do around a block (find its table, keep what a death would
 * undo) comes on top. lamb goes over its table twice, and so does its floor: the first time it only reads. Updates
 * are those behind the first thousand of a run, when adam's first correction has become 1.
 * Tables are one of 64 MiB, which no cache holds, and one that with gradient and state fits into a second-level cache. Times are the
 * thread's processor time. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "ps/norm.h"
#include "update/path.h"

enum { BLOCK = 256, NEAR_FLOATS = 16 * 1024 + 96, FAR_FLOATS = (64 << 20) / 4 + 1056, QUICK_FLOATS = 4096, FIRST_STEP = 1000 };
/* no powers of two: planes that lie so far apart push each other out of the caches */

struct ground {
    struct shmt_spec spec;
    struct shmt_flat flat;
    const struct shmt_path *path;
    float *weight, *state, *grad;
    double *norm;
    uint64_t n;
    uint32_t planes, passes;
};

/* ---- floors ---- */

typedef float wide __attribute__((vector_size(32)));

/* Each of these is compiled for the number of planes, and for the processor. */
static inline __attribute__((always_inline)) void add_to(float *to, const wide *g) {
    wide x;
    memcpy(&x, to, sizeof x);
    x += *g;
    memcpy(to, &x, sizeof x);
}

static inline __attribute__((always_inline)) void add_all(const struct ground *of, uint32_t planes, uint32_t ahead) {
    float *const w = of->weight, *const state = of->state;
    for (uint64_t i = 0; i < of->n; i += 8) {
        wide g;
        memcpy(&g, of->grad + i, sizeof g);
        if (ahead > 0 && i % 16 == 0) {
            __builtin_prefetch(of->grad + i + ahead);
            __builtin_prefetch(w + i + ahead, 1);
            for (uint32_t p = 0; p < planes; p++) __builtin_prefetch(state + p * of->n + i + ahead, 1);
        }
        add_to(w + i, &g);
        for (uint32_t p = 0; p < planes; p++) add_to(state + p * of->n + i, &g);
    }
}

static inline __attribute__((always_inline)) void add_planes(const struct ground *of, uint32_t ahead) {
    if (of->planes == 0) add_all(of, 0, ahead);
    if (of->planes == 1) add_all(of, 1, ahead);
    if (of->planes == 2) add_all(of, 2, ahead);
}

static void add_plainly(const struct ground *of) { add_planes(of, 0); }
static void add_early(const struct ground *of) { add_planes(of, 256); }
#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_avx2(const struct ground *of) { add_planes(of, 0); }
__attribute__((target("avx2"))) static void add_avx2_early(const struct ground *of) { add_planes(of, 256); }
#endif

static double add_ns(const struct ground *of, void (*add)(const struct ground *)) {
    const uint64_t from = shmt_thread_ns();
    for (uint32_t pass = 0; pass < of->passes; pass++) add(of);
    return (double)(shmt_thread_ns() - from);
}

/* What lamb's first pass must read: weights, gradients and two planes. */
static double read_ns(const struct ground *of) {
    const struct shmt_ranges one = {{of->weight, of->grad}, {of->n * sizeof(float), of->n * sizeof(float)}},
                             two = {{of->state}, {2 * of->n * sizeof(float)}};
    double ns = 0;
    for (uint32_t pass = 0; pass < of->passes; pass++) ns += shmt_stream_ns(&one) + shmt_stream_ns(&two);
    return ns;
}

static double floor_ns(const struct ground *of) {
    double best = fmin(add_ns(of, add_plainly), add_ns(of, add_early));
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) best = fmin(best, fmin(add_ns(of, add_avx2), add_ns(of, add_avx2_early)));
#endif
    return shmt_norm_sums(&of->spec) > 0 ? best + read_ns(of) : best;
}

/* ---- updates ---- */

static void update_once(const struct ground *of, uint64_t step) {
    struct shmt_norms norms;
    struct shmt_update u;
    shmt_update_make(&of->spec.rule, 1e-3f, FIRST_STEP + step, &u);
    u.scale = 0.5f;
    if (of->norm) {
        shmt_norm_measure(&of->spec, &of->flat, of->weight, of->state, of->grad, 0, of->n, &u, of->norm);
        shmt_norm_take(&of->spec, &of->flat, of->norm, &norms, &u);
    }
    u = shmt_spec_tune(&of->spec, 0, true, &u);
    for (uint64_t at = 0; at < of->n; at += BLOCK) {
        const uint64_t n = of->n - at < BLOCK ? of->n - at : BLOCK;
        of->path->apply(of->spec.rule.kind, of->weight + at, of->state + at, of->n, of->grad + at, n, &u);
    }
}

static double update_ns(const struct ground *of) {
    const uint64_t from = shmt_thread_ns();
    for (uint32_t pass = 0; pass < of->passes; pass++) update_once(of, pass);
    return (double)(shmt_thread_ns() - from);
}

/* Numbers that no rule makes infinite or very small. */
static void fill(const struct ground *of) {
    for (uint64_t i = 0; i < of->n; i++) {
        of->weight[i] = 0.01f * (float)(i % 7 + 1);
        of->grad[i] = i % 2 ? -0.001f : 0.001f;
        for (uint32_t p = 0; p < of->planes; p++) of->state[p * of->n + i] = 0.01f;
    }
}

static void round_of(void *arg, double *x) {
    const struct ground *of = arg;
    const double words = 3 + 2 * of->planes + (of->norm ? 2 + of->planes : 0);
    const double bytes = words * sizeof(float) * (double)of->n * of->passes;
    x[0] = bytes / floor_ns(of);
    fill(of); /* else the floor's sums go on growing */
    x[1] = bytes / update_ns(of);
    x[2] = x[1] / x[0];
}

static void measure(const struct bench_options *o, struct ground *of, enum shmt_rule_kind kind) {
    struct shmt_figure figures[] = {{.name = "moving the bytes", .unit = "GB/s"},
                                    {.name = shmt_rule_name(kind), .unit = "GB/s"},
                                    {.name = "an update against moving its bytes", .unit = "of it"}};
    of->spec = (struct shmt_spec){.rule = {.kind = kind,
                                           .momentum = 0.9f,
                                           .beta2 = 0.999f,
                                           .epsilon = 1e-8f,
                                           .beta = 1,
                                           .rho = 0.9f,
                                           .weight_decay = kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB ? 0.01f : 0},
                                  .cpu = shmt_cpu_best(),
                                  .n_tables = 1,
                                  .table = {{.rows = of->n, .width = 1}},
                                  .l2_rows = {of->n}};
    of->planes = shmt_rule_planes(&of->spec.rule, false);
    of->flat = (struct shmt_flat){.n = of->n};
    of->norm =
        shmt_norm_sums(&of->spec) > 0 ? shmt_measure_shared(shmt_norm_parts(&of->spec, &of->flat) * sizeof(double)) : NULL;
    fill(of);
    bench_rounds(o, figures, 3, round_of, of);
    bench_show(figures, 3);
    if (of->norm) shmt_measure_unshare(of->norm, shmt_norm_parts(&of->spec, &of->flat) * sizeof(double));
}

static void measure_all(const struct bench_options *o, uint64_t n, uint32_t passes) {
    struct ground of = {.path = shmt_path_of(shmt_cpu_best()), .n = n, .passes = passes};
    of.weight = shmt_measure_shared(n * sizeof(float));
    of.grad = shmt_measure_shared(n * sizeof(float));
    of.state = shmt_measure_shared(2 * n * sizeof(float));
    bench_head("updates of %.2f MiB of parameters, path %s", (double)n * 4 / (1 << 20), shmt_cpu_name(shmt_cpu_best()));
    for (uint32_t kind = 0; kind < SHMT_N_RULES; kind++) measure(o, &of, kind);
    shmt_measure_unshare(of.weight, n * sizeof(float));
    shmt_measure_unshare(of.grad, n * sizeof(float));
    shmt_measure_unshare(of.state, 2 * n * sizeof(float));
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 9);
    measure_all(&o, o.quick ? QUICK_FLOATS : NEAR_FLOATS, o.quick ? 1 : 100);
    measure_all(&o, o.quick ? 2 * QUICK_FLOATS : FAR_FLOATS, 1);
    bench_show_noise();
    return 0;
}
