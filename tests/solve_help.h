/* For tests of exact fits: data, a problem with it, and its phases, done by parts one after the other. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "solve/newton.h"

enum { N = 700, MOST_COLUMNS = 1500, PER_ROW = 7, MOST_CLASSES = 5 };

/* Data, a problem with it, and the memory of a fit. */
struct lab {
    struct shmtrain_data data;
    uint64_t start[N + 1];
    uint32_t id[N * PER_ROW], example[N];
    float value[N * PER_ROW], label[N], weight[N], parameter[MOST_COLUMNS + 1];
    float classes[MOST_CLASSES];
    struct shmt_problem problem;
    struct shmt_solve_plan plan;
    struct shmt_solve_memory memory;
    void *block;
    struct shmt_problem sample; /* of every other example, with memory of its own, where a wish is warm */
    uint32_t drawn[N];
    struct shmt_solve_plan sample_plan;
    struct shmt_solve_memory of_sample;
    void *sample_block;
    struct shmt_solve_state state;
    uint64_t round;
    uint64_t looks, leave_at; /* from work within phases; a phase is left at this one, from 1; 0: none is */
};

struct wish {
    enum shmt_solve_loss loss;
    uint32_t columns, bias;
    bool values, weights, subset;
    double l2, l1;
    uint32_t classes; /* of softmax */
    uint32_t parts;   /* L2 is chosen: by so many parts of the examples */
    enum shmt_solve_scale scale;
    enum shmt_solve_live live;
    bool warm;                      /* a sample is fitted first */
    bool heaped;                    /* sums for columns are taken by rows */
    bool interior;                  /* hinge: dual ascent is left for interior points */
    void (*spoil)(struct lab *lab); /* changes the rows that were made; NULL: nobody does */
};

static uint64_t g_seed;
static inline double uniform(void) { return shmt_unit(shmt_mix64(g_seed++)); }

/* Labels 2, 4, ... by how large a score is, from which the least and the largest are rare. */
static inline float class_of(const struct wish *wish, double score) {
    const double place = floor(score + 0.5 * wish->classes);
    return (float)(2 + 2 * fmax(0, fmin(wish->classes - 1, place)));
}

static inline void make_rows(struct lab *lab, const struct wish *wish) {
    uint64_t at = 0;
    g_seed = 7;
    for (uint64_t i = 0; i < N; i++) {
        double score = 0.3;
        const uint32_t first = (uint32_t)(uniform() * (wish->columns - PER_ROW));
        lab->start[i] = at;
        for (uint32_t k = 0; k < PER_ROW; k++, at++) {
            /* never the same column twice in a row; not in order */
            lab->id[at] = (first + PER_ROW - k) % wish->columns;
            lab->value[at] = wish->values ? (float)(2 * uniform() - 0.7) : 1;
            if (wish->scale != SHMT_SCALE_NO) lab->value[at] *= (float)(1 + lab->id[at] % 7 * 3);
            score += (double)lab->value[at] * sin(lab->id[at]);
        }
        const double noisy = score + 3 * (uniform() - 0.5);
        lab->label[i] = wish->loss == SHMT_SOLVE_SQUARED   ? (float)noisy
                        : wish->loss == SHMT_SOLVE_SOFTMAX ? class_of(wish, noisy)
                                                           : (noisy > 0 ? 3 : -1);
        lab->weight[i] = i % 11 == 0 ? 0 : (float)(0.5 + uniform());
    }
    lab->start[N] = at;
}

/* Memory whose every number is none until it is written. */
static inline void *make_block(uint64_t bytes) {
    void *block = aligned_alloc(SHMT_SOLVE_ALIGNMENT, bytes);
    assert_non_null(block);
    memset(block, 0xff, bytes);
    return block;
}

static inline void make_sample(struct lab *lab) {
    lab->sample = lab->problem;
    lab->sample.n = lab->problem.n / 2;
    lab->sample.example = lab->drawn;
    for (uint64_t k = 0; k < lab->sample.n; k++) lab->drawn[k] = (uint32_t)shmt_problem_example(&lab->problem, 2 * k);
    shmt_solve_plan_sample(&lab->plan, lab->sample.n, lab->sample.n * PER_ROW, &lab->sample_plan);
    lab->sample_block = make_block(lab->sample_plan.row_bytes);
    shmt_solve_memory_of_sample(&lab->sample_plan, lab->sample_block, &lab->memory, &lab->of_sample);
}

