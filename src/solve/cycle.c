/* Coordinate descent with L1: see cycle.h. */
#include "solve/cycle.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/own.h"
#include "base/random.h"

#define MANY_SWEEPS 2000  /* with a Hessian, whose sweeps are cheap */
#define LITTLE      1e-3  /* of what such a step may leave */
#define LOOK_EVERY  16    /* columns */
#define LEAST_CURVE 1e-10 /* part of its own of which a column keeps no less: no division by 0 */

/* What it needs for itself. */
struct bench {
    double *moved;    /* (m) w + d */
    double *change;   /* (n) D (X d), kept up with d; (m) H d, where there is a Hessian */
    uint32_t *active; /* (m) columns that take part */
    uint64_t looked;  /* columns that were looked at */
    uint32_t n;
    double *gradient; /* (m) of the model where d is 0, ... */
    double *curve;    /* (m) ... and its second derivatives */
};

static bool is_bias(const struct shmt_pass *pass, uint32_t j) { return j == pass->plan->of.n_columns; }

static double entry(const struct shmt_solve_memory *m, uint64_t at) { return m->value ? (double)m->value[at] : 1; }

static void choose_active(const struct shmt_pass *pass, struct bench *bench) {
    const double *w = pass->memory->w[pass->state->at];
    for (uint32_t j = 0; j < pass->plan->of.n_columns; j++) {
        bench->moved[j] = w[j];
        if (shmt_pass_is_active(pass, j)) bench->active[bench->n++] = j;
    }
    if (!pass->problem->bias) return;
    bench->moved[pass->plan->of.n_columns] = w[pass->plan->of.n_columns];
    if (!pass->state->direct) bench->active[bench->n++] = pass->plan->of.n_columns; /* else it is taken out */
}

/* The model's derivative along column j. */
static double slope_at(const struct shmt_pass *pass, const struct bench *bench, uint32_t j) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    if (pass->state->direct) return bench->gradient[j] + bench->change[j];
    if (is_bias(pass, j)) {
        for (uint64_t i = 0; i < p->n; i++) sum += bench->change[i];
        return m->gradient[j] + sum / (double)p->n;
    }
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++) sum += entry(m, at) * bench->change[m->row[at]];
    return m->gradient[j] + sum / (double)p->n + p->l2 * (bench->moved[j] - m->w[pass->state->at][j]);
}

static void add_column(const struct shmt_pass *pass, struct bench *bench, uint32_t j, double by) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    if (pass->state->direct) {
        for (uint64_t k = 0; k < all; k++) bench->change[k] += by * m->factor[j * all + k];
        return;
    }
    if (is_bias(pass, j)) {
        for (uint64_t i = 0; i < pass->problem->n; i++) bench->change[i] += m->slope[i].curve * by;
        return;
    }
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++)
        bench->change[m->row[at]] += m->slope[m->row[at]].curve * entry(m, at) * by;
}

/* Column j to where the model is smallest for it. How far its derivative was from having 0 in it. */
static double descend(const struct shmt_pass *pass, struct bench *bench, uint32_t j) {
    const double l1 = is_bias(pass, j) ? 0 : pass->problem->l1, before = bench->moved[j];
    const double slope = slope_at(pass, bench, j), curve = bench->curve[j] + LEAST_CURVE * pass->memory->diagonal[j] + DBL_MIN;
    const double goal = before - slope / curve, room = l1 / curve; /* without L1; what L1 takes off */
    const double next = goal > room ? goal - room : goal < -room ? goal + room : 0;
    if (next != before) add_column(pass, bench, j, next - before);
    bench->moved[j] = next;
    if (before != 0) return fabs(slope + (before > 0 ? l1 : -l1));
    return fmax(0, fabs(slope) - l1);
}

/* Once over those that take part: how far all were from having 0 in their derivatives; below 0: the phase is to be left. */
static double sweep_once(const struct shmt_pass *pass, struct bench *bench) {
    double away = 0;
    for (uint32_t k = 0; k < bench->n; k++) {
        if (bench->looked++ % LOOK_EVERY == 0 && !shmt_pass_goes_on(pass)) return -1;
        away += descend(pass, bench, bench->active[k]);
    }
    return away;
}

