/* Tests of the store: fast kernels of all write modes and rules against plain loops bit by bit, gradient buffers, tables.
 * What the rules compute is tested in test_store_rules.c, several workers at a time in test_store_live.c. */
#include "store_help.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels_reference.h"
#include "update/path.h"
#include "update/table.h"

/* What a push is made with, for literals. */
#define UPDATE(r, l) (&(const struct shmt_update){.rate = (r), .scale = 1, .l2 = (l)})

static void some_slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    uint32_t *next = arg;
    assert_int_equal(first, *next);
    *next += n;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = 0.3f * dot[k] - 0.01f * (float)(first + k);
}

/* One of all the ways in which kernels are asked for and called. */
struct variant {
    enum shmt_write write;
    enum shmt_rule_kind rule;
    bool values, l1, l2, decay, clip, bias, order, map, share, counted, locks;
    uint32_t n, group, at, n_dense;
};

static struct variant variant_of(struct dice *d) {
    static const uint32_t groups[] = {1, 2, 3, 8, 16, 64};
    struct variant v = {.values = roll(d, 2),
                        .l1 = roll(d, 3) == 0,
                        .l2 = roll(d, 2),
                        .decay = roll(d, 3) == 0,
                        .clip = roll(d, 3) == 0,
                        .bias = roll(d, 2),
                        .order = roll(d, 2),
                        .map = roll(d, 2),
                        .share = roll(d, 2),
                        .counted = roll(d, 2),
                        .locks = roll(d, 4) > 0,
                        .n = (uint32_t)roll(d, EXAMPLES + 1),
                        .group = groups[roll(d, 6)],
                        .at = (uint32_t)roll(d, 20),
                        .n_dense = (uint32_t)roll(d, ROWS - 20)};
    do {
        v.write = (enum shmt_write)roll(d, 4);
        v.rule = (enum shmt_rule_kind)roll(d, SHMT_N_RULES);
    } while (!is_legal(v.write, v.rule));
    return v;
}

static struct shmt_span span_for(struct table *t, const struct variant *v) {
    struct shmt_span span = span_of(t, v->write, v->rule);
    if (v->write == SHMT_WRITE_AGGREGATE && v->map) span.touched = t->touched;
    if (v->write != SHMT_WRITE_AGGREGATE && v->share) span.l2_share = t->share;
    if (v->write == SHMT_WRITE_RACY && v->counted) span.counted = t->counted;
    if (!v->locks) span.locks.word = NULL;
    return span;
}

static struct shmtrain_csr csr_of(const struct examples *x, const struct variant *v) {
    return (struct shmtrain_csr){.size = sizeof(struct shmtrain_csr),
                                 .n = v->n,
                                 .bias = v->bias,
                                 .start = x->start,
                                 .id = x->id,
                                 .value = v->values ? x->value : NULL,
                                 .order = v->order ? x->order : NULL};
}

static void run_all(const struct shmt_kernels *kernels, const struct variant *v, const struct shmtrain_csr *x, struct table *t,
                    float *dot_out) {
    const struct shmt_span span = span_for(t, v);
    const struct shmt_update u = {.rate = 0.07f,
                                  .scale = 0.3f,
                                  .l1 = v->l1 ? 0.01f : 0,
                                  .l2 = v->l2 ? 0.02f : 0,
                                  .momentum = 0.8f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-3f,
                                  .beta = 1,
                                  .rho = 0.9f,
                                  .weight_decay = v->decay ? 0.5f : 0,
                                  .clip = v->clip ? 0.2f : 0};
    uint32_t next = 0;
    kernels->need(&span, x);
    kernels->each(&span, x, v->group, some_slope, &next, &u);
    assert_int_equal(next, x->n);
    kernels->dot(&span, x, dot_out);
    kernels->push_sparse(&span, x, dot_out, &u);
    kernels->push_dense(&span, v->at, v->n_dense, t->share, &u);
}

