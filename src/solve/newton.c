/* How a fit goes on from phase to phase: see newton.h. The work of the phases is in phases.c. */
#include "solve/newton.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "solve/ascent.h"
#include "solve/choose.h"
#include "solve/wide.h"

#define ARMIJO        1e-4 /* of the decrease that the gradient promises, so much has to come */
#define MOST_HALVED   40
#define CHOICE_GAP    5e-3 /* choice: how near a fit comes, and after how many steps it is good enough */
#define CHOICE_PART   0.1  /* ... what its steps of conjugate gradients leave of the residual, at least */
#define CHOICE_STEPS  20
#define MOST_UNPROVED 3
#define MOST_IDLE     60    /* epochs in a row in which the gap does not fall ... */
#define LESS          0.999 /* ... to so much of what it was */
#define FACES_FROM    1e-2  /* with L1, the gap from which on every other step is one on a face */
#define IMPOSSIBLE    1e-9  /* a gap below 0 by more of the bound than rounding explains */
#define LINE_LEFT     0.05  /* of the derivative along the line */
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

static double objective(const struct shmt_pass *pass, double loss, double penalties) {
    return loss / (double)pass->problem->n + penalties;
}

double shmt_newton_gap(const struct shmt_solve_state *s) {
    const double gap = s->published - s->dual;
    if (!(gap >= -IMPOSSIBLE * fabs(s->dual))) return INFINITY; /* no bound is above the minimum: something is wrong with one */
    return gap <= 0 ? 0 : s->dual > 0 ? gap / s->dual : INFINITY;
}

/* Whether the parameters will, very likely, be proved to be near enough: they are floats, so that the point itself has to be a
 * little nearer. */
static bool is_near(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const double gap = s->primal - s->dual, part = s->choice.open ? CHOICE_GAP : 0.5 * pass->problem->tolerance;
    return gap <= 0 || gap <= part * s->dual;
}

/* The sums of u are to be 0 at the dual point where there is a bias. */
static void balance(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->up = s->down = 1;
    s->shift = 0;
    if (pass->problem->loss == SHMT_SOLVE_SOFTMAX) {
        s->shift = shmt_wide_mixture(pass);
        s->size = by_rows(pass, SHMT_SUM_UP);
        return;
    }
    const double up = by_rows(pass, SHMT_SUM_UP), down = by_rows(pass, SHMT_SUM_DOWN);
    s->pull = up - down;
    s->size = up + down;
    s->curve = by_rows(pass, SHMT_SUM_CURVE);
    if (!pass->problem->bias) return;
    if (pass->problem->loss == SHMT_SOLVE_SQUARED)
        s->shift = s->pull / by_rows(pass, SHMT_SUM_WEIGHT);
    else if (up > down)
        s->up = down / up;
    else if (down > 0)
        s->down = up / down;
}

/* Choice: this fit is near enough. */
static void end_candidate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    shmt_choose_next(pass, s);
    s->phase = SHMT_PHASE_KEEP;
}

/* The point was scored: it is the next one, or the step was too long. */
static void judge(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS), penalties = by_columns(pass, SHMT_SUM_PENALTY);
    const double merit = objective(pass, by_rows(pass, SHMT_SUM_SMOOTH), penalties), noise = 4 * DBL_EPSILON * fabs(s->merit);
    const bool falls = merit <= s->merit + ARMIJO * s->step * s->along + noise; /* false for what is no number, too */
    if (s->tried && !falls && s->halved < MOST_HALVED) {
        s->step /= 2;
        s->halved++;
        s->phase = SHMT_PHASE_MOVE;
        return;
    }
    if (s->tried && !falls && s->choice.open) {
        end_candidate(pass, s);
        return;
    }
    if (s->tried && !falls) {
        s->end = SHMT_SOLVE_EXHAUSTED;
        s->phase = SHMT_PHASE_PUBLISH;
        return;
    }
    if (s->tried) s->at = 1 - s->at;
    s->tried = 0;
    s->primal = objective(pass, loss, penalties);
    s->merit = merit;
    s->loss = loss / (double)pass->problem->n;
    s->held = by_rows(pass, SHMT_SUM_HELD);
    s->heavy = by_rows(pass, SHMT_SUM_HEAVY);
    balance(pass, s);
}

