/* Passes by columns: see passes.h. */
#include <math.h>
#include <string.h>

#include "solve/columns_priv.h"
#include "solve/heaps.h"

enum { LANES = 4 };
#define LOOK_EVERY 1024 /* entries of a column of the Hessian, for each of which there is a row */

/* With L1 alone, columns that repeat one another leave directions without curvature: steps on a face are held back by as much of the
 * diagonal. */
#define FACE_DAMPING 1e-5

/* What a column gives with u, with what the dual point differs by (|u|, or the weights of the examples), and the curvatures. */
struct column_sums {
    double pull, side, curve;
};

static double lanes(const double sum[LANES]) { return (sum[0] + sum[1]) + (sum[2] + sum[3]); }

/* With `values` and `sides` known: the loops below are compiled for each. */
static inline __attribute__((always_inline)) struct column_sums sum_entries(const struct shmt_solve_memory *m, uint64_t from,
                                                                            uint64_t to, bool values, bool sides) {
    double pull[LANES] = {0}, side[LANES] = {0}, curve[LANES] = {0};
    uint64_t at = from;
    for (; at + LANES <= to; at += LANES)
        for (uint64_t k = 0; k < LANES; k++) {
            const struct shmt_solve_slope slope = m->slope[m->row[at + k]];
            const double x = values ? (double)m->value[at + k] : 1;
            pull[k] += x * slope.pull;
            if (sides) side[k] += x * fabs(slope.pull);
            curve[k] += x * x * slope.curve;
        }
    for (; at < to; at++) {
        const struct shmt_solve_slope slope = m->slope[m->row[at]];
        const double x = values ? (double)m->value[at] : 1;
        pull[0] += x * slope.pull;
        if (sides) side[0] += x * fabs(slope.pull);
        curve[0] += x * x * slope.curve;
    }
    return (struct column_sums){lanes(pull), lanes(side), lanes(curve)};
}

/* A call of its own: within sum_column it slowed down the loops of those without heaps. */
static __attribute__((noinline)) struct column_sums sum_heaps(const struct shmt_pass *pass, uint32_t j, uint32_t width) {
    return (struct column_sums){.pull = shmt_heap_sum(pass, j, width, SHMT_HEAP_PULL),
                                .side = width > SHMT_HEAP_SIDE ? shmt_heap_sum(pass, j, width, SHMT_HEAP_SIDE) : 0,
                                .curve = shmt_heap_sum(pass, j, width, SHMT_HEAP_CURVE)};
}

/* Of squared loss, side: x times the examples' weights, by heaps alone. */
static struct column_sums sum_column(const struct shmt_pass *pass, uint32_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    if (shmt_has_heaps(pass)) return sum_heaps(pass, j, shmt_heap_slopes(pass));
    const uint64_t from = m->start[j], to = m->start[j + 1];
    const bool sides = pass->state->up != 1 || pass->state->down != 1;
    if (m->value) return sides ? sum_entries(m, from, to, true, true) : sum_entries(m, from, to, true, false);
    return sides ? sum_entries(m, from, to, false, true) : sum_entries(m, from, to, false, false);
}

/* Sum of x times the examples' weights: the squared loss's dual point is off by a part of these. */
static double sum_weights(const struct shmt_pass *pass, uint32_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++)
        sum += (m->value ? (double)m->value[at] : 1) * shmt_pass_weight(pass, m->row[at]);
    return sum;
}

/* gradient = l2_j w_j - x_j . u / N; image = x_j . u* / (l2_j N), u* the dual point. */
static double slope_of_column(const struct shmt_pass *pass, uint32_t j, const void *point) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    const struct shmt_solve_memory *m = pass->memory;
    const double n = (double)p->n, *w = point;
    if (shmt_is_bias(pass, j)) {
        m->gradient[j] = -s->pull / n;
        m->diagonal[j] = s->curve / n;
        return 0;
    }
    const struct column_sums of = sum_column(pass, j);
    double dual = of.pull;
    if (s->up != 1 || s->down != 1) dual = 0.5 * (s->up * (of.pull + of.side) + s->down * (of.pull - of.side));
    if (s->shift != 0) dual -= s->shift * (shmt_has_heaps(pass) ? of.side : sum_weights(pass, j));
    const double l2 = shmt_pass_l2(pass, j), over = fmax(0, fabs(dual) / n - p->l1);
    m->product[j] = dual / n;
    m->gradient[j] = l2 * w[j] - of.pull / n;
    m->diagonal[j] = of.curve / n + l2;
    return l2 > 0 ? over * over / l2 : 0;
}