static const struct shmt_kernels *kernels_for(const struct shmt_path *path, const struct variant *v) {
    const bool restrained = v->l1 || v->l2 || v->decay || v->clip;
    if (v->write == SHMT_WRITE_RACY && v->counted) return shmt_kernels_that_count(v->rule, v->values, restrained);
    return path->find(v->write, v->rule, v->values, restrained);
}

/* Every CPU path that the machine has; the others are said to be skipped. */
static void every_path_gives_the_bits_of_plain_loops(void **state) {
    (void)state;
    struct dice d = {.seed = 11};
    uint64_t seen = 0;
    for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++)
        if (!shmt_cpu_has(cpu)) printf("skipped: this machine or build has no path %s\n", shmt_cpu_name(cpu));
    for (int round = 0; round < 3000; round++) {
        struct examples x;
        struct table before, plain;
        float plain_dot[EXAMPLES] = {0};
        make_examples(&x, &d);
        make_table(&before, &d);
        plain = before;
        const struct variant v = variant_of(&d);
        const struct shmtrain_csr csr = csr_of(&x, &v);
        run_all(shmt_kernels_reference(v.write, v.rule), &v, &csr, &plain, plain_dot);
        for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
            struct table fast = before;
            float fast_dot[EXAMPLES] = {0};
            if (!shmt_cpu_has(cpu)) continue;
            run_all(kernels_for(shmt_path_of(cpu), &v), &v, &csr, &fast, fast_dot);
            assert_memory_equal(fast_dot, plain_dot, sizeof plain_dot);
            assert_memory_equal(&fast, &plain, sizeof plain); /* locks included: all are free again */
        }
        seen |= UINT64_C(1) << (v.write * SHMT_N_RULES + v.rule);
        free_examples(&x);
    }
    for (uint32_t i = 0; i < 4 * SHMT_N_RULES; i++)
        assert_int_equal(seen >> i & 1, is_legal(i / SHMT_N_RULES, i % SHMT_N_RULES));
}

/* A table of several lock units. */
static void wide_tables_are_pushed_across_units(void **state) {
    (void)state;
    enum { N = 3 * SHMT_LOCK_FLOATS + 100 };
    static float weight[2][N], words[2][4 * N], grad[N];
    static _Atomic uint32_t lock[4];
    struct dice d = {.seed = 19};
    const struct shmt_update u = {.rate = 0.1f,
                                  .scale = 0.5f,
                                  .l1 = 0.1f,
                                  .l2 = 0.3f,
                                  .weight_decay = 0.2f,
                                  .momentum = 0.5f,
                                  .beta2 = 0.9f,
                                  .epsilon = 0.1f,
                                  .beta = 1,
                                  .rho = 0.8f,
                                  .clip = 0.3f};
    for (uint32_t i = 0; i < N; i++) grad[i] = draw(&d), weight[0][i] = weight[1][i] = draw(&d);
    for (uint32_t i = 0; i < 3 * SHMT_N_RULES; i++) {
        const enum shmt_write write = i % 3;
        const enum shmt_rule_kind rule = i / 3;
        if (!is_legal(write, rule)) continue;
        memset(words, 0, sizeof words);
        for (int k = 0; k < 2; k++) {
            const struct shmt_kernels *kernels =
                k ? shmt_kernels_reference(write, rule) : shmt_kernels_find(write, rule, true, true);
            const struct shmt_span span = {.weight = weight[k],
                                           .sink = weight[k],
                                           .state = words[k],
                                           .plane = N,
                                           .locks = {.word = lock, .first = 3, .mask = 3, .owner = 1},
                                           .rows = N / 4,
                                           .width = 4};
            kernels->push_dense(&span, 0, N, grad, &u);
            kernels->push_dense(&span, 1000, 1100, grad, &u); /* begins and ends within units */
            kernels->push_dense(&span, 3071, 2, grad, &u);
            kernels->push_dense(&span, N, 0, grad, &u);
        }
        assert_memory_equal(weight[0], weight[1], sizeof weight[0]);
        assert_memory_equal(words[0], words[1], sizeof words[0]);
        for (int k = 0; k < 4; k++) assert_int_equal(load_relaxed(&lock[k]), 0);
    }
}