static inline struct lab *make_lab(const struct wish *wish) {
    struct lab *lab = calloc(1, sizeof *lab);
    assert_non_null(lab);
    make_rows(lab, wish);
    if (wish->spoil) wish->spoil(lab);
    lab->data = (struct shmtrain_data){.size = sizeof lab->data,
                                       .n_examples = N,
                                       .n_nonzeros = N * PER_ROW,
                                       .n_features = wish->columns,
                                       .start = lab->start,
                                       .id = lab->id,
                                       .value = wish->values ? lab->value : NULL,
                                       .label = lab->label,
                                       .weight = wish->weights ? lab->weight : NULL};
    for (uint32_t i = 0; i < N; i++) lab->example[i] = (i * 3 + 1) % N;
    for (uint32_t k = 0; k < MOST_CLASSES; k++) lab->classes[k] = (float)(2 + 2 * k);
    const uint64_t n = wish->subset ? N / 2 : N;
    const uint32_t classes = wish->loss == SHMT_SOLVE_SOFTMAX ? wish->classes : 1;
    lab->problem = (struct shmt_problem){.data = &lab->data,
                                         .example = wish->subset ? lab->example : NULL,
                                         .n = n,
                                         .n_all = n,
                                         .n_columns = wish->columns,
                                         .bias = wish->bias,
                                         .n_classes = classes,
                                         .stride = wish->columns,
                                         .classes = lab->classes,
                                         .bias_weight = lab->parameter + classes * wish->columns,
                                         .scale = wish->scale,
                                         .live = wish->live,
                                         .n_parts = wish->parts,
                                         .n_held = wish->parts,
                                         .seed = 5,
                                         .loss = wish->loss,
                                         .high = 3,
                                         .l2 = wish->l2,
                                         .l1 = wish->l1,
                                         .tolerance = 1e-6,
                                         .weight = lab->parameter};
    const struct shmt_solve_sizes sizes = {.n = n,
                                           .n_nonzeros = N * PER_ROW,
                                           .n_columns = wish->columns,
                                           .bias = wish->bias,
                                           .n_classes = classes,
                                           .n_held = wish->parts,
                                           .has_scales = wish->scale != SHMT_SCALE_NO,
                                           .has_values = wish->values,
                                           .is_hinge = wish->loss == SHMT_SOLVE_HINGE,
                                           .is_live = wish->live != SHMT_LIVE_NO,
                                           .has_l1 = wish->l1 > 0,
                                           .heaped = wish->heaped};
    shmt_solve_plan(&sizes, &lab->plan);
    lab->block = make_block(lab->plan.bytes);
    shmt_solve_memory_at(&lab->plan, lab->block, &lab->memory);
    if (wish->warm) make_sample(lab);
    shmt_newton_begin(&lab->problem, wish->warm, &lab->state);
    return lab;
}

static inline void free_lab(struct lab *lab) {
    free(lab->block);
    free(lab->sample_block);
    free(lab);
}

/* goes_on of a pass. */
static inline bool look(void *arg) {
    struct lab *lab = arg;
    lab->looks++;
    if (lab->leave_at == 0 || lab->looks < lab->leave_at || !shmt_newton_may_skip(&lab->state)) return true;
    shmt_solve_skip(&lab->memory, lab->round);
    return false;
}

static inline struct shmt_pass pass_of(struct lab *lab, const struct shmt_solve_state *state, uint32_t part, uint32_t n_parts) {
    const bool sampled = state->choice.sampled != 0;
    return (struct shmt_pass){.problem = sampled ? &lab->sample : &lab->problem,
                              .plan = sampled ? &lab->sample_plan : &lab->plan,
                              .memory = sampled ? &lab->of_sample : &lab->memory,
                              .state = state,
                              .round = lab->round,
                              .part = part,
                              .n_parts = n_parts,
                              .goes_on = look,
                              .goes_on_arg = lab};
}

/* One phase by n parts, some of which are done twice, and what follows. The state as one finds it who has seen nothing but what
 * was saved: the same. */
static inline void do_phase(struct lab *lab, uint32_t n_parts, bool again) {
    struct shmt_solve_state next, found;
    shmt_solve_sum(&lab->memory, lab->round, SHMT_SUM_STOP)[0] = 0;
    for (uint32_t i = 0; i < n_parts * (again ? 2 : 1); i++) { /* a second time when all have done theirs */
        const struct shmt_pass pass = pass_of(lab, &lab->state, i % n_parts, n_parts);
        if (i < n_parts || i % 2 == lab->round % 2) assert_int_equal(shmt_newton_work(&pass), 0);
    }
    lab->memory.saved[lab->round % 2] = lab->state;
    const struct shmt_pass mine = pass_of(lab, &lab->state, 0, n_parts);
    const struct shmt_pass other = pass_of(lab, &lab->memory.saved[lab->round % 2], n_parts - 1, n_parts);
    shmt_newton_next(&mine, &next);
    shmt_newton_next(&other, &found);
    assert_memory_equal(&next, &found, sizeof next);
    lab->state = next;
    lab->round++;
}

