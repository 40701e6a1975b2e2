/* Newton's method as phases: see newton.h. */
#include "solve/newton.h"

#include <float.h>
#include <math.h>

#include "base/checked.h"
#include "solve/ascent.h"
#include "solve/cholesky.h"
#include "solve/turn.h"

#define ARMIJO        1e-4 /* of the decrease that the gradient promises, so much has to come */
#define MOST_HALVED   40
#define MOST_UNPROVED 3
#define LINE_LEFT     0.05 /* of the derivative along the line */
#define MOST_TRIES    40
#define FIRST_WIDTH   2 /* hinge: no example is beyond it where all weights are 0 */
#define NARROW_AT     0.3
#define MOST_NARROWER 0.1
#define MOST_INNER    250  /* steps of conjugate gradients for one of Newton */
#define LEAST_PART    1e-3 /* what they leave of the residual, between these two */
#define MOST_PART     0.3
#define SCATTER_COST  1.2 /* ns: an entry of the Hessian changed, and the multiplications of Cholesky */
#define FACTOR_COST   0.3
#define PASS_COST     2.5 /* ns: an entry read by rows and by columns */
#define INNER_STEPS   300 /* those of conjugate gradients that a step by the Hessian may cost as much as */

/* ---- work on vectors: my blocks of columns ---- */

static void my_columns(const struct shmt_pass *pass, uint64_t *first, uint64_t *behind) {
    shmt_solve_share(pass->plan->n_col_blocks, pass->part, pass->n_parts, first, behind);
}

/* Calls `element` for each of my columns, and leaves the sums of what it returns. */
static void each(const struct shmt_pass *pass, enum shmt_solve_sums which,
                 double (*element)(const struct shmt_pass *pass, uint64_t j)) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    uint64_t first, behind;
    my_columns(pass, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, all);
        double sum = 0;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) sum += element(pass, j);
        shmt_solve_sum(pass->memory, pass->round, which)[b] = sum;
    }
}

static double *tried(const struct shmt_pass *pass) {
    const struct shmt_solve_state *s = pass->state;
    return pass->memory->w[s->tried ? 1 - s->at : s->at];
}

/* What conjugate gradients have after so many steps, and what they have after the next one. */
static uint32_t now(const struct shmt_pass *pass) { return pass->state->inner % 2; }
static uint32_t then(const struct shmt_pass *pass) { return 1 - now(pass); }

static const double *direction(const struct shmt_pass *pass) {
    return pass->memory->direction[pass->state->direct ? 0 : now(pass)];
}

static double take_weight(const struct shmt_pass *pass, uint64_t j) {
    pass->memory->w[0][j] = (double)pass->problem->weight[j];
    return 0;
}

static double square(const struct shmt_pass *pass, uint64_t j) {
    const double w = j < pass->problem->n_columns ? tried(pass)[j] : 0;
    return w * w;
}

static double square_published(const struct shmt_pass *pass, uint64_t j) {
    const double w = j < pass->problem->n_columns ? (double)pass->problem->weight[j] : 0;
    return w * w;
}

static double publish(const struct shmt_pass *pass, uint64_t j) {
    pass->problem->weight[j] = (float)pass->memory->w[pass->state->at][j];
    return 0;
}

static double move(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const struct shmt_solve_state *s = pass->state;
    m->w[1 - s->at][j] = m->w[s->at][j] + s->step * direction(pass)[j];
    return 0;
}

static double along(const struct shmt_pass *pass, uint64_t j) { return pass->memory->gradient[j] * direction(pass)[j]; }

static double cross(const struct shmt_pass *pass, uint64_t j) {
    return j < pass->problem->n_columns ? pass->memory->w[pass->state->at][j] * direction(pass)[j] : 0;
}

static double length(const struct shmt_pass *pass, uint64_t j) {
    return j < pass->problem->n_columns ? direction(pass)[j] * direction(pass)[j] : 0;
}

/* x = 0, r = -g, p = r / diagonal. */
static double begin_inner(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    m->direction[0][j] = 0;
    m->residual[0][j] = -m->gradient[j];
    m->search[0][j] = m->preconditioned[0][j] = m->diagonal[j] > 0 ? m->residual[0][j] / m->diagonal[j] : 0;
    return m->residual[0][j] * m->preconditioned[0][j];
}

