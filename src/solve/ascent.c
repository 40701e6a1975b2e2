/* Dual coordinate ascent: see ascent.h. */
#include "solve/ascent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "solve/loss_priv.h"
#include "solve/rows_priv.h"

/* How far the bias moves for a sum of u / N: as if it were a weight whose feature is 1. */
static double rho(const struct shmt_problem *p) { return p->bias ? 1 / p->l2 : 0; }

static double *point(const struct shmt_pass *pass) { return pass->memory->w[pass->state->at]; }

/* ---- at rest ---- */

static double square_of_row(const struct shmt_problem *p, uint64_t i) {
    const uint64_t e = shmt_problem_example(p, i);
    double sum = 0;
    for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++)
        sum += shmt_problem_value(p, at) * shmt_problem_value(p, at);
    return sum;
}

static void rest_rows(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    (void)unused;
    for (uint64_t i = from; i < to; i++) pass->memory->square[i] = square_of_row(pass->problem, i);
    memset(pass->memory->slope + from, 0, (to - from) * sizeof *pass->memory->slope);
    shmt_leave_sum(pass, SHMT_SUM_NOTHING, number, 0);
}

void shmt_ascent_rest(const struct shmt_pass *pass) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    uint64_t from, to;
    shmt_each_block(pass, NULL, rest_rows);
    shmt_solve_share(all, pass->part, pass->n_parts, &from, &to);
    memset(point(pass) + from, 0, (to - from) * sizeof(double));
}

/* ---- the ascent ---- */

/* Where a sweep begins: the point, or what the sweep before it has left; and where it leaves what it has. No sweep changes what it begins
 * with, so it may be done again. */
static const double *image_before(const struct shmt_pass *pass) {
    return pass->state->inner == 0 ? point(pass) : pass->memory->direction[pass->state->inner % 2];
}

static double dual_before(const struct shmt_pass *pass, uint64_t i) {
    const struct shmt_solve_memory *m = pass->memory;
    return pass->state->inner == 0 ? m->slope[i].pull : pass->state->inner % 2 ? m->score[i] : m->scaled[i];
}

static double *image_behind(const struct shmt_pass *pass) { return pass->memory->direction[1 - pass->state->inner % 2]; }
static double *dual_behind(const struct shmt_pass *pass) {
    return pass->state->inner % 2 ? pass->memory->scaled : pass->memory->score;
}

/* Coordinates that are still worth a look, of a sweep after the other. */
struct ascent {
    const struct shmt_problem *p;
    const double *square;
    double *w, *u;
    double b;         /* the bias, with what the sum of u adds to it */
    uint32_t *order;  /* (n) */
    uint64_t active;  /* the first ones of these */
    uint64_t visits;  /* of coordinates, so far */
    double high, low; /* the largest and the least slope of the dual that was left in the sweep before */
};

static void shuffle(const struct shmt_pass *pass, struct ascent *a) {
    for (uint64_t i = a->active; i > 1; i--) {
        const uint64_t k = shmt_below(shmt_hash64(pass->state->epoch, pass->state->inner, a->visits, i), i);
        const uint32_t other = a->order[k];
        a->order[k] = a->order[i - 1];
        a->order[i - 1] = other;
    }
}

/* w += factor x_i. */
static void add_row(const struct shmt_problem *p, uint64_t i, double factor, double *w) {
    const struct shmtrain_data *data = p->data;
    const uint64_t e = shmt_problem_example(p, i), to = data->start[e + 1];
    if (data->value)
        for (uint64_t at = data->start[e]; at < to; at++) w[data->id[at]] += factor * (double)data->value[at];
    else
        for (uint64_t at = data->start[e]; at < to; at++) w[data->id[at]] += factor;
}

/* One coordinate, to where the dual is largest for it. Returns the slope that it had, as far as it may follow it; NaN: it is at an end of
 * its range, and so steep there that it will hardly leave it (shrinking: Hsieh et al. 2008). */
static double ascend(struct ascent *a, uint64_t i) {
    const struct shmt_problem *p = a->p;
    const double c = shmt_problem_weight(p, i), s = shmt_example_label(p, i), n = (double)p->n, before = s * a->u[i];
    const double slope = 1 - s * (shmt_row_dot(p->data, shmt_problem_example(p, i), a->w) + a->b);
    if (slope <= 0 && before <= 0) return slope < a->low ? NAN : 0;
    if (slope >= 0 && before >= c) return slope > a->high ? NAN : 0;
    const double bend = a->square[i] / (p->l2 * n) + rho(p) / n;
    const double wanted = bend > 0 ? before + slope / bend : c;
    const double change = s * ((wanted < 0 ? 0 : wanted > c ? c : wanted) - before);
    a->u[i] += change;
    a->b += rho(p) * change / n;
    add_row(p, i, change / (p->l2 * n), a->w);
    return slope;
}

/* Over those that are active. */
static void sweep(const struct shmt_pass *pass, struct ascent *a) {
    double high = 0, low = 0;
    shuffle(pass, a);
    a->visits += a->active;
    for (uint64_t k = 0; k < a->active;) {
        const double slope = ascend(a, a->order[k]);
        if (isnan(slope)) {
            const uint32_t gone = a->order[k];
            a->order[k] = a->order[--a->active];
            a->order[a->active] = gone;
            continue;
        }
        high = slope > high ? slope : high;
        low = slope < low ? slope : low;
        k++;
    }
    a->high = high > 0 ? high : INFINITY;
    a->low = low < 0 ? low : -INFINITY;
}