/* So a test of a path is one of other code. */
static void paths_that_the_machine_has_are_compilations_of_their_own(void **state) {
    (void)state;
    for (uint32_t a = 0; a < SHMT_N_CPUS; a++)
        for (uint32_t b = 0; b < a; b++) {
            if (!shmt_cpu_has(a) || !shmt_cpu_has(b)) continue;
            assert_true((shmt_path_of(a) == shmt_path_of(b)) == (a == SHMT_CPU_NEON)); /* which is what is portable on arm64 */
        }
    assert_ptr_equal(shmt_path_of(SHMT_N_CPUS), shmt_path_of(SHMT_CPU_PORTABLE)); /* as do those that the machine has not */
}

static void rules_that_cannot_bear_a_write_mode_have_no_kernels_for_it(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        assert_null(shmt_kernels_find(SHMT_WRITE_ATOMIC, SHMT_RULE_ADAM, i & 1, i & 2));
        assert_null(shmt_kernels_find(SHMT_WRITE_ATOMIC, SHMT_RULE_ADAMW, i & 1, i & 2));
        assert_null(shmt_kernels_find(SHMT_WRITE_ATOMIC, SHMT_RULE_FTRL, i & 1, i & 2));
        assert_null(shmt_kernels_find(SHMT_WRITE_RACY, SHMT_RULE_LAMB, i & 1, i & 2));
        assert_null(shmt_kernels_that_count(SHMT_RULE_LAMB, i & 1, i & 2));
        for (uint32_t write = 0; write < 4; write++)
            for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++)
                if (is_legal(write, rule)) assert_non_null(shmt_kernels_find(write, rule, i & 1, i & 2));
    }
}

/* What the plain loops compute, worked out by hand for one example of two columns and a bias. */
static void plain_loops_compute_what_the_header_says(void **state) {
    (void)state;
    const uint64_t start[] = {0, 2};
    const uint32_t id[] = {2, 0};
    const float value[] = {0.5f, 4.0f}, slope = -2.0f;
    const struct shmtrain_csr x = {
        .size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = id, .value = value};
    float weight[4] = {1, 7, 8, 0.25f}, share[4] = {1, 1, 4, 1}, dot;
    struct shmt_span span = {.weight = weight, .sink = weight, .l2_share = share, .rows = 4, .width = 1};
    const struct shmt_kernels *l2 = shmt_kernels_reference(SHMT_WRITE_RACY, SHMT_RULE_SGD);
    l2->dot(&span, &x, &dot);
    assert_true(dot == 0.5f * 8 + 4.0f * 1 + 0.25f);
    l2->push_sparse(&span, &x, &slope, UPDATE(0.5f, 2.0f)); /* rate * slope = -1; d = 1, and 4 for row 2 */
    assert_true(weight[0] == (1 + 4.0f) / 2);
    assert_true(weight[1] == 7);
    assert_true(fabsf(weight[2] - (8 + 0.5f) / 5) < 1e-6f);
    assert_true(weight[3] == 1.25f);

    float grad[4] = {0};
    uint8_t touched[1] = {0};
    span = (struct shmt_span){.weight = weight, .sink = grad, .touched = touched, .rows = 4, .width = 1};
    shmt_kernels_reference(SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD)->push_sparse(&span, &x, &slope, UPDATE(0.5f, 2.0f));
    const float want[4] = {-8, 0, -1, -2};
    assert_memory_equal(grad, want, sizeof want);
    assert_int_equal(touched[0], 1);
}

static void dot_products_are_summed_in_eight_lanes(void **state) {
    (void)state;
    /* 2^24 absorbs a 1 that is added to it, so each of these sums shows in which lane, and in which order, its elements met. */
    const float big = 0x1p24f;
    const uint64_t start[] = {0, 16};
    const uint32_t id[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    float weight[16] = {big, 0, 0, 0, 1, 0, 0, 0, -big, 0, 0, 0, 1, 0, 0, 0}, dot;
    const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr), .n = 1, .start = start, .id = id};
    const struct shmt_span span = {.weight = weight, .sink = weight, .rows = 16, .width = 1};
    const struct shmt_kernels *kernels = shmt_kernels_find(SHMT_WRITE_RACY, SHMT_RULE_SGD, false, false);
    kernels->dot(&span, &x, &dot);
    assert_true(dot == 2); /* lane 0: big - big; lane 4: 1 + 1 */
    const float other[16] = {big, 1, 0, -big};
    memcpy(weight, other, sizeof weight);
    kernels->dot(&span, &x, &dot);
    assert_true(dot == 1); /* (l0 + l2) + (l1 + l3) = big + (1 - big), exactly; from left to right the 1 is lost */
}

