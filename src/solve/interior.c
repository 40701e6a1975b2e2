/* Interior points of the hinge: see interior.h. */
#include "solve/interior.h"

#include <math.h>
#include <string.h>

#include "solve/columns_priv.h"
#include "solve/heaps.h"
#include "solve/loss_priv.h"
#include "solve/rows_priv.h"

#define LEAST 1e-14 /* what rounding may bring to 0 or below stays above it by as much of its scale */

/* ---- an example, and how it changes ---- */

/* Where an example stands. */
struct stand {
    double c, s;       /* weight, label */
    double m, a, e;    /* margin, dual variable, slack */
    double left, over; /* c - a, m - 1 + e */
    double curve;
};

/* fmin and fmax are calls, for the sake of what is no number. */
static inline double smaller(double x, double y) { return x < y ? x : y; }
static inline double larger(double x, double y) { return x > y ? x : y; }

/* False: its weight is 0, and so it is nowhere. */
static inline bool stands(const struct shmt_pass *pass, uint64_t i, uint32_t at, struct stand *out) {
    const struct shmt_interior *inner = &pass->memory->inner[at][i];
    const double c = shmt_pass_weight(pass, i), s = shmt_example_label(pass->problem, i), m = s * pass->memory->score[i];
    if (c == 0) return false;
    *out = (struct stand){.c = c, .s = s, .m = m, .a = inner->dual, .e = inner->slack, .left = c - inner->dual};
    out->over = larger(m - 1 + out->e, LEAST);
    out->curve = out->a * out->left / (out->over * out->left + out->e * out->a);
    return true;
}

/* What is wanted of the products behind a step, for a (m - 1 + e) and for (c - a) e. */
struct wanted {
    double over, left;
};

/* Changes of a, e and m - 1 + e. */
struct change {
    double a, e, over;
};

static const struct wanted NOTHING = {0, 0};

/* u is to be s (a + curve wish). */
static inline double wish(const struct stand *x, struct wanted w) { return 1 - x->m + w.over / x->a - w.left / x->left; }

/* margin: its change. */
static inline struct change change_of(const struct stand *x, struct wanted w, double margin) {
    const double a = x->curve * (wish(x, w) - margin), e = (w.left + x->e * a) / x->left - x->e;
    return (struct change){a, e, margin + e};
}

/* What the second direction aims at, when the first one would change the margin so. */
static inline struct wanted corrected(const struct shmt_pass *pass, const struct stand *x, double margin) {
    const struct change first = change_of(x, NOTHING, margin);
    const double target = x->c * pass->state->target;
    return (struct wanted){target - first.a * first.over, target + first.a * first.e};
}

/* What direction `number` aims at. */
static inline struct wanted wanted_of(const struct shmt_pass *pass, uint64_t i, const struct stand *x, uint32_t number) {
    return number == 0 ? NOTHING : corrected(pass, x, x->s * pass->memory->along[0][i]);
}

/* How the example changes by a whole step along it. */
static inline struct change change_along(const struct shmt_pass *pass, uint64_t i, const struct stand *x, uint32_t number) {
    return change_of(x, wanted_of(pass, i, x, number), x->s * pass->memory->along[number][i]);
}

/* ---- passes ---- */

static void rest(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const double golden = 0.5 * (sqrt(5) - 1); /* a/c: with m = 0 and t = 1, a (e - 1) = (c - a) e = c */
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        const double c = shmt_pass_weight(pass, i);
        pass->memory->inner[pass->state->at][i] = (struct shmt_interior){golden * c, 1 / (1 - golden)};
    }
    shmt_pass_put_sum(pass, SHMT_SUM_NOTHING, number, 0);
}

void shmt_interior_start(const struct shmt_pass *pass) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    uint64_t from, to;
    shmt_each_block(pass, NULL, rest);
    shmt_solve_share(all, pass->part, pass->n_parts, &from, &to);
    memset(pass->memory->w[pass->state->at] + from, 0, (to - from) * sizeof(double));
}