/* How much of the distance from a model's minimum a step may leave: near the minimum a step is worth more of them. */
static double part_left(const struct shmt_solve_state *s) {
    const double gap = s->dual > 0 ? (s->primal - s->dual) / s->dual : 1;
    return fmin(MOST_PART, fmax(s->choice.open ? CHOICE_PART : LEAST_PART, sqrt(fmax(gap, 0))));
}

static void begin_step(struct shmt_solve_state *s) {
    s->halved = s->inner = 0;
    s->step = 1;
    s->part = part_left(s);
    s->face = s->cycles && s->primal - s->dual <= FACES_FROM * s->dual && s->epoch % 2 == 1;
    s->phase = s->ascends  ? SHMT_PHASE_ASCEND
               : s->face   ? SHMT_PHASE_BEGIN
               : s->direct ? SHMT_PHASE_HESSIAN
               : s->cycles ? SHMT_PHASE_CYCLE
                           : SHMT_PHASE_BEGIN;
}

/* The smooth hinge's gap has two parts: one that steps make smaller, and one that follows from the width of its parabola. When the
 * second one is the larger, the parabola is to be narrower: as much as is enough in the end, but not by far at once. */
static double narrow(const struct shmt_pass *pass, const struct shmt_solve_state *s, double dual) {
    const double gap = s->primal - dual, of_steps = s->merit - dual + by_rows(pass, SHMT_SUM_WIDTH) / (double)pass->problem->n;
    const double of_width = gap - of_steps, enough = 0.25 * pass->problem->tolerance * fabs(s->dual);
    if (!(of_width > 0) || of_steps > NARROW_AT * gap) return 1;
    return fmin(1, fmax(MOST_NARROWER, enough / of_width));
}

/* With L1 the dual point must not have more than l1 along any column: it is made shorter (Gap Safe: Ndiaye et al. 2017). With L2, too,
 * it may have more, which then costs; the better of the two counts. */
static void shorten(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double *of = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MOST);
    double most = 0;
    for (uint32_t b = 0; b < pass->plan->n_col_blocks; b++) most = fmax(most, of[b]);
    s->shorter = most > pass->problem->l1 ? pass->problem->l1 / most : 1;
    s->phase = SHMT_PHASE_BOUND;
}

/* The largest of them. */
static double bias_of(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const double *of = pass->memory->w[s->at] + (uint64_t)pass->plan->of.n_columns * pass->plan->of.n_classes;
    double most = 0;
    for (uint32_t k = 0; k < pass->plan->of.n_classes && pass->problem->bias; k++) most = fmax(most, fabs(of[k]));
    return most;
}

/* What rounding may have added to the bound: to each sum as much as it usually adds to so many terms; and to the sum of u, which is to be
 * 0, so much times the bias. */
static double rounding(const struct shmt_pass *pass, const struct shmt_solve_state *s, double image) {
    const double n = (double)pass->problem->n, b = bias_of(pass, s);
    const double terms = by_rows(pass, SHMT_SUM_TERMS) / n + 0.5 * image + fabs(b) * s->size / n;
    return DBL_EPSILON * (8 + sqrt(n)) * terms;
}

/* Choice: another step, or the fit is near enough for what it is asked. Where a class has no example in a part there is no proof, but
 * the step that was made promised little. */
static void step_or_keep(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool promised_little = s->choice.steps > 0 && -s->along <= CHOICE_GAP * s->primal;
    if (is_near(pass, s) || promised_little || s->choice.steps == CHOICE_STEPS) {
        end_candidate(pass, s);
    } else {
        s->choice.steps++;
        begin_step(s);
    }
}