static double step_inner(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t a = now(pass), b = then(pass);
    m->direction[b][j] = m->direction[a][j] + pass->state->alpha * m->search[a][j];
    m->residual[b][j] = m->residual[a][j] - pass->state->alpha * m->product[j];
    m->preconditioned[b][j] = m->diagonal[j] > 0 ? m->residual[b][j] / m->diagonal[j] : 0;
    return m->residual[b][j] * m->preconditioned[b][j];
}

static double next_search(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t a = now(pass); /* the step is counted already */
    m->search[a][j] = m->preconditioned[a][j] + pass->state->beta * m->search[1 - a][j];
    return 0;
}

static void solve(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    shmt_cholesky_solve(all, m->hessian, m->gradient, m->factor, m->direction[0]);
}

int shmt_newton_work(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    switch ((enum shmt_solve_phase)pass->state->phase) {
        case SHMT_PHASE_COUNT:
            shmt_turn_count(pass->problem, pass->plan, m, pass->part, pass->n_parts);
            shmt_pass_lengths(pass);
            each(pass, SHMT_SUM_NOTHING, take_weight);
            return 0;
        case SHMT_PHASE_PLACE:
            if (pass->part == 0) shmt_turn_place(pass->plan, m);
            return 0;
        case SHMT_PHASE_TURN:
            return shmt_turn_fill(pass->problem, pass->plan, m, pass->part, pass->n_parts);
        case SHMT_PHASE_SCORE:
            shmt_pass_score(pass, tried(pass));
            each(pass, SHMT_SUM_SQUARE, square);
            return 0;
        case SHMT_PHASE_SLOPE:
            shmt_pass_slope(pass, m->w[pass->state->at]);
            shmt_pass_dual(pass);
            return 0;
        case SHMT_PHASE_HESSIAN:
            shmt_pass_hessian(pass);
            return 0;
        case SHMT_PHASE_FACTOR:
            if (pass->part == 0) solve(pass);
            return 0;
        case SHMT_PHASE_BEGIN:
            each(pass, SHMT_SUM_RZ, begin_inner);
            return 0;
        case SHMT_PHASE_ROWS:
            shmt_pass_scaled(pass, m->search[now(pass)]);
            return 0;
        case SHMT_PHASE_COLUMNS:
            shmt_pass_product(pass, m->search[now(pass)]);
            return 0;
        case SHMT_PHASE_STEP:
            each(pass, SHMT_SUM_RZ, step_inner);
            return 0;
        case SHMT_PHASE_SEARCH:
            each(pass, SHMT_SUM_NOTHING, next_search);
            return 0;
        case SHMT_PHASE_LINE:
            shmt_pass_line(pass, direction(pass));
            each(pass, SHMT_SUM_ALONG, along);
            each(pass, SHMT_SUM_CROSS, cross);
            each(pass, SHMT_SUM_LENGTHS, length);
            return 0;
        case SHMT_PHASE_TRY:
            shmt_pass_try(pass);
            return 0;
        case SHMT_PHASE_MOVE:
            each(pass, SHMT_SUM_ALONG, along);
            each(pass, SHMT_SUM_NOTHING, move);
            return 0;
        case SHMT_PHASE_REST:
            shmt_ascent_rest(pass);
            return 0;
        case SHMT_PHASE_ASCEND:
            return shmt_ascent_climb(pass);
        case SHMT_PHASE_IMAGE:
            shmt_ascent_image(pass);
            return 0;
        case SHMT_PHASE_ADVANCE:
            shmt_ascent_advance(pass);
            return 0;
        case SHMT_PHASE_WEIGH:
            shmt_ascent_weigh(pass);
            each(pass, SHMT_SUM_SQUARE, square);
            return 0;
        case SHMT_PHASE_PUBLISH:
            each(pass, SHMT_SUM_NOTHING, publish);
            return 0;
        case SHMT_PHASE_VERIFY:
            shmt_pass_verify(pass);
            each(pass, SHMT_SUM_SQUARE, square_published);
            return 0;
        case SHMT_PHASE_OVER:
            return 0;
    }
    return 0;
}

/* ---- what follows from the sums ---- */

static double sum(const struct shmt_pass *pass, enum shmt_solve_sums which, uint32_t n) {
    const double *of = shmt_solve_sum(pass->memory, pass->round, which);
    double all = 0;
    for (uint32_t b = 0; b < n; b++) all += of[b];
    return all;
}

static double by_rows(const struct shmt_pass *pass, enum shmt_solve_sums which) {
    return sum(pass, which, pass->plan->n_row_blocks);
}

static double by_columns(const struct shmt_pass *pass, enum shmt_solve_sums which) {
    return sum(pass, which, pass->plan->n_col_blocks);
}