static void touched_maps_mark_the_lines_of_a_push_and_no_others(void **state) {
    (void)state;
    const uint64_t start[] = {0, 3};
    const uint32_t id[] = {15, 16, 100};
    struct table t;
    memset(&t, 0, sizeof t);
    struct shmt_span span = span_of(&t, SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD);
    span.touched = t.touched;
    const struct shmt_kernels *kernels = shmt_kernels_find(SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD, false, false);
    const float slope = 1, grad[20] = {0};
    kernels->push_sparse(
        &span, &(struct shmtrain_csr){.size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = id}, &slope,
        UPDATE(1, 0));
    kernels->push_dense(&span, 47, 17, grad, UPDATE(1, 0)); /* lines 2 and 3 */
    kernels->push_dense(&span, 128, 0, grad, UPDATE(1, 0));
    const uint8_t want[LINES] = {1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1};
    assert_memory_equal(t.touched, want, sizeof want);
}

/* ---- gradient buffers ---- */

/* A buffer in which whole lines are 0, with its map (some lines may be marked though they are 0). */
static void make_buffer(float *a, uint8_t *map, uint64_t n, struct dice *d) {
    memset(a, 0, n * sizeof *a);
    for (uint64_t line = 0; line * SHMT_TOUCH_FLOATS < n; line++) {
        map[line] = (uint8_t)roll(d, 2);
        for (uint64_t i = line * SHMT_TOUCH_FLOATS; map[line] && i < n && i < (line + 1) * SHMT_TOUCH_FLOATS; i++)
            a[i] = draw(d);
    }
}

static void fold_adds_and_clears_with_and_without_maps(void **state) {
    (void)state;
    struct dice d = {.seed = 12};
    for (uint64_t n = 1; n < ROWS; n += 7) {
        float a[ROWS], b[ROWS], sum[ROWS], a2[ROWS], b2[ROWS];
        uint8_t a_map[LINES], b_map[LINES], want_map[LINES];
        make_buffer(a, a_map, n, &d);
        make_buffer(b, b_map, n, &d);
        if (b_map[0]) b[0] = -0.0f; /* as a lent buffer may have it; 0 + -0 is 0, with maps as without */
        memcpy(a2, a, sizeof a);
        memcpy(b2, b, sizeof b);
        const uint64_t lines = (n + SHMT_TOUCH_FLOATS - 1) / SHMT_TOUCH_FLOATS;
        for (uint64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
        for (uint64_t i = 0; i < lines; i++) want_map[i] = a_map[i] | b_map[i];
        shmt_fold(a, a_map, b, b_map, n);
        shmt_fold(a2, NULL, b2, NULL, n);
        assert_memory_equal(a, sum, n * sizeof *a);
        assert_memory_equal(a2, sum, n * sizeof *a);
        assert_memory_equal(a_map, want_map, lines);
        for (uint64_t i = 0; i < n; i++) assert_true(b[i] == 0 && b2[i] == 0);
        for (uint64_t i = 0; i < lines; i++) assert_int_equal(b_map[i], 0);
    }
}

static void clear_leaves_zeros(void **state) {
    (void)state;
    struct dice d = {.seed = 13};
    for (uint64_t n = 1; n < ROWS; n += 7) {
        float a[ROWS], zero[ROWS] = {0};
        uint8_t map[LINES], no_map[LINES] = {0};
        make_buffer(a, map, n, &d);
        shmt_clear(a, map, n);
        assert_memory_equal(a, zero, n * sizeof *a);
        assert_memory_equal(map, no_map, (n + SHMT_TOUCH_FLOATS - 1) / SHMT_TOUCH_FLOATS);
        make_buffer(a, map, n, &d);
        shmt_clear(a, NULL, n);
        assert_memory_equal(a, zero, n * sizeof *a);
    }
}

/* Unmarked lines are left alone, whole eights of them and single ones: here they lie in a page that cannot be read. */
static void only_marked_lines_are_fetched(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), floats = page / sizeof(float);
    char *at = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    uint8_t *map = calloc(3, floats / SHMT_TOUCH_FLOATS);
    assert_non_null(map);
    memset(map, 1, floats / SHMT_TOUCH_FLOATS);
    map[3 * (floats / SHMT_TOUCH_FLOATS) - 1] = 1;
    shmt_fetch((const float *)(void *)at, map, 0, 3 * floats);
    shmt_fetch((const float *)(void *)at, NULL, 0, floats);
    shmt_fetch((const float *)(void *)at, NULL, 2 * floats, 3 * floats);
    shmt_fetch((const float *)(void *)at, NULL, floats, floats);
    free(map);
    assert_int_equal(munmap(at, 3 * page), 0);
}