int shmt_ascent_sweep(const struct shmt_pass *pass) {
    const struct shmt_problem *p = pass->problem;
    struct ascent a = {.p = p,
                       .square = pass->memory->square,
                       .w = image_behind(pass),
                       .u = dual_behind(pass),
                       .active = p->n,
                       .high = INFINITY,
                       .low = -INFINITY};
    double sum = 0;
    if (pass->part != 0) return 0;
    a.order = malloc(p->n * sizeof *a.order);
    if (!a.order) return -1;
    memcpy(a.w, image_before(pass), p->n_columns * sizeof *a.w);
    for (uint64_t i = 0; i < p->n; i++) a.order[i] = (uint32_t)i;
    for (uint64_t i = 0; i < p->n; i++) sum += a.u[i] = dual_before(pass, i);
    a.b = p->bias ? point(pass)[p->n_columns] + rho(p) * sum / (double)p->n : 0;
    while (a.visits < shmt_ascent_visits(pass->state) * p->n && a.active > 0) sweep(pass, &a);
    free(a.order);
    return 0;
}

/* ---- the direction ---- */

static void gain(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0, change = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        sum += fabs(m->scaled[i]) - fabs(m->slope[i].pull);
        change += m->scaled[i] - m->slope[i].pull;
    }
    shmt_leave_sum(pass, SHMT_SUM_GAIN, number, sum);
    shmt_leave_sum(pass, SHMT_SUM_CHANGE, number, change);
}

/* Images of u and of the direction along column j. */
static void image_of_column(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const double scale = 1 / (pass->problem->l2 * (double)pass->problem->n);
    double before = 0, change = 0;
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++) {
        const uint32_t i = m->row[at];
        const double x = m->value ? (double)m->value[at] : 1;
        before += x * m->slope[i].pull;
        change += x * (m->scaled[i] - m->slope[i].pull);
    }
    m->product[j] = scale * before;
    m->direction[0][j] = scale * change;
}

void shmt_ascent_image(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    uint64_t first, behind;
    shmt_each_block(pass, NULL, gain);
    shmt_solve_share_columns(pass->plan, m, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, pass->plan->of.n_columns);
        double cross = 0, length = 0;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) {
            image_of_column(pass, j);
            cross += pass->problem->l2 * m->product[j] * m->direction[0][j];
            length += pass->problem->l2 * m->direction[0][j] * m->direction[0][j];
        }
        shmt_leave_sum(pass, SHMT_SUM_CROSS, b, cross);
        shmt_leave_sum(pass, SHMT_SUM_LENGTHS, b, length);
    }
}

double shmt_ascent_step(const struct shmt_pass *pass, double gains, double change, double cross, double length, double sum) {
    const struct shmt_problem *p = pass->problem;
    const double n = (double)p->n, b = p->bias ? point(pass)[p->n_columns] + rho(p) * sum / n : 0;
    const double slope = gains / n - cross - b * change / n;
    const double bend = length + rho(p) * change * change / (n * n);
    return bend > 0 ? fmin(1, fmax(0, slope / bend)) : 1;
}

/* ---- the step ---- */

static void advance_rows(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    (void)unused;
    for (uint64_t i = from; i < to; i++)
        m->slope[i].curve = m->slope[i].pull + pass->state->step * (m->scaled[i] - m->slope[i].pull);
    shmt_leave_sum(pass, SHMT_SUM_NOTHING, number, 0);
}

void shmt_ascent_advance(const struct shmt_pass *pass) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    const struct shmt_solve_memory *m = pass->memory;
    double *next = m->w[1 - s->at];
    uint64_t from, to;
    shmt_each_block(pass, NULL, advance_rows);
    shmt_solve_share((uint64_t)p->n_columns + p->bias, pass->part, pass->n_parts, &from, &to);
    for (uint64_t j = from; j < to; j++)
        next[j] = j == p->n_columns ? point(pass)[j] + rho(p) * (s->pull + s->step * s->change) / (double)p->n
                                    : m->product[j] + s->step * m->direction[0][j];
}

static void weigh(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    double loss = 0, up = 0, down = 0, weight = 0;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_problem_weight(p, i), u = m->slope[i].curve;
        m->slope[i].pull = u;
        loss += shmt_loss_at(p->loss, shmt_example_dot(p, i, w), shmt_example_label(p, i), c).loss;
        up += u > 0 ? u : 0;
        down += u > 0 ? 0 : -u;
        weight += c;
    }
    shmt_leave_sum(pass, SHMT_SUM_LOSS, number, loss);
    shmt_leave_sum(pass, SHMT_SUM_UP, number, up);
    shmt_leave_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_leave_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_leave_sum(pass, SHMT_SUM_CURVE, number, 0);
}

void shmt_ascent_weigh(const struct shmt_pass *pass) { shmt_each_block(pass, pass->memory->w[1 - pass->state->at], weigh); }
