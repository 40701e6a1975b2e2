/* Passes by rows: see passes.h. */
#include <math.h>

#include "solve/heaps.h"
#include "solve/loss_priv.h"

/* ---- lengths ---- */

static bool ascends(const struct shmtrain_data *data, uint64_t example) {
    for (uint64_t at = data->start[example] + 1; at < data->start[example + 1]; at++)
        if (data->id[at] <= data->id[at - 1]) return false;
    return true;
}

static void measure(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    double squares = 0, disorder = 0;
    (void)w;
    for (uint64_t i = from; i < to; i++) {
        const uint64_t e = shmt_problem_example(pass->problem, i);
        const double length = (double)(pass->problem->data->start[e + 1] - pass->problem->data->start[e]);
        squares += length * length;
        disorder += !ascends(pass->problem->data, e);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LENGTH, number, squares);
    shmt_pass_put_sum(pass, SHMT_SUM_DISORDER, number, disorder);
}

void shmt_pass_lengths(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, measure); }

/* ---- losses ---- */

/* Sums over a block. */
struct of_block {
    double loss, up, down, weight, curve, held, heavy;
};

/* Of a few examples: their scores, and what follows from these. */
static void add_losses(const struct shmt_pass *pass, uint64_t first, uint32_t n, const double *w, struct of_block *sum) {
    const struct shmt_problem *p = pass->problem;
    struct shmt_loss_at at[SHMT_TOGETHER];
    for (uint32_t k = 0; k < n; k++) pass->memory->score[first + k] = shmt_example_dot(p, first + k, w);
    shmt_losses(p, first, n, pass->memory->score + first, at);
    for (uint32_t k = 0; k < n; k++) {
        const double c = shmt_problem_weight(p, first + k);
        if (shmt_pass_is_held(pass, first + k)) {
            pass->memory->slope[first + k] = (struct shmt_solve_slope){0, 0};
            sum->held += at[k].loss;
            sum->heavy += c;
            continue;
        }
        pass->memory->slope[first + k] = (struct shmt_solve_slope){at[k].pull, at[k].curve};
        sum->curve += at[k].curve;
        sum->loss += at[k].loss;
        sum->weight += c;
        sum->up += at[k].pull > 0 ? at[k].pull : 0;
        sum->down += at[k].pull > 0 ? 0 : -at[k].pull;
    }
}

static void score(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    struct of_block sum = {0};
    for (uint64_t i = from; i < to; i += SHMT_TOGETHER) {
        const uint32_t n = shmt_together(i, to);
        add_losses(pass, i, n, w, &sum);
        shmt_heap_add_slopes(pass, number, i, i + n); /* rows that are at hand */
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, sum.loss);
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, sum.up);
    shmt_pass_put_sum(pass, SHMT_SUM_DOWN, number, sum.down);
    shmt_pass_put_sum(pass, SHMT_SUM_WEIGHT, number, sum.weight);
    shmt_pass_put_sum(pass, SHMT_SUM_CURVE, number, sum.curve);
    shmt_pass_put_sum(pass, SHMT_SUM_HELD, number, sum.held);
    shmt_pass_put_sum(pass, SHMT_SUM_HEAVY, number, sum.heavy);
}

void shmt_pass_score(const struct shmt_pass *pass, const double *w) {
    shmt_each_heaped_block(pass, shmt_heap_slopes(pass), w, score);
}

static double dot_published(const struct shmt_problem *p, uint64_t i) {
    const uint64_t e = shmt_problem_example(p, i);
    double sum = p->bias ? (double)p->weight[p->n_columns] : 0;
    for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++)
        sum += shmt_problem_value(p, at) * (double)p->weight[p->data->id[at]];
    return sum;
}

static void verify(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    struct shmt_loss_at at[SHMT_TOGETHER];
    double z[SHMT_TOGETHER], loss = 0;
    (void)w;
    for (uint64_t i = from; i < to; i += SHMT_TOGETHER) {
        const uint32_t n = shmt_together(i, to);
        for (uint32_t k = 0; k < n; k++) z[k] = dot_published(pass->problem, i + k);
        shmt_losses(pass->problem, i, n, z, at);
        for (uint32_t k = 0; k < n; k++) loss += at[k].loss;
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss);
}

void shmt_pass_verify(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, verify); }

/* ---- the dual point ---- */

/* Sums over a block: of conjugates, of those of the shortened point, and of the sizes of what is added up. */
struct of_dual {
    double dual, shorter, terms;
};

static void add_conjugates(const struct shmt_pass *pass, uint64_t first, uint32_t n, struct of_dual *sum) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    const double b =
        p->bias ? pass->memory->w[s->at][p->n_columns] : 0; /* the sum of u is 0, so labels may be taken from here */
    const double centre = p->loss == SHMT_SOLVE_SQUARED ? b : 0;
    double dual[SHMT_TOGETHER], off[SHMT_TOGETHER], c[SHMT_TOGETHER], term[SHMT_TOGETHER];
    for (uint32_t k = 0; k < n; k++) {
        const double u = pass->memory->slope[first + k].pull;
        c[k] = shmt_pass_weight(pass, first + k);
        dual[k] = u * (u > 0 ? s->up : s->down) - s->shift * c[k];
        off[k] = shmt_example_label(p, first + k) - centre;
    }
    shmt_conjugates(p->loss, n, dual, off, c, term);
    for (uint32_t k = 0; k < n; k++) {
        sum->dual += term[k];
        sum->terms += fabs(term[k]) + fabs(dual[k]);
    }
    if (p->l1 == 0) return;
    for (uint32_t k = 0; k < n; k++) dual[k] *= s->shorter;
    shmt_conjugates(p->loss, n, dual, off, c, term);
    for (uint32_t k = 0; k < n; k++) sum->shorter += term[k];
}

static void dual(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    struct of_dual sum = {0};
    (void)w;
    for (uint64_t i = from; i < to; i += SHMT_TOGETHER) add_conjugates(pass, i, shmt_together(i, to), &sum);
    shmt_pass_put_sum(pass, SHMT_SUM_DUAL, number, sum.dual);
    shmt_pass_put_sum(pass, SHMT_SUM_TERMS, number, sum.terms);
    shmt_pass_put_sum(pass, SHMT_SUM_SHORT, number, sum.shorter);
}

void shmt_pass_dual(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, dual); }

/* ---- conjugate gradients ---- */

static void scale(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *search) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    for (uint64_t first = from; first < to; first += SHMT_TOGETHER) {
        const uint64_t behind = first + shmt_together(first, to);
        for (uint64_t i = first; i < behind; i++) {
            const double curve = m->slope[i].curve; /* 0: on no slope that changes */
            sum += m->scaled[i] = curve == 0 ? 0 : curve * shmt_example_dot(pass->problem, i, search);
        }
        shmt_heap_add_scaled(pass, number, first, behind); /* rows that are at hand */
    }
    shmt_pass_put_sum(pass, SHMT_SUM_SCALED, number, sum);
}

void shmt_pass_scaled(const struct shmt_pass *pass, const double *search) {
    shmt_each_heaped_block(pass, SHMT_HEAP_SCALED, search, scale);
}