/* The best lower bound so far holds for good. */
static void bound(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const struct shmt_problem *p = pass->problem;
    const double image = s->image, conjugates = by_rows(pass, SHMT_SUM_DUAL);
    const double plain = s->l2 > 0 ? -conjugates / (double)p->n - 0.5 * image : -INFINITY;
    const double found = p->l1 > 0 ? fmax(plain, -by_rows(pass, SHMT_SUM_SHORT) / (double)p->n) : plain;
    const double dual = found - rounding(pass, s, image);
    if (dual > s->dual) s->dual = dual;
    s->begun = 1;
    s->narrower = p->loss == SHMT_SOLVE_HINGE && !s->ascends ? narrow(pass, s, dual) : 1;
    s->phase = SHMT_PHASE_PUBLISH;
    if (s->choice.open)
        step_or_keep(pass, s);
    else if (!s->stepped && !is_near(pass, s))
        begin_step(s);
}

static void find_step(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->change = by_rows(pass, SHMT_SUM_CHANGE);
    s->step = shmt_ascent_step(pass, by_rows(pass, SHMT_SUM_GAIN), s->change, by_columns(pass, SHMT_SUM_CROSS),
                               by_columns(pass, SHMT_SUM_LENGTHS), s->pull);
}

static void weighed(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS);
    s->at = 1 - s->at;
    s->tried = 0;
    s->loss = loss / (double)pass->problem->n;
    s->primal = s->merit = objective(pass, loss, by_columns(pass, SHMT_SUM_PENALTY));
    balance(pass, s);
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
}

/* On a parabola with corners Newton's step is often far from the best one: the derivative's zero is looked for, by its own Newton
 * steps between two places that have it between them. */
static void try_next(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const struct shmt_problem *p = pass->problem;
    const double n = (double)p->n;
    const double slope = by_rows(pass, SHMT_SUM_FALL) / n + s->cross + s->step * s->length;
    const double bend = by_rows(pass, SHMT_SUM_BEND) / n + s->length;
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
    s->rz = by_columns(pass, SHMT_SUM_RZ);
    s->rz_end = s->part * s->part * s->rz;
    if (!(s->rz > 0)) leave_direction(pass, s);
}

static void step_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double curvature = by_columns(pass, SHMT_SUM_PQ);
    s->alpha = curvature > 0 ? s->rz / curvature : 0;
    if (!(s->alpha > 0) || !isfinite(s->alpha)) leave_direction(pass, s);
}

static void end_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double rz = by_columns(pass, SHMT_SUM_RZ);
    s->beta = rz / s->rz;
    s->rz = rz;
    s->inner++;
    if (rz <= s->rz_end || s->inner == MOST_INNER) {
        leave_direction(pass, s);
    } else if (s->inner == s->most_inner && !s->face) { /* the Hessian would have cost no more: it takes over for good */
        s->direct = 1;
        s->phase = SHMT_PHASE_HESSIAN;
    }
}

/* By what a step costs. For the hinge and with L1 the Hessian saves steps, too; else conjugate gradients come first, as long as they
 * are cheaper. */
static void choose_method(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double all = (double)pass->plan->of.n_columns + (double)pass->plan->of.bias;
    const double hessian = SCATTER_COST * by_rows(pass, SHMT_SUM_LENGTH) + FACTOR_COST * all * all * all / 3;
    const double steps = hessian / (PASS_COST * (double)pass->plan->of.n_nonzeros); /* of conjugate gradients, for as much */
    const bool hinge = pass->problem->loss == SHMT_SOLVE_HINGE, pays = pass->plan->direct && steps <= INNER_STEPS;
    s->cycles = pass->problem->l1 > 0;
    s->direct = pays && (hinge || s->cycles);
    s->ascends = hinge && !s->direct;
    s->most_inner = pays ? 1 + (uint32_t)steps : MOST_INNER;
}