/* The largest of each block. */
static void leave_most(const struct shmt_pass *pass) {
    uint64_t first, behind;
    shmt_solve_share_columns(pass->plan, pass->memory, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, pass->plan->of.n_columns);
        double most = 0;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) most = fmax(most, fabs(pass->memory->product[j]));
        shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MOST)[b] = most;
    }
}

void shmt_pass_slope(const struct shmt_pass *pass, const double *w) {
    shmt_each_column(pass, SHMT_SUM_IMAGE, w, slope_of_column);
    leave_most(pass);
}

static double product_of_column(const struct shmt_pass *pass, uint32_t j, const void *vector) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    const double *search = vector, product = shmt_is_bias(pass, j)  ? pass->state->scaled
                                             : shmt_has_heaps(pass) ? shmt_heap_sum(pass, j, SHMT_HEAP_SCALED, 0)
                                                                    : shmt_column_dot(m, j, m->scaled);
    const double more = pass->state->face ? FACE_DAMPING * m->diagonal[j] : 0;
    m->product[j] = product / (double)p->n + (more + (shmt_is_bias(pass, j) ? 0 : shmt_pass_l2(pass, j))) * search[j];
    return m->product[j] * search[j];
}

void shmt_pass_product(const struct shmt_pass *pass, const double *search) {
    shmt_each_column(pass, SHMT_SUM_PQ, search, product_of_column);
}

/* ---- the Hessian: row j is X' D X, for one column of X ---- */

/* Of columns j and beyond, which lie at the end of a row that ascends; else of all. */
static void add_row(const struct shmt_pass *pass, uint64_t i, uint32_t j, double factor, double *to) {
    const struct shmt_problem *p = pass->problem;
    const uint64_t e = shmt_problem_example(p, i), first = p->data->start[e];
    const uint32_t least = pass->state->ascending ? j : 0, *id = p->data->id;
    for (uint64_t at = p->data->start[e + 1]; at-- > first && id[at] >= least;)
        to[id[at]] += factor * shmt_problem_value(p, at);
    if (p->bias) to[p->n_columns] += factor;
}

static double hessian_of_column(const struct shmt_pass *pass, uint32_t j, const void *unused) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)p->n_columns + p->bias;
    const double small = shmt_small_curve(pass->state);
    double *row = m->hessian + j * all, alone = 0;
    (void)unused;
    memset(row, 0, all * sizeof *row);
    if (shmt_is_bias(pass, j)) {
        row[j] = pass->state->curve / (double)p->n;
        return 0;
    }
    if (pass->state->cycles && !shmt_pass_is_active(pass, j)) return 0; /* nobody looks at its row */
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++) {
        const double x = m->value ? (double)m->value[at] : 1, curve = m->slope[m->row[at]].curve;
        if (at % LOOK_EVERY == 0 && !shmt_pass_goes_on(pass)) return 0;
        if (curve > small)
            add_row(pass, m->row[at], j, x * curve, row);
        else
            alone += x * x * curve;
    }
    row[j] += alone;
    for (uint64_t k = 0; k < all; k++) row[k] /= (double)p->n;
    row[j] += shmt_pass_l2(pass, j);
    return 0;
}

void shmt_pass_hessian(const struct shmt_pass *pass) {
    uint64_t first, behind;
    if (pass->state->ascending)
        shmt_solve_share_pairs(pass->plan, pass->memory, pass->part, pass->n_parts, &first, &behind);
    else
        shmt_solve_share_columns(pass->plan, pass->memory, pass->part, pass->n_parts, &first, &behind);
    shmt_columns_of(pass, first, behind, SHMT_SUM_NOTHING, NULL, hessian_of_column);
}