static void score(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t at = pass->state->tried ? 1 - pass->state->at : pass->state->at;
    double loss = 0, up = 0, down = 0, weight = 0, curve = 0, products = 0, wishes = 0;
    for (uint64_t i = from; i < to; i++) {
        struct stand x;
        m->score[i] = shmt_example_dot(pass->problem, i, w);
        m->slope[i] = (struct shmt_solve_slope){0, 0};
        m->wish[i] = 0;
        if (!stands(pass, i, at, &x)) continue;
        m->slope[i] = (struct shmt_solve_slope){x.s * x.a, x.curve};
        wishes += m->wish[i] = x.s * (x.a + x.curve * wish(&x, NOTHING));
        products += x.a * x.over + x.left * x.e;
        loss += x.c * larger(0, 1 - x.m);
        weight += x.c;
        curve += x.curve;
        up += x.s > 0 ? x.a : 0;
        down += x.s > 0 ? 0 : x.a;
    }
    shmt_heap_add_slopes(pass, number, from, to);
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss);
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, up);
    shmt_pass_put_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_pass_put_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_pass_put_sum(pass, SHMT_SUM_CURVE, number, curve);
    shmt_pass_put_sum(pass, SHMT_SUM_PRODUCTS, number, products);
    shmt_pass_put_sum(pass, SHMT_SUM_WISH, number, wishes);
}

void shmt_interior_score(const struct shmt_pass *pass, const double *w) {
    shmt_each_heaped_block(pass, shmt_heap_slopes(pass), w, score);
}

static double aim(const struct shmt_pass *pass, uint32_t j, const void *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    const double n = (double)pass->problem->n;
    (void)unused;
    m->gradient[j] = shmt_is_bias(pass, j)
                         ? -pass->state->wish / n
                         : shmt_pass_l2(pass, j) * m->w[pass->state->at][j] - shmt_column_dot(m, j, m->wish) / n;
    return 0;
}

void shmt_interior_aim(const struct shmt_pass *pass) { shmt_each_column(pass, SHMT_SUM_NOTHING, NULL, aim); }

/* What a step leads away from by so much of itself must not be reached. */
static void reach(const struct shmt_pass *pass, uint64_t block, uint64_t from, uint64_t to, const double *direction) {
    const uint32_t number = pass->state->corrects;
    double most = 0, first = 0, second = 0;
    for (uint64_t i = from; i < to; i++) {
        struct stand x;
        pass->memory->along[number][i] = shmt_example_dot(pass->problem, i, direction);
        if (!stands(pass, i, pass->state->at, &x)) continue;
        const struct change by = change_along(pass, i, &x, pass->state->corrects);
        most = larger(most, larger(by.a < 0 ? -by.a / x.a : by.a / x.left, larger(-by.e / x.e, -by.over / x.over)));
        first += x.a * by.over + x.over * by.a + x.left * by.e - x.e * by.a;
        second += by.a * by.over - by.a * by.e;
    }
    shmt_pass_put_sum(pass, SHMT_SUM_REACH, block, most);
    shmt_pass_put_sum(pass, SHMT_SUM_FIRST, block, first);
    shmt_pass_put_sum(pass, SHMT_SUM_SECOND, block, second);
}

void shmt_interior_reach(const struct shmt_pass *pass) {
    shmt_each_block(pass, pass->memory->direction[pass->state->corrects], reach);
}

static void correct(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        struct stand x;
        if (!stands(pass, i, pass->state->at, &x)) continue;
        const struct wanted w = wanted_of(pass, i, &x, pass->state->corrects);
        sum += m->wish[i] = x.s * (x.a + x.curve * wish(&x, w));
    }
    shmt_pass_put_sum(pass, SHMT_SUM_WISH, number, sum);
}

void shmt_interior_correct(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, correct); }

static void move(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_state *s = pass->state;
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        struct stand x;
        struct shmt_interior *next = &pass->memory->inner[1 - s->at][i];
        *next = pass->memory->inner[s->at][i];
        if (!stands(pass, i, s->at, &x)) continue;
        const struct change by = change_along(pass, i, &x, pass->state->corrects);
        const double a = x.a + s->step * by.a;
        next->dual = smaller(larger(a, LEAST * x.c), (1 - LEAST) * x.c);
        next->slack = larger(x.e + s->step * by.e, LEAST);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_NOTHING, number, 0);
}

void shmt_interior_move(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, move); }