/* Whole numbers add exactly as floats, so a push that is lost or doubled anywhere on its way shows in the count. */
static void every_push_is_counted_once_through_folds_and_apply(void **state) {
    (void)state;
    struct dice d = {.seed = 14};
    struct examples x;
    struct table part[4];
    float weight[ROWS] = {0}, want[ROWS] = {0}, ones[EXAMPLES];
    make_examples(&x, &d);
    for (uint32_t k = 0; k < EXAMPLES; k++) ones[k] = -1;
    memset(part, 0, sizeof part);
    const struct shmt_kernels *kernels = shmt_kernels_find(SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD, false, false);
    for (uint32_t k = 0; k < EXAMPLES; k++) { /* each example by another of four workers */
        struct shmt_span span = span_of(&part[k % 4], SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD);
        span.touched = part[k % 4].touched;
        const struct shmtrain_csr one = {
            .size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = x.start, .id = x.id, .order = &x.order[k]};
        kernels->push_sparse(&span, &one, ones, UPDATE(0, 0));
        want[ROWS - 1]++;
    }
    for (uint64_t j = 0; j < x.start[EXAMPLES]; j++) want[x.id[j]]++;
    shmt_fold(part[0].grad, part[0].touched, part[1].grad, part[1].touched, ROWS);
    shmt_fold(part[2].grad, part[2].touched, part[3].grad, part[3].touched, ROWS);
    shmt_fold(part[0].grad, part[0].touched, part[2].grad, part[2].touched, ROWS);
    const struct shmt_update mean = {.rate = EXAMPLES * 1.0f, .scale = 1.0f / EXAMPLES};
    shmt_rule_apply(SHMT_RULE_SGD, weight, NULL, 0, part[0].grad, ROWS, &mean);
    for (uint32_t i = 0; i < ROWS; i++) assert_true(roundf(weight[i]) == want[i] && fabsf(weight[i] - want[i]) < 1e-4f);
    for (uint32_t i = 0; i < ROWS; i++) assert_true(part[0].grad[i] == -want[i]);
    free_examples(&x);
}

