/* What passes by rows have in common. */
#pragma once

#include "base/checked.h"
#include "base/point.h"
#include "solve/passes.h"

/* Sums that are taken side by side, and added up in the end: as many as additions that wait for one another. */
#define SHMT_LANES 4

/* x_i . w, without a bias. */
static inline double shmt_row_dot(const struct shmtrain_data *data, uint64_t example, const double *w) {
    const uint64_t from = data->start[example], to = data->start[example + 1];
    const uint32_t *id = data->id;
    double sum[SHMT_LANES] = {0};
    uint64_t at = from;
    if (data->value) {
        const float *value = data->value;
        for (; at + SHMT_LANES <= to; at += SHMT_LANES)
            for (uint64_t k = 0; k < SHMT_LANES; k++) sum[k] += (double)value[at + k] * w[id[at + k]];
        for (; at < to; at++) sum[0] += (double)value[at] * w[id[at]];
    } else {
        for (; at + SHMT_LANES <= to; at += SHMT_LANES)
            for (uint64_t k = 0; k < SHMT_LANES; k++) sum[k] += w[id[at + k]];
        for (; at < to; at++) sum[0] += w[id[at]];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static inline double shmt_example_dot(const struct shmt_problem *p, uint64_t i, const double *w) {
    return shmt_row_dot(p->data, shmt_problem_example(p, i), w) + (p->bias ? w[p->n_columns] : 0);
}

static inline double shmt_example_label(const struct shmt_problem *p, uint64_t i) {
    const float of = p->data->label[shmt_problem_example(p, i)];
    return p->loss != SHMT_SOLVE_SQUARED ? (of == p->high ? 1 : -1) : (double)of;
}

/* Calls `block` for blocks first .. behind - 1 of the rows. False: the phase is to be left. */
static inline bool shmt_do_blocks(const struct shmt_pass *pass, uint64_t first, uint64_t behind, const double *w,
                                  void (*block)(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to,
                                                const double *w)) {
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t from = b * pass->plan->row_block;
        SHMT_POINT("fit:rows");
        if (!shmt_pass_goes_on(pass)) return false;
        block(pass, b, from, shmt_min_u64(from + pass->plan->row_block, pass->plan->of.n), w);
    }
    return true;
}

/* The same for each of mine. */
static inline void shmt_each_block(const struct shmt_pass *pass, const double *w,
                                   void (*block)(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to,
                                                 const double *w)) {
    uint64_t first, behind;
    shmt_solve_share(pass->plan->n_row_blocks, pass->part, pass->n_parts, &first, &behind);
    (void)shmt_do_blocks(pass, first, behind, w, block);
}

/* Of my block, for what follows from all. */
static inline void shmt_pass_put_sum(const struct shmt_pass *pass, enum shmt_solve_sums which, uint64_t block, double sum) {
    shmt_solve_put_number(pass->memory, pass->round, which, block, sum);
}