static void prove(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS), before = s->gap;
    s->loss = loss / (double)pass->problem->n;
    s->published = objective(pass, loss, by_columns(pass, SHMT_SUM_PENALTY));
    s->gap = fmin(before, s->published - s->dual);
    s->idle = s->gap < LESS * before ? 0 : s->idle + 1;
    if (shmt_newton_gap(s) <= pass->problem->tolerance)
        s->end = SHMT_SOLVE_PROVED;
    else if ((is_near(pass, s) && ++s->unproved == MOST_UNPROVED) || s->idle == MOST_IDLE)
        s->end = SHMT_SOLVE_EXHAUSTED;
}

/* Whoever asks for an end gets it at the last point that was judged; before the fit of all examples has one, at the best candidate of
 * the choice. */
static void stop(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool chosen = s->choice.fits > 0 && s->choice.least < INFINITY, has_point = s->begun && !s->choice.open;
    if (s->choice.open) { /* a bound without a part is none of all */
        s->l2 = shmt_choice_l2(s->choice.strength, pass->problem->n_all);
        s->dual = -INFINITY;
    }
    s->stopped = 1;
    s->choice.open = s->choice.improved = s->choice.sampled = 0;
    s->phase = !has_point && chosen ? SHMT_PHASE_KEEP : s->begun ? SHMT_PHASE_PUBLISH : SHMT_PHASE_OVER;
    if (s->phase == SHMT_PHASE_OVER) s->loss = NAN;
}

/* Another objective: nothing is known of its minimum. */
static void forget(struct shmt_solve_state *s) {
    s->primal = s->merit = INFINITY;
    s->dual = -INFINITY;
    s->begun = s->stepped = s->tried = 0;
}

/* The choice is made: all examples are fitted. */
static void settle(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->choice.scaled = s->choice.best_scaled;
    s->l2 = shmt_choice_l2(s->choice.best_strength, pass->problem->n_all);
}

/* The next fit of a choice begins, or the one behind it. */
static void kept(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool again = s->choice.sampled && !s->choice.open;
    forget(s);
    s->at = 1 - s->at;
    if (s->choice.open)
        s->l2 = shmt_choice_l2(s->choice.strength, pass->problem->n);
    else
        settle(pass, s);
    if (s->stopped) {
        s->primal = 0; /* nothing is better */
        s->phase = SHMT_PHASE_PUBLISH;
    } else if (again) {
        s->choice.sampled = 0;
        s->at = 0;
        s->phase = SHMT_PHASE_COUNT;
    }
}

/* What is fitted first, when the columns are there, and their scales. */
static void begin_choice(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->choice.open)
        shmt_choose_begin(pass, s);
    else if (s->choice.fits > 0)
        settle(pass, s);
}

void shmt_newton_begin(const struct shmt_problem *p, bool sampled, struct shmt_solve_state *out) {
    *out = (struct shmt_solve_state){
        .phase = SHMT_PHASE_COUNT,
        .l2 = p->l2,
        .choice = {.open = p->n_held > 0, .scaled = p->scale == SHMT_SCALE_YES, .sampled = sampled, .least = INFINITY},
        .primal = INFINITY,
        .best = INFINITY,
        .gap = INFINITY,
        .merit = INFINITY,
        .dual = -INFINITY,
        .width = FIRST_WIDTH,
        .narrower = 1,
        .published = NAN,
        .loss = NAN,
        .up = 1,
        .down = 1};
}

static void sloped(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->image = by_columns(pass, SHMT_SUM_IMAGE);
    if (pass->problem->l1 > 0)
        shorten(pass, s);
    else
        bound(pass, s);
}

static void rested(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    begin_step(s);
}

static void turned(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (pass->problem->scale == SHMT_SCALE_NO) begin_choice(pass, s);
    s->phase = s->ascends ? SHMT_PHASE_REST : pass->problem->scale != SHMT_SCALE_NO ? SHMT_PHASE_SCALES : SHMT_PHASE_SCORE;
}

static void has_hessian(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->cycles ? SHMT_PHASE_CYCLE : SHMT_PHASE_FACTOR;
}