static double objective(const struct shmt_pass *pass, double loss, double squares) {
    return loss / (double)pass->problem->n + 0.5 * pass->problem->l2 * squares;
}

double shmt_newton_gap(const struct shmt_solve_state *s) {
    const double gap = s->published - s->dual;
    return gap <= 0 ? 0 : s->dual > 0 ? gap / s->dual : INFINITY;
}

/* Whether the parameters will, very likely, be proved to be near enough: they are floats, so that the point itself has to be a
 * little nearer. */
static bool is_near(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const double gap = s->primal - s->dual;
    return gap <= 0 || gap <= 0.5 * pass->problem->tolerance * s->dual;
}

/* The sums of u are to be 0 at the dual point where there is a bias. */
static void balance(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double up = by_rows(pass, SHMT_SUM_UP), down = by_rows(pass, SHMT_SUM_DOWN);
    s->pull = up - down;
    s->curve = by_rows(pass, SHMT_SUM_CURVE);
    s->up = s->down = 1;
    s->shift = 0;
    if (!pass->problem->bias) return;
    if (pass->problem->loss == SHMT_SOLVE_SQUARED)
        s->shift = s->pull / by_rows(pass, SHMT_SUM_WEIGHT);
    else if (up > down)
        s->up = down / up;
    else if (down > 0)
        s->down = up / down;
}

/* The parameters are those of the point; they are judged by themselves where that may be the end. */
static void publish_next(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool last = s->epoch + 1 >= pass->problem->epochs || s->stopped || s->end != SHMT_SOLVE_GOES_ON;
    s->published = s->primal;
    s->phase = last || is_near(pass, s) ? SHMT_PHASE_VERIFY : SHMT_PHASE_OVER;
}

/* The point was scored: it is the next one, or the step was too long. */
static void judge(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS), squares = by_columns(pass, SHMT_SUM_SQUARE);
    const double merit = objective(pass, by_rows(pass, SHMT_SUM_SMOOTH), squares), noise = 4 * DBL_EPSILON * fabs(s->merit);
    const bool falls = merit <= s->merit + ARMIJO * s->step * s->along + noise; /* false for what is no number, too */
    if (s->tried && !falls && s->halved < MOST_HALVED) {
        s->step /= 2;
        s->halved++;
        s->phase = SHMT_PHASE_MOVE;
        return;
    }
    if (s->tried && !falls) {
        s->end = SHMT_SOLVE_EXHAUSTED;
        s->phase = SHMT_PHASE_PUBLISH;
        return;
    }
    if (s->tried) s->at = 1 - s->at;
    s->tried = 0;
    s->primal = objective(pass, loss, squares);
    s->merit = merit;
    s->loss = loss / (double)pass->problem->n;
    balance(pass, s);
    s->phase = SHMT_PHASE_SLOPE;
}

static void begin_step(struct shmt_solve_state *s) {
    s->halved = s->inner = 0;
    s->step = 1;
    s->phase = s->ascends ? SHMT_PHASE_ASCEND : s->direct ? SHMT_PHASE_HESSIAN : SHMT_PHASE_BEGIN;
}

/* The smooth hinge's gap has two parts: one that steps make smaller, and one that follows from the width of its parabola. When the
 * second one is the larger, the parabola is to be narrower: as much as is enough in the end, but not by far at once. */
static double narrow(const struct shmt_pass *pass, const struct shmt_solve_state *s, double dual) {
    const double gap = s->primal - dual, of_steps = s->merit - dual + by_rows(pass, SHMT_SUM_WIDTH) / (double)pass->problem->n;
    const double of_width = gap - of_steps, enough = 0.25 * pass->problem->tolerance * fabs(s->dual);
    if (!(of_width > 0) || of_steps > NARROW_AT * gap) return 1;
    return fmin(1, fmax(MOST_NARROWER, enough / of_width));
}

/* The best lower bound so far holds for good. */
static void bound(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const struct shmt_problem *p = pass->problem;
    const double image = by_columns(pass, SHMT_SUM_IMAGE), conjugates = by_rows(pass, SHMT_SUM_DUAL);
    const double dual = -conjugates / (double)p->n - 0.5 * p->l2 * image;
    if (dual > s->dual) s->dual = dual;
    s->begun = 1;
    s->narrower = p->loss == SHMT_SOLVE_HINGE && !s->ascends ? narrow(pass, s, dual) : 1;
    if (s->stepped || is_near(pass, s))
        s->phase = SHMT_PHASE_PUBLISH;
    else
        begin_step(s);
}