static inline void do_epoch(struct lab *lab, uint32_t n_parts, bool again) {
    for (int phase = 0; lab->state.phase != SHMT_PHASE_OVER; phase++) {
        assert_true(phase < 200000);
        do_phase(lab, n_parts, again);
    }
}

/* Until it is proved; the number of epochs. */
static inline uint32_t fit(struct lab *lab, uint32_t n_parts, bool again) {
    double dual = -INFINITY;
    for (;;) {
        do_epoch(lab, n_parts, again);
        assert_true(lab->state.dual >= dual); /* no bound is given up */
        dual = lab->state.dual;
        if (lab->state.end != SHMT_SOLVE_GOES_ON) return lab->state.epoch + 1;
        if (lab->state.epoch > 200) fail_msg("%u epochs, %.9g %.9g", lab->state.epoch, lab->state.primal, lab->state.dual);
        struct shmt_solve_state next;
        shmt_newton_next_epoch(&lab->state, &next);
        lab->state = next;
    }
}

/* Parameter `at`, of which one is moved by `by`. */
struct moved {
    uint32_t at;
    double by;
};

static inline double parameter(const struct lab *lab, uint64_t at, struct moved moved) {
    return (double)lab->parameter[at] + (at == moved.at ? moved.by : 0);
}

/* Of class k; others than softmax have one. */
static inline double score_of(const struct lab *lab, uint64_t i, uint32_t k, struct moved moved) {
    const struct shmt_problem *p = &lab->problem;
    double z = p->bias ? parameter(lab, (uint64_t)p->n_columns * p->n_classes + k, moved) : 0;
    for (uint64_t at = lab->start[i]; at < lab->start[i + 1]; at++)
        z += (lab->data.value ? (double)lab->value[at] : 1) * parameter(lab, (uint64_t)k * p->n_columns + lab->id[at], moved);
    return z;
}

static inline double loss_of(const struct lab *lab, uint64_t i, struct moved moved) {
    const struct shmt_problem *p = &lab->problem;
    const double y = (double)lab->label[i], s = lab->label[i] == 3 ? 1 : -1;
    double sum = 0, z = score_of(lab, i, 0, moved), own = 0;
    if (p->loss == SHMT_SOLVE_LOGISTIC) return log(1 + exp(-s * z));
    if (p->loss == SHMT_SOLVE_HINGE) return 1 - s * z > 0 ? 1 - s * z : 0;
    if (p->loss == SHMT_SOLVE_SQUARED) return (z - y) * (z - y) / 2;
    for (uint32_t k = 0; k < p->n_classes; k++) {
        z = score_of(lab, i, k, moved);
        sum += exp(z);
        if (lab->classes[k] == lab->label[i]) own = z;
    }
    return log(sum) - own;
}

/* The objective by its formula, at the parameters, but for one of them. */
static inline double objective(const struct lab *lab, uint32_t at, double by) {
    const struct shmt_problem *p = &lab->problem;
    const struct moved moved = {at, by};
    double sum = 0, squares = 0, sizes = 0;
    for (uint64_t k = 0; k < p->n; k++) {
        const uint64_t i = p->example ? p->example[k] : k;
        sum += (lab->data.weight ? (double)lab->weight[i] : 1) * loss_of(lab, i, moved);
    }
    for (uint32_t j = 0; j < p->n_columns * p->n_classes; j++) {
        const double w = parameter(lab, j, moved);
        squares += (lab->state.choice.scaled ? lab->memory.scale[j % p->n_columns] : 1) * w * w;
        sizes += fabs(w);
    }
    return sum / (double)p->n + lab->state.l2 / 2 * squares + p->l1 * sizes;
}

/* Tables as they come: one column is a million times as large as the others, one lies around 1000. */
static inline void stretch_columns(struct lab *lab) {
    for (uint64_t at = 0; at < N * PER_ROW; at++) {
        if (lab->id[at] == 3) lab->value[at] *= 1e6F;
        if (lab->id[at] == 17) lab->value[at] += 1e3F;
    }
}

/* Softmax: a class that no example has. */
static inline void empty_a_class(struct lab *lab) {
    for (uint64_t i = 0; i < N; i++) lab->label[i] = lab->label[i] == 4 ? 6 : lab->label[i];
}