static void apply_depends_neither_on_how_a_table_is_cut_nor_on_the_path(void **state) {
    (void)state;
    struct dice d = {.seed = 15};
    const float l1s[] = {0, 0, 0.01f}, l2s[] = {0, 1e-9f, 0.5f};
    for (uint32_t round = 0; round < 60 * SHMT_N_RULES; round++) {
        const struct shmt_rule rule = {.kind = round % SHMT_N_RULES,
                                       .l1 = l1s[round / 5 % 3],
                                       .l2 = l2s[round / 5 % 3],
                                       .momentum = 0.9f,
                                       .beta2 = 0.9f,
                                       .epsilon = 0.1f,
                                       .beta = 1};
        struct shmt_update u;
        struct table whole, cut;
        shmt_update_make(&rule, 0.3f, 7, &u);
        make_table(&whole, &d);
        for (uint32_t i = 0; i < ROWS; i++) whole.grad[i] = roll(&d, 3) ? draw(&d) : 0;
        for (uint32_t i = 0; i < 2 * PLANE; i++) whole.state[i] = draw(&d) + 1;
        cut = whole;
        shmt_rule_apply(rule.kind, whole.weight, whole.state, PLANE, whole.grad, ROWS, &u);
        for (uint64_t at = 0, n; at < ROWS; at += n) {
            const struct shmt_path *path = shmt_path_of((uint32_t)roll(&d, SHMT_N_CPUS));
            n = 1 + roll(&d, ROWS - at < 19 ? ROWS - at : 19);
            /* a block without gradient is applied without one */
            const bool nothing = n == 1 && cut.grad[at] == 0;
            path->apply(rule.kind, cut.weight + at, cut.state + at, PLANE, nothing ? NULL : cut.grad + at, n, &u);
        }
        assert_memory_equal(&whole, &cut, sizeof cut);
    }
}

/* ---- merging ---- */

/* Copies of a table that differ in some words, merged by `path`. True: something has changed. */
static bool merge(const struct shmt_path *path, enum shmt_rule_kind rule, enum shmt_merge_beside beside, uint64_t seed,
                  struct table *master, struct table *replica, struct table *base) {
    struct dice d = {.seed = seed};
    const struct shmt_rule r = {.kind = rule};
    float curvature[ROWS];
    make_table(master, &d);
    for (uint32_t i = 0; i < SHMT_MAX_PLANES * PLANE; i++) master->state[i] = draw(&d) + 1;
    *replica = *base = *master;
    for (uint32_t i = 0; i < ROWS; i++) curvature[i] = roll(&d, 3) ? (float)roll(&d, 1000) * 1e-4f : 0;
    for (uint32_t i = 0; i < ROWS; i += 1 + (uint32_t)roll(&d, 5)) replica->weight[i] += draw(&d);
    for (uint32_t i = 0; i < SHMT_MAX_PLANES * PLANE; i += 1 + (uint32_t)roll(&d, 5)) replica->state[i] += draw(&d) + 1;
    for (uint32_t i = 0; i < ROWS; i += 1 + (uint32_t)roll(&d, 9)) master->weight[i] += draw(&d);
    const struct shmt_damping damping = {
        .u = {.rate = 0.3f, .scale = 1, .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .beta = 1},
        .examples = 64,
        .n_replicas = 2 + (uint32_t)roll(&d, 30),
        .curvature = curvature};
    struct shmt_merge_words words = {.n = 1 + shmt_rule_planes(&r, true)};
    for (uint32_t p = 0; p < words.n; p++) {
        words.how[p] = shmt_merging_of(SHMT_MERGE_DAMPED, rule, p, damping.n_replicas);
        words.master[p] = p ? master->state + (p - 1) * PLANE : master->weight;
        words.replica[p] = p ? replica->state + (p - 1) * PLANE : replica->weight;
        words.base[p] = p ? base->state + (p - 1) * PLANE : base->weight;
    }
    return path->merge_damped(rule, &damping, beside, &words, roll(&d, 2) * 16, ROWS - 16);
}

static void replicas_are_merged_alike_on_every_path(void **state) {
    (void)state;
    uint32_t changed = 0;
    for (uint32_t round = 0; round < 200 * SHMT_N_RULES; round++) {
        const enum shmt_rule_kind rule = round % SHMT_N_RULES;
        if (shmt_rule_needs_norms(rule)) continue; /* there are no replicas then */
        const enum shmt_merge_beside beside = is_legal(SHMT_WRITE_ATOMIC, rule) ? round / SHMT_N_RULES % 3 : round % 2;
        struct table want[3], got[3];
        const bool changes = merge(shmt_path_of(SHMT_CPU_PORTABLE), rule, beside, round, &want[0], &want[1], &want[2]);
        for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
            if (!shmt_cpu_has(cpu)) continue;
            assert_int_equal(merge(shmt_path_of(cpu), rule, beside, round, &got[0], &got[1], &got[2]), changes);
            assert_memory_equal(want, got, sizeof want);
        }
        changed += changes;
    }
    assert_true(changed > 100 * SHMT_N_RULES);
}