/* How much of the residual conjugate gradients may leave: near the minimum a step is worth more of them. */
static double part_left(const struct shmt_solve_state *s) {
    const double gap = s->dual > 0 ? (s->primal - s->dual) / s->dual : 1;
    return fmin(MOST_PART, fmax(LEAST_PART, sqrt(fmax(gap, 0))));
}

static void find_step(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->change = by_rows(pass, SHMT_SUM_BEND);
    s->step = shmt_ascent_step(pass, by_rows(pass, SHMT_SUM_FALL), s->change, by_columns(pass, SHMT_SUM_CROSS),
                               by_columns(pass, SHMT_SUM_LENGTHS), s->pull);
    s->phase = SHMT_PHASE_ADVANCE;
}

static void weighed(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS);
    s->at = 1 - s->at;
    s->tried = 0;
    s->loss = loss / (double)pass->problem->n;
    s->primal = s->merit = objective(pass, loss, by_columns(pass, SHMT_SUM_SQUARE));
    balance(pass, s);
    s->phase = SHMT_PHASE_SLOPE;
}

/* The direction is known. */
static void leave_direction(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->phase = pass->problem->loss == SHMT_SOLVE_HINGE ? SHMT_PHASE_LINE : SHMT_PHASE_MOVE;
}

static void begin_line(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->along = by_columns(pass, SHMT_SUM_ALONG);
    s->cross = by_columns(pass, SHMT_SUM_CROSS);
    s->length = by_columns(pass, SHMT_SUM_LENGTHS);
    s->low = s->high = 0;
    s->tries = 0;
    s->phase = SHMT_PHASE_TRY;
}

/* On a parabola with corners Newton's step is often far from the best one: the derivative's zero is looked for, by its own Newton
 * steps between two places that have it between them. */
static void try_next(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const struct shmt_problem *p = pass->problem;
    const double n = (double)p->n;
    const double slope = by_rows(pass, SHMT_SUM_FALL) / n + p->l2 * (s->cross + s->step * s->length);
    const double bend = by_rows(pass, SHMT_SUM_BEND) / n + p->l2 * s->length;
    s->phase = SHMT_PHASE_MOVE;
    if (fabs(slope) <= LINE_LEFT * fabs(s->along) || !(bend > 0)) return;
    if (slope < 0)
        s->low = s->step;
    else
        s->high = s->step;
    if (++s->tries == MOST_TRIES) {
        if (s->low > 0) s->step = s->low;
        return;
    }
    const double next = s->step - slope / bend;
    const bool inside = next > s->low && (s->high == 0 || next < s->high);
    s->step = inside && (s->high > 0 || next < 8 * s->step) ? next : s->high > 0 ? 0.5 * (s->low + s->high) : 4 * s->step;
    s->phase = SHMT_PHASE_TRY;
}

static void begin_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double part = part_left(s);
    s->rz = by_columns(pass, SHMT_SUM_RZ);
    s->rz_end = part * part * s->rz;
    s->phase = SHMT_PHASE_ROWS;
    if (!(s->rz > 0)) leave_direction(pass, s);
}

static void step_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double curvature = by_columns(pass, SHMT_SUM_PQ);
    s->alpha = curvature > 0 ? s->rz / curvature : 0;
    s->phase = SHMT_PHASE_STEP;
    if (!(s->alpha > 0) || !isfinite(s->alpha)) leave_direction(pass, s);
}

static void end_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double rz = by_columns(pass, SHMT_SUM_RZ);
    s->beta = rz / s->rz;
    s->rz = rz;
    s->inner++;
    s->phase = SHMT_PHASE_SEARCH;
    if (rz <= s->rz_end || s->inner == MOST_INNER) leave_direction(pass, s);
}

static void choose_method(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double all = (double)pass->plan->of.n_columns + (double)pass->plan->of.bias;
    const double hessian = SCATTER_COST * by_rows(pass, SHMT_SUM_LENGTH) + FACTOR_COST * all * all * all / 3;
    const double inner = PASS_COST * (double)pass->plan->of.n_nonzeros * INNER_STEPS;
    s->direct = pass->plan->direct && hessian <= inner;
    s->ascends = pass->problem->loss == SHMT_SOLVE_HINGE && !s->direct;
    s->phase = SHMT_PHASE_PLACE;
}

