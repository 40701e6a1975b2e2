/* Adding examples up in heaps: see heaps.h. */
#include "solve/heaps.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

/* To each column of an example: x, x^2 and x times the three numbers, as many as there are. */
INLINE void add_example(const struct shmtrain_data *data, uint64_t e, double *heap, uint32_t width, double first, double second,
                        double third) {
    for (uint64_t at = data->start[e]; at < data->start[e + 1]; at++) {
        const double x = data->value ? (double)data->value[at] : 1;
        double *column = heap + (uint64_t)data->id[at] * width;
        column[0] += x * first;
        if (width > SHMT_HEAP_CURVE) column[SHMT_HEAP_CURVE] += x * x * second;
        if (width > SHMT_HEAP_SIDE) column[SHMT_HEAP_SIDE] += x * third;
    }
}

INLINE void add_slopes(const struct shmt_pass *pass, uint64_t from, uint64_t to, double *heap, uint32_t width) {
    const struct shmt_problem *p = pass->problem;
    for (uint64_t i = from; i < to; i++) {
        const struct shmt_solve_slope slope = pass->memory->slope[i];
        if (slope.pull == 0 && slope.curve == 0) continue; /* held out, or on no slope */
        const double side = p->loss == SHMT_SOLVE_SQUARED ? shmt_pass_weight(pass, i) : fabs(slope.pull);
        add_example(p->data, shmt_problem_example(p, i), heap, width, slope.pull, slope.curve, side);
    }
}

void shmt_heap_add_slopes(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to) {
    if (!shmt_has_heaps(pass)) return;
    double *heap = shmt_heap_of(pass, number);
    if (shmt_heap_slopes(pass) == SHMT_HEAP_SLOPES)
        add_slopes(pass, from, to, heap, SHMT_HEAP_SLOPES);
    else
        add_slopes(pass, from, to, heap, SHMT_HEAP_SLOPES - 1);
}

void shmt_heap_add_scaled(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to) {
    if (!shmt_has_heaps(pass)) return;
    double *heap = shmt_heap_of(pass, number);
    for (uint64_t i = from; i < to; i++) {
        const double scaled = pass->memory->scaled[i];
        if (scaled != 0) add_example(pass->problem->data, shmt_problem_example(pass->problem, i), heap, 1, scaled, 0, 0);
    }
}

/* x times both. */
INLINE void add_image(const struct shmtrain_data *data, uint64_t e, double *heap, double before, double change) {
    for (uint64_t at = data->start[e]; at < data->start[e + 1]; at++) {
        const double x = data->value ? (double)data->value[at] : 1;
        double *column = heap + (uint64_t)data->id[at] * SHMT_HEAP_IMAGES;
        column[SHMT_HEAP_BEFORE] += x * before;
        column[SHMT_HEAP_CHANGE] += x * change;
    }
}

void shmt_heap_add_images(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to) {
    const struct shmt_solve_memory *m = pass->memory;
    if (!shmt_has_heaps(pass)) return;
    double *heap = shmt_heap_of(pass, number);
    for (uint64_t i = from; i < to; i++) {
        const double before = m->slope[i].pull, change = m->scaled[i] - before;
        if (before != 0 || change != 0)
            add_image(pass->problem->data, shmt_problem_example(pass->problem, i), heap, before, change);
    }
}