static void shuffle(const struct shmt_pass *pass, struct bench *bench, uint32_t sweep) {
    for (uint32_t i = bench->n; i > 1; i--) {
        const uint64_t k = shmt_below(shmt_hash64(pass->state->epoch, sweep, 1, i), i);
        const uint32_t other = bench->active[k];
        bench->active[k] = bench->active[i - 1];
        bench->active[i - 1] = other;
    }
}

/* The model as it is when the bias follows each change of the others to where it is best for it: columns that are far from 0 on average are
 * as good as centred, and do not stand in each other's way. By the Hessian, into `factor`. */
static void take_out_bias(const struct shmt_pass *pass, struct bench *bench) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t b = pass->plan->of.n_columns, all = b + pass->plan->of.bias;
    for (uint64_t j = 0; j < all; j++)
        for (uint64_t k = j; k < all; k++) m->factor[j * all + k] = m->factor[k * all + j] = m->hessian[j * all + k];
    if (!pass->problem->bias || !(m->diagonal[b] > 0)) return;
    const double *with = m->factor + b * all;
    for (uint64_t j = 0; j < b; j++) {
        const double part = with[j] / with[b];
        bench->gradient[j] -= part * m->gradient[b];
        for (uint64_t k = 0; k < b; k++) m->factor[j * all + k] -= part * with[k];
        bench->curve[j] = m->factor[j * all + j];
    }
}

/* Where the bias is best, when the others have moved. */
static void put_back_bias(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t b = pass->plan->of.n_columns, all = b + pass->plan->of.bias;
    double slope = m->gradient[b];
    for (uint64_t j = 0; j < b; j++) slope += m->hessian[j * all + b] * m->direction[0][j];
    m->direction[0][b] = m->diagonal[b] > 0 ? -slope / m->hessian[b * all + b] : 0;
}

static void cycle(const struct shmt_pass *pass, struct bench *bench) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    const uint32_t most = pass->state->direct ? MANY_SWEEPS : pass->state->most_sweeps;
    const double left = pass->state->part * (pass->state->direct ? LITTLE : 1);
    double first = 0;
    bool more = true;
    memcpy(bench->gradient, m->gradient, all * sizeof *bench->gradient);
    memcpy(bench->curve, m->diagonal, all * sizeof *bench->curve);
    choose_active(pass, bench);
    if (pass->state->direct) take_out_bias(pass, bench);
    for (uint32_t sweep = 0; sweep < most; sweep++) {
        shuffle(pass, bench, sweep);
        const double away = sweep_once(pass, bench);
        if (away < 0) return;
        if (sweep == 0) first = away;
        more = away > left * first;
        if (!more) break;
    }
    shmt_solve_sum(m, pass->round, SHMT_SUM_MORE)[0] = more;
    for (uint64_t j = 0; j < all; j++) m->direction[0][j] = bench->moved[j] - m->w[pass->state->at][j];
    if (pass->state->direct && pass->problem->bias) put_back_bias(pass);
}

int shmt_cycle(const struct shmt_pass *pass) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    if (pass->part != 0) return 0;
    struct bench bench = {.moved = shmt_own_calloc(all + 1, sizeof(double)),
                          .change = shmt_own_calloc(pass->state->direct ? all + 1 : pass->problem->n, sizeof(double)),
                          .active = shmt_own_malloc(all + 1, sizeof(uint32_t)),
                          .gradient = shmt_own_malloc(all + 1, sizeof(double)),
                          .curve = shmt_own_malloc(all + 1, sizeof(double))};
    const int rc = bench.moved && bench.change && bench.active && bench.gradient && bench.curve ? 0 : -1;
    if (rc == 0) cycle(pass, &bench);
    shmt_own_free(bench.moved);
    shmt_own_free(bench.change);
    shmt_own_free(bench.active);
    shmt_own_free(bench.gradient);
    shmt_own_free(bench.curve);
    return rc;
}