static const struct wish WISHES[] = {
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .weights = true, .subset = true, .l2 = 1e-5},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .bias = 1, .values = true, .weights = true, .l2 = 1e-4},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .values = true, .subset = true, .l2 = 1e-2},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 40, .values = true, .weights = true, .l2 = 1e-1},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .weights = true, .subset = true, .l2 = 1e-2},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .bias = 1, .values = true, .weights = true, .l2 = 1e-5, .interior = true},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .subset = true, .l2 = 1e-6, .interior = true},
    {.loss = SHMT_SOLVE_HINGE, .columns = 1500, .bias = 1, .values = true, .weights = true, .l2 = 1e-2},
    {.loss = SHMT_SOLVE_HINGE, .columns = 1500, .values = true, .subset = true, .l2 = 1e-2},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .bias = 1, .values = true, .l2 = 1e-2, .live = SHMT_LIVE_RACY},
    {.loss = SHMT_SOLVE_LOGISTIC,
     .columns = 40,
     .bias = 1,
     .values = true,
     .weights = true,
     .l2 = 1e-3,
     .live = SHMT_LIVE_ATOMIC},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .subset = true, .l2 = 1e-4, .live = SHMT_LIVE_RACY},
    {.loss = SHMT_SOLVE_SQUARED,
     .columns = 1500,
     .bias = 1,
     .values = true,
     .weights = true,
     .l2 = 1e-2,
     .live = SHMT_LIVE_ATOMIC},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 1500, .bias = 1, .weights = true, .subset = true, .l2 = 1e-3},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 1500, .bias = 1, .values = true, .l2 = 1e-2},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .l1 = 1e-2},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .values = true, .weights = true, .l1 = 3e-3},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .bias = 1, .subset = true, .l2 = 1e-3, .l1 = 1e-3},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 40, .bias = 1, .values = true, .weights = true, .l2 = 1e-2, .l1 = 0.2},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 1500, .bias = 1, .values = true, .l1 = 1e-2},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .bias = 1, .values = true, .weights = true, .l2 = 1e-4, .heaped = true},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .subset = true, .l2 = 1e-3, .heaped = true},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 1500, .bias = 1, .values = true, .weights = true, .l2 = 1e-2, .heaped = true},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 40, .values = true, .subset = true, .l2 = 1e-2, .l1 = 0.1, .heaped = true},
    {.loss = SHMT_SOLVE_HINGE, .columns = 1500, .bias = 1, .values = true, .weights = true, .l2 = 1e-2, .heaped = true},
    {.loss = SHMT_SOLVE_HINGE, .columns = 1500, .subset = true, .l2 = 1e-2, .heaped = true},
    {.loss = SHMT_SOLVE_HINGE, .columns = 40, .bias = 1, .values = true, .l2 = 1e-5, .interior = true, .heaped = true},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .values = true, .l2 = 1e-3, .live = SHMT_LIVE_ATOMIC, .heaped = true},
    {.loss = SHMT_SOLVE_LOGISTIC,
     .columns = 40,
     .bias = 1,
     .values = true,
     .weights = true,
     .parts = 3,
     .scale = SHMT_SCALE_CHOSEN,
     .heaped = true},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3, .spoil = stretch_columns},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .values = true, .l1 = 1e-2, .spoil = stretch_columns},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .weights = true, .l2 = 1e-3, .warm = true},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .values = true, .l2 = 1e-3, .warm = true, .heaped = true},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .subset = true, .l1 = 1e-2, .warm = true},
    {.loss = SHMT_SOLVE_SQUARED, .columns = 1500, .bias = 1, .values = true, .l2 = 1e-2, .warm = true},
    {.loss = SHMT_SOLVE_SOFTMAX, .columns = 40, .bias = 1, .values = true, .l2 = 1e-2, .classes = 4, .warm = true},
    {.loss = SHMT_SOLVE_SOFTMAX, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3, .classes = 5},
    {.loss = SHMT_SOLVE_SOFTMAX, .columns = 200, .weights = true, .subset = true, .l2 = 1e-2, .classes = 3},
    {.loss = SHMT_SOLVE_SOFTMAX,
     .columns = 40,
     .bias = 1,
     .values = true,
     .weights = true,
     .l2 = 1e-2,
     .classes = 4,
     .spoil = empty_a_class},
    {.loss = SHMT_SOLVE_SOFTMAX,
     .columns = 200,
     .bias = 1,
     .values = true,
     .weights = true,
     .subset = true,
     .l2 = 1e-2,
     .classes = 5,
     .scale = SHMT_SCALE_YES},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3, .scale = SHMT_SCALE_YES},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .parts = 3, .scale = SHMT_SCALE_CHOSEN},
    {.loss = SHMT_SOLVE_LOGISTIC, .columns = 1500, .values = true, .weights = true, .subset = true, .parts = 5},
    {.loss = SHMT_SOLVE_SQUARED,
     .columns = 40,
     .bias = 1,
     .values = true,
     .weights = true,
     .parts = 2,
     .scale = SHMT_SCALE_CHOSEN},
    {.loss = SHMT_SOLVE_SOFTMAX,
     .columns = 40,
     .bias = 1,
     .values = true,
     .classes = 4,
     .parts = 3,
     .scale = SHMT_SCALE_CHOSEN},
};
#define N_WISHES (sizeof WISHES / sizeof *WISHES)
