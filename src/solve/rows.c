/* Passes by rows: see passes.h. */
#include <stddef.h>

#include "base/checked.h"
#include "base/point.h"
#include "solve/loss_priv.h"
#include "solve/passes.h"

enum {
    LANES = 4
}; /* sums that are taken side by side, and added up in the end: as many as additions that wait for one another */

/* x_i . w, without a bias. */
static double dot_with(const struct shmtrain_data *data, uint64_t example, const double *w) {
    const uint64_t from = data->start[example], to = data->start[example + 1];
    const uint32_t *id = data->id;
    double sum[LANES] = {0};
    uint64_t at = from;
    if (data->value) {
        const float *value = data->value;
        for (; at + LANES <= to; at += LANES)
            for (int k = 0; k < LANES; k++) sum[k] += (double)value[at + (uint64_t)k] * w[id[at + (uint64_t)k]];
        for (; at < to; at++) sum[0] += (double)value[at] * w[id[at]];
    } else {
        for (; at + LANES <= to; at += LANES)
            for (int k = 0; k < LANES; k++) sum[k] += w[id[at + (uint64_t)k]];
        for (; at < to; at++) sum[0] += w[id[at]];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double dot(const struct shmt_problem *p, uint64_t i, const double *w) {
    return dot_with(p->data, shmt_problem_example(p, i), w) + (p->bias ? w[p->n_columns] : 0);
}

static double label(const struct shmt_problem *p, uint64_t i) {
    const float of = p->data->label[shmt_problem_example(p, i)];
    return p->loss == SHMT_SOLVE_LOGISTIC ? (of == p->high ? 1 : -1) : (double)of;
}

/* Calls `block` for each of my blocks of rows. */
static void each_block(const struct shmt_pass *pass, const double *w,
                       void (*block)(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to,
                                     const double *w)) {
    uint64_t first, behind;
    shmt_solve_share(pass->plan->n_row_blocks, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t from = b * pass->plan->row_block;
        SHMT_POINT("fit:rows");
        block(pass, b, from, shmt_min_u64(from + pass->plan->row_block, pass->plan->of.n), w);
    }
}

static void leave(const struct shmt_pass *pass, enum shmt_solve_sums which, uint64_t block, double sum) {
    shmt_solve_sum(pass->memory, pass->round, which)[block] = sum;
}

/* ---- lengths ---- */

static void measure(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    double sum = 0;
    (void)w;
    for (uint64_t i = from; i < to; i++) {
        const uint64_t e = shmt_problem_example(pass->problem, i);
        const double length = (double)(pass->problem->data->start[e + 1] - pass->problem->data->start[e]);
        sum += length * length;
    }
    leave(pass, SHMT_SUM_LENGTH, number, sum);
}

void shmt_pass_lengths(const struct shmt_pass *pass) { each_block(pass, NULL, measure); }

/* ---- losses ---- */

static void score(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    double loss = 0, up = 0, down = 0, weight = 0, curve = 0;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_problem_weight(p, i);
        const struct shmt_loss_at at = shmt_loss_at(p->loss, dot(p, i, w), label(p, i), c);
        m->slope[i] = (struct shmt_solve_slope){at.pull, at.curve};
        curve += at.curve;
        loss += at.loss;
        weight += c;
        up += at.pull > 0 ? at.pull : 0;
        down += at.pull > 0 ? 0 : -at.pull;
    }
    leave(pass, SHMT_SUM_LOSS, number, loss);
    leave(pass, SHMT_SUM_UP, number, up);
    leave(pass, SHMT_SUM_DOWN, number, down);
    leave(pass, SHMT_SUM_WEIGHT, number, weight);
    leave(pass, SHMT_SUM_CURVE, number, curve);
}

void shmt_pass_score(const struct shmt_pass *pass, const double *w) { each_block(pass, w, score); }

static double dot_published(const struct shmt_problem *p, uint64_t i) {
    const uint64_t e = shmt_problem_example(p, i);
    double sum = p->bias ? (double)p->weight[p->n_columns] : 0;
    for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++)
        sum += shmt_problem_value(p, at) * (double)p->weight[p->data->id[at]];
    return sum;
}

static void verify(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    double loss = 0;
    (void)w;
    for (uint64_t i = from; i < to; i++)
        loss += shmt_loss_at(p->loss, dot_published(p, i), label(p, i), shmt_problem_weight(p, i)).loss;
    leave(pass, SHMT_SUM_LOSS, number, loss);
}

void shmt_pass_verify(const struct shmt_pass *pass) { each_block(pass, NULL, verify); }

/* ---- the dual point ---- */

static void dual(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    double sum = 0;
    (void)w;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_problem_weight(p, i), u = pass->memory->slope[i].pull;
        sum += shmt_loss_conjugate(p->loss, u * (u > 0 ? s->up : s->down) - s->shift * c, label(p, i), c);
    }
    leave(pass, SHMT_SUM_DUAL, number, sum);
}

void shmt_pass_dual(const struct shmt_pass *pass) { each_block(pass, NULL, dual); }

/* ---- conjugate gradients ---- */

static void scale(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *search) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    for (uint64_t i = from; i < to; i++) sum += m->scaled[i] = m->slope[i].curve * dot(pass->problem, i, search);
    leave(pass, SHMT_SUM_SCALED, number, sum);
}

void shmt_pass_scaled(const struct shmt_pass *pass, const double *search) { each_block(pass, search, scale); }
