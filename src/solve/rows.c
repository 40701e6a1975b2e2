/* Passes by rows: see passes.h. */
#include "solve/loss_priv.h"
#include "solve/rows_priv.h"

/* ---- lengths ---- */

static bool ascends(const struct shmtrain_data *data, uint64_t example) {
    for (uint64_t at = data->start[example] + 1; at < data->start[example + 1]; at++)
        if (data->id[at] < data->id[at - 1]) return false;
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
    shmt_leave_sum(pass, SHMT_SUM_LENGTH, number, squares);
    shmt_leave_sum(pass, SHMT_SUM_DISORDER, number, disorder);
}

void shmt_pass_lengths(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, measure); }

/* ---- losses ---- */

static void score(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    double loss = 0, up = 0, down = 0, weight = 0, curve = 0, held = 0, heavy = 0;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_problem_weight(p, i);
        const struct shmt_loss_at at =
            shmt_loss_at(p->loss, m->score[i] = shmt_example_dot(p, i, w), shmt_example_label(p, i), c);
        if (shmt_pass_is_held(pass, i)) {
            m->slope[i] = (struct shmt_solve_slope){0, 0};
            held += at.loss;
            heavy += c;
            continue;
        }
        m->slope[i] = (struct shmt_solve_slope){at.pull, at.curve};
        curve += at.curve;
        loss += at.loss;
        weight += c;
        up += at.pull > 0 ? at.pull : 0;
        down += at.pull > 0 ? 0 : -at.pull;
    }
    shmt_leave_sum(pass, SHMT_SUM_LOSS, number, loss);
    shmt_leave_sum(pass, SHMT_SUM_UP, number, up);
    shmt_leave_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_leave_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_leave_sum(pass, SHMT_SUM_CURVE, number, curve);
    shmt_leave_sum(pass, SHMT_SUM_HELD, number, held);
    shmt_leave_sum(pass, SHMT_SUM_HEAVY, number, heavy);
}

void shmt_pass_score(const struct shmt_pass *pass, const double *w) { shmt_each_block(pass, w, score); }

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
        loss += shmt_loss_at(p->loss, dot_published(p, i), shmt_example_label(p, i), shmt_problem_weight(p, i)).loss;
    shmt_leave_sum(pass, SHMT_SUM_LOSS, number, loss);
}

void shmt_pass_verify(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, verify); }

/* ---- the dual point ---- */

static void dual(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    const double b =
        p->bias ? pass->memory->w[s->at][p->n_columns] : 0; /* the sum of u is 0, so labels may be taken from here */
    const double centre = p->loss == SHMT_SOLVE_SQUARED ? b : 0;
    double sum = 0, shorter = 0, terms = 0;
    (void)w;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_pass_weight(pass, i), u = pass->memory->slope[i].pull;
        const double dual = u * (u > 0 ? s->up : s->down) - s->shift * c;
        const double off = shmt_example_label(p, i) - centre, term = shmt_loss_conjugate(p->loss, dual, off, c);
        sum += term;
        terms += fabs(term) + fabs(dual);
        if (p->l1 > 0) shorter += shmt_loss_conjugate(p->loss, s->shorter * dual, off, c);
    }
    shmt_leave_sum(pass, SHMT_SUM_DUAL, number, sum);
    shmt_leave_sum(pass, SHMT_SUM_TERMS, number, terms);
    shmt_leave_sum(pass, SHMT_SUM_SHORT, number, shorter);
}

void shmt_pass_dual(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, dual); }

/* ---- conjugate gradients ---- */

static void scale(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *search) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    for (uint64_t i = from; i < to; i++) {
        const double curve = m->slope[i].curve; /* 0: on no slope that changes */
        sum += m->scaled[i] = curve == 0 ? 0 : curve * shmt_example_dot(pass->problem, i, search);
    }
    shmt_leave_sum(pass, SHMT_SUM_SCALED, number, sum);
}

void shmt_pass_scaled(const struct shmt_pass *pass, const double *search) { shmt_each_block(pass, search, scale); }