static void swept(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = ++s->inner == SHMT_ASCENT_SWEEPS ? SHMT_PHASE_IMAGE : SHMT_PHASE_ASCEND;
}

static void scaled(const struct shmt_pass *pass, struct shmt_solve_state *s) { s->scaled = by_rows(pass, SHMT_SUM_SCALED); }

static void moved(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->along = by_columns(pass, SHMT_SUM_ALONG);
    s->tried = s->stepped = 1;
}

static void advanced(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->tried = s->stepped = 1;
}

static void published(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->best = fmin(s->best, s->primal);
}

/* What follows a phase: the one that stands here, or the one that the function chooses. */
static const struct {
    enum shmt_solve_phase then;
    void (*find)(const struct shmt_pass *pass, struct shmt_solve_state *s);
} NEXT[] = {[SHMT_PHASE_COUNT] = {SHMT_PHASE_PLACE, choose_method},
            [SHMT_PHASE_PLACE] = {SHMT_PHASE_TURN, NULL},
            [SHMT_PHASE_TURN] = {SHMT_PHASE_SCORE, turned},
            [SHMT_PHASE_SCALES] = {SHMT_PHASE_SCORE, begin_choice},
            [SHMT_PHASE_KEEP] = {SHMT_PHASE_SCORE, kept},
            [SHMT_PHASE_SCORE] = {SHMT_PHASE_SLOPE, judge},
            [SHMT_PHASE_SLOPE] = {SHMT_PHASE_PUBLISH, sloped},
            [SHMT_PHASE_BOUND] = {SHMT_PHASE_PUBLISH, bound},
            [SHMT_PHASE_CYCLE] = {SHMT_PHASE_MOVE, leave_direction},
            [SHMT_PHASE_HESSIAN] = {SHMT_PHASE_FACTOR, has_hessian},
            [SHMT_PHASE_FACTOR] = {SHMT_PHASE_MOVE, leave_direction},
            [SHMT_PHASE_BEGIN] = {SHMT_PHASE_ROWS, begin_conjugate},
            [SHMT_PHASE_ROWS] = {SHMT_PHASE_COLUMNS, scaled},
            [SHMT_PHASE_COLUMNS] = {SHMT_PHASE_STEP, step_conjugate},
            [SHMT_PHASE_STEP] = {SHMT_PHASE_SEARCH, end_conjugate},
            [SHMT_PHASE_SEARCH] = {SHMT_PHASE_ROWS, NULL},
            [SHMT_PHASE_LINE] = {SHMT_PHASE_TRY, begin_line},
            [SHMT_PHASE_TRY] = {SHMT_PHASE_MOVE, try_next},
            [SHMT_PHASE_MOVE] = {SHMT_PHASE_SCORE, moved},
            [SHMT_PHASE_REST] = {SHMT_PHASE_ASCEND, rested},
            [SHMT_PHASE_ASCEND] = {SHMT_PHASE_IMAGE, swept},
            [SHMT_PHASE_IMAGE] = {SHMT_PHASE_ADVANCE, find_step},
            [SHMT_PHASE_ADVANCE] = {SHMT_PHASE_WEIGH, advanced},
            [SHMT_PHASE_WEIGH] = {SHMT_PHASE_SLOPE, weighed},
            [SHMT_PHASE_PUBLISH] = {SHMT_PHASE_VERIFY, published},
            [SHMT_PHASE_VERIFY] = {SHMT_PHASE_OVER, prove},
            [SHMT_PHASE_OVER] = {SHMT_PHASE_OVER, NULL}};

void shmt_newton_next(const struct shmt_pass *pass, struct shmt_solve_state *out) {
    struct shmt_solve_state s = *pass->state;
    const bool ends = s.phase >= SHMT_PHASE_PUBLISH, asked = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_STOP)[0] != 0;
    if (asked && !ends && !s.stopped) {
        stop(pass, &s);
    } else {
        const uint32_t phase = s.phase;
        s.phase = NEXT[phase].then;
        if (NEXT[phase].find) NEXT[phase].find(pass, &s);
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