/* ---- tables ---- */

static void refused(struct shmt_table_spec table, const char *word) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_table_check(&table, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, word));
}

static void tables_that_cannot_be_are_refused_in_a_sentence(void **state) {
    (void)state;
    struct shmt_error e = {0};
    assert_int_equal(shmt_table_check(&(struct shmt_table_spec){.name = "w-1.a_B", .rows = 1, .width = 1}, &e), 0);
    assert_int_equal(shmt_table_check(&(struct shmt_table_spec){.name = "w", .rows = 1ull << 60, .width = 1}, &e), 0);
    refused((struct shmt_table_spec){.name = "", .rows = 1, .width = 1}, "needs a name");
    refused((struct shmt_table_spec){.name = "a b", .rows = 1, .width = 1}, "\"a...\"");
    refused((struct shmt_table_spec){.name = "w", .rows = 0, .width = 1}, "no rows");
    refused((struct shmt_table_spec){.name = "w", .rows = 1, .width = 0}, "no width");
    refused((struct shmt_table_spec){.name = "w", .rows = 1ull << 61, .width = 1}, "too large");
    refused((struct shmt_table_spec){.name = "w", .rows = UINT64_MAX, .width = UINT32_MAX}, "too large");
    refused((struct shmt_table_spec){.name = "w", .rows = (1ull << 61) - 1, .width = 1}, "too large");
    struct shmt_table_spec endless = {.rows = 1, .width = 1};
    memset(endless.name, 'x', sizeof endless.name);
    refused(endless, "at most 31");
    assert_int_equal(shmt_table_floats(&(struct shmt_table_spec){.rows = 1ull << 33, .width = 3}), 3ull << 33);
}

static void slices_cover_a_table_once_and_begin_on_lines(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 1000; n += n < 100 ? 1 : 37) {
        for (uint32_t parts = 1; parts <= 40; parts++) {
            uint64_t next = 0, shortest = UINT64_MAX, longest = 0;
            for (uint32_t p = 0; p < parts; p++) {
                uint64_t from, to;
                shmt_slice(n, p, parts, &from, &to);
                assert_int_equal(from, next);
                assert_true(from <= to && (from % 32 == 0 || from == n));
                const uint64_t lines = (to - from + 31) / 32;
                shortest = lines < shortest ? lines : shortest;
                longest = lines > longest ? lines : longest;
                next = to;
            }
            assert_int_equal(next, n);
            assert_true(longest - shortest <= 1);
        }
    }
    uint64_t from, to;
    shmt_slice((1ull << 61) + 5, UINT32_MAX - 1, UINT32_MAX, &from, &to);
    assert_int_equal(to, (1ull << 61) + 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_gives_the_bits_of_plain_loops),
        cmocka_unit_test(wide_tables_are_pushed_across_units),
        cmocka_unit_test(paths_that_the_machine_has_are_compilations_of_their_own),
        cmocka_unit_test(rules_that_cannot_bear_a_write_mode_have_no_kernels_for_it),
        cmocka_unit_test(plain_loops_compute_what_the_header_says),
        cmocka_unit_test(dot_products_are_summed_in_eight_lanes),
        cmocka_unit_test(touched_maps_mark_the_lines_of_a_push_and_no_others),
        cmocka_unit_test(fold_adds_and_clears_with_and_without_maps),
        cmocka_unit_test(only_marked_lines_are_fetched),
        cmocka_unit_test(clear_leaves_zeros),
        cmocka_unit_test(every_push_is_counted_once_through_folds_and_apply),
        cmocka_unit_test(apply_depends_neither_on_how_a_table_is_cut_nor_on_the_path),
        cmocka_unit_test(replicas_are_merged_alike_on_every_path),
        cmocka_unit_test(tables_that_cannot_be_are_refused_in_a_sentence),
        cmocka_unit_test(slices_cover_a_table_once_and_begin_on_lines),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