static void prove(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS);
    s->loss = loss / (double)pass->problem->n;
    s->published = objective(pass, loss, by_columns(pass, SHMT_SUM_SQUARE));
    s->phase = SHMT_PHASE_OVER;
    if (shmt_newton_gap(s) <= pass->problem->tolerance)
        s->end = SHMT_SOLVE_PROVED;
    else if (is_near(pass, s) && ++s->unproved == MOST_UNPROVED)
        s->end = SHMT_SOLVE_EXHAUSTED;
}

/* Whoever asks for an end gets it at the last point that was judged. */
static void stop(struct shmt_solve_state *s) {
    s->stopped = 1;
    s->phase = s->begun ? SHMT_PHASE_PUBLISH : SHMT_PHASE_OVER;
}

void shmt_newton_begin(struct shmt_solve_state *out) {
    *out = (struct shmt_solve_state){.phase = SHMT_PHASE_COUNT,
                                     .primal = INFINITY,
                                     .merit = INFINITY,
                                     .dual = -INFINITY,
                                     .width = FIRST_WIDTH,
                                     .narrower = 1,
                                     .published = NAN,
                                     .loss = NAN,
                                     .up = 1,
                                     .down = 1};
}

void shmt_newton_next(const struct shmt_pass *pass, struct shmt_solve_state *out) {
    struct shmt_solve_state s = *pass->state;
    const enum shmt_solve_phase phase = (enum shmt_solve_phase)s.phase;
    const bool ends = phase == SHMT_PHASE_PUBLISH || phase == SHMT_PHASE_VERIFY || phase == SHMT_PHASE_OVER;
    if (!ends && shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_STOP)[0] != 0) {
        stop(&s);
        *out = s;
        return;
    }
    switch (phase) {
        case SHMT_PHASE_COUNT:
            choose_method(pass, &s);
            break;
        case SHMT_PHASE_PLACE:
            s.phase = SHMT_PHASE_TURN;
            break;
        case SHMT_PHASE_TURN:
            s.phase = s.ascends ? SHMT_PHASE_REST : SHMT_PHASE_SCORE;
            break;
        case SHMT_PHASE_REST:
            begin_step(&s);
            break;
        case SHMT_PHASE_ASCEND:
            s.phase = SHMT_PHASE_IMAGE;
            break;
        case SHMT_PHASE_IMAGE:
            find_step(pass, &s);
            break;
        case SHMT_PHASE_ADVANCE:
            s.tried = s.stepped = 1;
            s.phase = SHMT_PHASE_WEIGH;
            break;
        case SHMT_PHASE_WEIGH:
            weighed(pass, &s);
            break;
        case SHMT_PHASE_SCORE:
            judge(pass, &s);
            break;
        case SHMT_PHASE_SLOPE:
            bound(pass, &s);
            break;
        case SHMT_PHASE_HESSIAN:
            s.phase = SHMT_PHASE_FACTOR;
            break;
        case SHMT_PHASE_BEGIN:
            begin_conjugate(pass, &s);
            break;
        case SHMT_PHASE_ROWS:
            s.scaled = by_rows(pass, SHMT_SUM_SCALED);
            s.phase = SHMT_PHASE_COLUMNS;
            break;
        case SHMT_PHASE_COLUMNS:
            step_conjugate(pass, &s);
            break;
        case SHMT_PHASE_STEP:
            end_conjugate(pass, &s);
            break;
        case SHMT_PHASE_SEARCH:
            s.phase = SHMT_PHASE_ROWS;
            break;
        case SHMT_PHASE_FACTOR:
            leave_direction(pass, &s);
            break;
        case SHMT_PHASE_LINE:
            begin_line(pass, &s);
            break;
        case SHMT_PHASE_TRY:
            try_next(pass, &s);
            break;
        case SHMT_PHASE_MOVE:
            s.along = by_columns(pass, SHMT_SUM_ALONG);
            s.tried = s.stepped = 1;
            s.phase = SHMT_PHASE_SCORE;
            break;
        case SHMT_PHASE_PUBLISH:
            publish_next(pass, &s);
            break;
        case SHMT_PHASE_VERIFY:
            prove(pass, &s);
            break;
        case SHMT_PHASE_OVER:
            break;
    }
    *out = s;
}

void shmt_newton_next_epoch(const struct shmt_solve_state *s, struct shmt_solve_state *out) {
    *out = *s;
    out->epoch++;
    out->stepped = 0;
    if (s->narrower < 1) { /* another loss to take steps on: the point is judged by it first */
        out->width *= s->narrower;
        out->narrower = 1;
        out->phase = SHMT_PHASE_SCORE;
    } else if (s->begun) {
        begin_step(out);
    }
}
