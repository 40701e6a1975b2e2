/* What passes by columns have in common. The bias is the column behind the last one, in which every example has a 1. */
#pragma once

#include "base/checked.h"
#include "base/point.h"
#include "solve/passes.h"

static inline bool shmt_is_bias(const struct shmt_pass *pass, uint64_t j) { return j == pass->plan->of.n_columns; }

/* Interior points: most examples' curvature is a small part of the mean one. They give the Hessian their squares alone. */
static inline double shmt_small_curve(const struct shmt_solve_state *s) {
    return s->interior ? s->small * s->curve / s->weight : 0;
}

/* Calls `column` for each column of the blocks first .. behind - 1, and leaves the sums, block by block, of what it returns. `about`:
 * whatever it takes. */
static inline void shmt_columns_of(const struct shmt_pass *pass, uint64_t first, uint64_t behind, enum shmt_solve_sums which,
                                   const void *about,
                                   double (*column)(const struct shmt_pass *pass, uint32_t j, const void *about)) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, all);
        double sum = 0;
        SHMT_POINT("fit:columns");
        if (!shmt_pass_goes_on(pass)) return;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) sum += column(pass, (uint32_t)j, about);
        shmt_solve_put_number(pass->memory, pass->round, which, b, sum);
    }
}

/* The same for my columns. */
static inline void shmt_each_column(const struct shmt_pass *pass, enum shmt_solve_sums which, const void *about,
                                    double (*column)(const struct shmt_pass *pass, uint32_t j, const void *about)) {
    uint64_t first, behind;
    shmt_solve_share_columns(pass->plan, pass->memory, pass->part, pass->n_parts, &first, &behind);
    shmt_columns_of(pass, first, behind, which, about, column);
}

/* x_j . of, a number for each example; not of the bias. Sums side by side, as many as additions that wait for one another. */
static inline double shmt_column_dot(const struct shmt_solve_memory *m, uint64_t j, const double *of) {
    enum { LANES = 4 };
    const uint64_t from = m->start[j], to = m->start[j + 1];
    double sum[LANES] = {0};
    uint64_t at = from;
    if (m->value)
        for (; at + LANES <= to; at += LANES)
            for (uint64_t k = 0; k < LANES; k++) sum[k] += (double)m->value[at + k] * of[m->row[at + k]];
    else
        for (; at + LANES <= to; at += LANES)
            for (uint64_t k = 0; k < LANES; k++) sum[k] += of[m->row[at + k]];
    for (; at < to; at++) sum[0] += (m->value ? (double)m->value[at] : 1) * of[m->row[at]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
