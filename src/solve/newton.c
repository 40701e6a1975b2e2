/* How a fit goes on from phase to phase: see newton.h. The work of the phases is in phases.c. */
#include "solve/newton.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "solve/ascent.h"
#include "solve/choose.h"
#include "solve/wide.h"

#define ALIKE         1e-6 /* of the objective: by no more another machine comes to another one at the same point */
#define ARMIJO        1e-4 /* of the decrease that the gradient promises, so much has to come */
#define MOST_HALVED   40
#define CHOICE_GAP    5e-3 /* choice: how near a fit comes, and after how many steps it is good enough */
#define CHOICE_PART   0.1  /* ... what its steps of conjugate gradients leave of the residual, at least */
#define CHOICE_STEPS  20
#define MOST_UNPROVED 3
#define MOST_IDLE     60    /* epochs in a row in which the gap does not fall ... */
#define LESS          0.999 /* ... to so much of what it was: interior points lead nowhere, and what has no other way ends */
#define FACES_FROM \
    1e-2 /* with L1, the gap from which on every other step is one on a face; or so many epochs in which it has not fallen */
#define FACES_IDLE   2
#define IMPOSSIBLE   1e-9 /* a gap below 0 by more of the bound than rounding explains */
#define MOST_SMALL   1e-3 /* ... what part of the mean curvature may be taken for small, ... */
#define LESS_SMALL   0.1  /* ... and how much less behind a step after which the products are more than ... */
#define SLOW         0.8  /* ... so much of what they were */
#define INSIDE       0.99 /* interior points: of the way to where they would be none */
#define MOST_INNER   250  /* steps of conjugate gradients for one of Newton */
#define LEAST_PART   1e-3 /* what they leave of the residual, between these two */
#define MOST_PART    0.3
#define SCATTER_COST 0.8 /* ns: an entry of the Hessian changed, and the multiplications of Cholesky */
#define FACTOR_COST  0.3
#define PASS_COST    2.5 /* ns: an entry read by rows and by columns */
#define VISIT_COST   4   /* ... or visited by dual ascent */
#define INNER_PRICE  20  /* interior points: steps, and passes of each */
#define INNER_PASSES 4
#define SWEEP_COST   4 /* ... or in a sweep of coordinate descent */
#define MOST_SWEEPS  50
#define INNER_STEPS  300 /* those of conjugate gradients that a step by the Hessian may cost as much as */

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

/* An interior point was scored: it is the next one, also where P is larger. Where it is no better, the Hessian may have been too rough. */
static void take(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double before = s->product, loss = by_rows(pass, SHMT_SUM_LOSS) / (double)pass->problem->n;
    const double primal = loss + by_columns(pass, SHMT_SUM_PENALTY), weight = by_rows(pass, SHMT_SUM_WEIGHT);
    const double product = weight > 0 ? by_rows(pass, SHMT_SUM_PRODUCTS) / (2 * weight) : 0;
    const bool tried = s->tried != 0;
    s->tried = 0;
    if (!isfinite(primal) || !isfinite(product)) { /* the point before stays what it was */
        s->returns = 1;
        return;
    }
    if (tried) s->at = 1 - s->at;
    s->loss = loss;
    s->primal = primal;
    s->weight = weight;
    s->product = product;
    s->small = s->product > SLOW * before ? LESS_SMALL * s->small : fmin(MOST_SMALL, s->small / LESS_SMALL);
    s->wish = by_rows(pass, SHMT_SUM_WISH);
    balance(pass, s);
}

/* The point was scored: it is the next one, or the step was too long. */
static void judge(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS), penalties = by_columns(pass, SHMT_SUM_PENALTY);
    const double primal = objective(pass, loss, penalties), noise = 4 * DBL_EPSILON * fabs(s->primal);
    const bool falls = primal <= s->primal + ARMIJO * s->step * s->along + noise; /* false for what is no number, too */
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
    s->primal = primal;
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
    if (s->leaves) {
        s->leaves = s->ascends = 0;
        s->interior = s->direct = 1;
        s->phase = SHMT_PHASE_REST;
        return;
    }
    if (s->returns) {
        s->returns = s->interior = s->direct = s->may_leave = s->idle = 0; /* may_leave: for good */
        s->ascends = s->resumes = 1;
        s->phase = SHMT_PHASE_REST;
        return;
    }
    s->halved = s->inner = s->corrects = 0;
    s->step = 1;
    s->part = part_left(s);
    const bool is_close = s->primal - s->dual <= FACES_FROM * s->dual;
    s->face = s->cycles && (is_close || s->idle >= FACES_IDLE) && s->epoch % 2 == 1;
    s->phase = s->live       ? SHMT_PHASE_LAY
               : s->ascends  ? SHMT_PHASE_ASCEND
               : s->interior ? SHMT_PHASE_AIM
               : s->face     ? SHMT_PHASE_BEGIN
               : s->direct   ? SHMT_PHASE_HESSIAN
               : s->cycles   ? SHMT_PHASE_CYCLE
                             : SHMT_PHASE_BEGIN;
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

/* Dual ascent: the gap falls by about the same factor with each visit of all coordinates, and what is left of these is more than
 * interior points cost. */
static bool is_too_slow(const struct shmt_pass *pass, const struct shmt_solve_state *s, double before, double gap) {
    const double wanted = pass->problem->tolerance * fabs(s->dual),
                 visits = shmt_ascent_sweeps(pass->problem) * shmt_ascent_visits(s);
    if (s->epoch == 0 || !(gap > wanted)) return false;
    return !(gap < before) || visits * log(gap / wanted) > s->price * log(before / gap);
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
    if (s->ascends && s->stepped && s->may_leave) {
        const double before = s->nearer;
        s->nearer = fmin(s->primal, s->best) - s->dual;
        s->leaves = is_too_slow(pass, s, before, s->nearer);
    }
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
    s->primal = objective(pass, loss, by_columns(pass, SHMT_SUM_PENALTY));
    balance(pass, s);
}

/* Behind the first direction of an interior point it is known how far down the products may be brought. */
static double find_target(const struct shmt_pass *pass, const struct shmt_solve_state *s, double most) {
    const double step = fmin(1, most), change = by_rows(pass, SHMT_SUM_FIRST) + step * by_rows(pass, SHMT_SUM_SECOND);
    const double left = s->product > 0 ? fmax(0, 1 + step * change / (2 * s->weight * s->product)) : 0;
    return left * left * left * s->product;
}

/* The second direction is the one to go along. */
static void reached(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double *of = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_REACH);
    double away = 0;
    for (uint32_t b = 0; b < pass->plan->n_row_blocks; b++) away = fmax(away, of[b]);
    const double most = away > 0 ? 1 / away : INFINITY;
    s->step = fmin(1, INSIDE * most);
    if (s->corrects) return;
    s->target = find_target(pass, s, most);
    s->corrects = 1;
    s->phase = SHMT_PHASE_CORRECT;
}

static void corrected(const struct shmt_pass *pass, struct shmt_solve_state *s) { s->wish = by_rows(pass, SHMT_SUM_WISH); }

static void aimed(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->corrects ? SHMT_PHASE_AGAIN : SHMT_PHASE_HESSIAN;
}

static void solved(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->interior ? SHMT_PHASE_REACH : SHMT_PHASE_MOVE;
}

static void begin_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->rz = by_columns(pass, SHMT_SUM_RZ);
    s->rz_end = s->part * s->part * s->rz;
    if (!(s->rz > 0)) s->phase = SHMT_PHASE_MOVE;
}

static void step_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double curvature = by_columns(pass, SHMT_SUM_PQ);
    s->alpha = curvature > 0 ? s->rz / curvature : 0;
    if (!(s->alpha > 0) || !isfinite(s->alpha)) s->phase = SHMT_PHASE_MOVE;
}

static void end_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double rz = by_columns(pass, SHMT_SUM_RZ);
    s->beta = rz / s->rz;
    s->rz = rz;
    s->inner++;
    if (rz <= s->rz_end || s->inner == MOST_INNER) {
        s->phase = SHMT_PHASE_MOVE;
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
    const double nonzeros = (double)pass->plan->of.n_nonzeros;
    const double steps = hessian / (PASS_COST * nonzeros); /* of conjugate gradients, for as much */
    const bool hinge = pass->problem->loss == SHMT_SOLVE_HINGE, pays = pass->plan->direct && steps <= INNER_STEPS;
    s->ascending = by_rows(pass, SHMT_SUM_DISORDER) == 0;
    s->cycles = pass->problem->l1 > 0;
    s->pays = pays;
    s->most_sweeps = pays ? 1 + (uint32_t)(steps * PASS_COST / SWEEP_COST) : MOST_SWEEPS;
    s->live = pass->problem->live != SHMT_LIVE_NO;
    s->ascends = hinge || s->live;
    s->may_leave = hinge && pays && !s->live;
    s->price = INNER_PRICE * (hessian / 2 + INNER_PASSES * PASS_COST * nonzeros) / (VISIT_COST * nonzeros);
    s->most_inner = pays ? 1 + (uint32_t)steps : MOST_INNER;
}

static void prove(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS);
    s->loss = loss / (double)pass->problem->n;
    s->published = objective(pass, loss, by_columns(pass, SHMT_SUM_PENALTY));
    s->gap = fmin(s->gap, s->published - s->dual);
    const bool has_fallen = s->gap < LESS * s->stuck;
    s->stuck = has_fallen ? s->gap : s->stuck;
    s->idle = has_fallen ? 0 : s->idle + 1;
    if (shmt_newton_gap(s) <= pass->problem->tolerance)
        s->end = SHMT_SOLVE_PROVED;
    else if (is_near(pass, s) && ++s->unproved == MOST_UNPROVED)
        s->end = SHMT_SOLVE_EXHAUSTED;
    else if (s->idle == MOST_IDLE && s->interior)
        s->returns = 1;
    else if (s->idle == MOST_IDLE)
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
    s->primal = INFINITY;
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
        .stuck = INFINITY,
        .small = MOST_SMALL,
        .dual = -INFINITY,
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
    if (s->resumes) balance(pass, s);
    s->resumes = 0;
    if (s->ascends) begin_step(s);
}

static void scored(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->interior)
        take(pass, s);
    else
        judge(pass, s);
}

static void turned(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (pass->problem->scale == SHMT_SCALE_NO) begin_choice(pass, s);
    s->phase = s->ascends || s->interior               ? SHMT_PHASE_REST
               : pass->problem->scale != SHMT_SCALE_NO ? SHMT_PHASE_SCALES
                                                       : SHMT_PHASE_SCORE;
}

static void has_hessian(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->cycles ? SHMT_PHASE_CYCLE : SHMT_PHASE_FACTOR;
}

/* Sweeps over the data have become as dear as the Hessian: it takes over for good. */
static void cycled(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->pays && !s->direct && shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MORE)[0] != 0) s->direct = 1;
}

static void swept(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->phase = ++s->inner == shmt_ascent_sweeps(pass->problem) ? SHMT_PHASE_IMAGE : SHMT_PHASE_ASCEND;
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
} NEXT[] = {[SHMT_PHASE_COUNT] = {SHMT_PHASE_PLACE, choose_method}, [SHMT_PHASE_PLACE] = {SHMT_PHASE_TURN, NULL},
            [SHMT_PHASE_TURN] = {SHMT_PHASE_SCORE, turned},         [SHMT_PHASE_SCALES] = {SHMT_PHASE_SCORE, begin_choice},
            [SHMT_PHASE_KEEP] = {SHMT_PHASE_SCORE, kept},           [SHMT_PHASE_SCORE] = {SHMT_PHASE_SLOPE, scored},
            [SHMT_PHASE_SLOPE] = {SHMT_PHASE_PUBLISH, sloped},      [SHMT_PHASE_BOUND] = {SHMT_PHASE_PUBLISH, bound},
            [SHMT_PHASE_CYCLE] = {SHMT_PHASE_MOVE, cycled},         [SHMT_PHASE_HESSIAN] = {SHMT_PHASE_FACTOR, has_hessian},
            [SHMT_PHASE_FACTOR] = {SHMT_PHASE_MOVE, solved},        [SHMT_PHASE_BEGIN] = {SHMT_PHASE_ROWS, begin_conjugate},
            [SHMT_PHASE_ROWS] = {SHMT_PHASE_COLUMNS, scaled},       [SHMT_PHASE_COLUMNS] = {SHMT_PHASE_STEP, step_conjugate},
            [SHMT_PHASE_STEP] = {SHMT_PHASE_SEARCH, end_conjugate}, [SHMT_PHASE_SEARCH] = {SHMT_PHASE_ROWS, NULL},
            [SHMT_PHASE_AIM] = {SHMT_PHASE_HESSIAN, aimed},         [SHMT_PHASE_REACH] = {SHMT_PHASE_MOVE, reached},
            [SHMT_PHASE_CORRECT] = {SHMT_PHASE_AIM, corrected},     [SHMT_PHASE_AGAIN] = {SHMT_PHASE_REACH, NULL},
            [SHMT_PHASE_MOVE] = {SHMT_PHASE_SCORE, moved},          [SHMT_PHASE_REST] = {SHMT_PHASE_SCORE, rested},
            [SHMT_PHASE_LAY] = {SHMT_PHASE_ASCEND, NULL},           [SHMT_PHASE_ASCEND] = {SHMT_PHASE_IMAGE, swept},
            [SHMT_PHASE_IMAGE] = {SHMT_PHASE_ADVANCE, find_step},   [SHMT_PHASE_ADVANCE] = {SHMT_PHASE_WEIGH, advanced},
            [SHMT_PHASE_WEIGH] = {SHMT_PHASE_SLOPE, weighed},       [SHMT_PHASE_PUBLISH] = {SHMT_PHASE_VERIFY, published},
            [SHMT_PHASE_VERIFY] = {SHMT_PHASE_OVER, prove},         [SHMT_PHASE_OVER] = {SHMT_PHASE_OVER, NULL}};

bool shmt_newton_may_stop(const struct shmt_solve_state *s) { return s->phase < SHMT_PHASE_PUBLISH && !s->stopped; }

bool shmt_newton_may_leave(const struct shmt_solve_state *s) {
    return shmt_newton_may_stop(s) && s->phase != SHMT_PHASE_KEEP && !s->remakes;
}

/* ---- going on from what was kept (keep.h) ---- */

/* Whether the method that was taken is one of this problem. */
static void take_method(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const uint32_t may_leave = s->may_leave; /* 0: interior points have led nowhere */
    choose_method(pass, s);
    if ((s->direct && !s->pays) || ((may_leave || s->interior) && !s->may_leave)) s->strange = 1;
    s->may_leave = may_leave;
    if (s->interior) s->ascends = 0;
}

/* The point was scored once more: it is what it was. */
static void take_again(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = by_rows(pass, SHMT_SUM_LOSS), primal = objective(pass, loss, by_columns(pass, SHMT_SUM_PENALTY));
    if (!(fabs(primal - s->primal) <= ALIKE * fabs(s->primal))) s->strange = 1;
    s->loss = loss / (double)pass->problem->n;
    if (s->interior) {
        s->weight = by_rows(pass, SHMT_SUM_WEIGHT);
        s->product = s->weight > 0 ? by_rows(pass, SHMT_SUM_PRODUCTS) / (2 * s->weight) : 0;
        s->wish = by_rows(pass, SHMT_SUM_WISH);
    }
    balance(pass, s);
}

static void end_remaking(struct shmt_solve_state *s) {
    s->remakes = s->stepped = 0;
    begin_step(s);
}

static void remake(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool of_examples = s->ascends || s->interior;
    switch (s->phase) {
        case SHMT_PHASE_COUNT:
            take_method(pass, s);
            s->phase = SHMT_PHASE_PLACE;
            return;
        case SHMT_PHASE_PLACE:
            s->phase = SHMT_PHASE_TURN;
            return;
        case SHMT_PHASE_TURN:
            s->phase = s->choice.scaled ? SHMT_PHASE_SCALES : of_examples ? SHMT_PHASE_FIND : SHMT_PHASE_SCORE;
            return;
        case SHMT_PHASE_SCALES:
            s->phase = SHMT_PHASE_SCORE;
            return;
        case SHMT_PHASE_FIND:
            if (by_rows(pass, SHMT_SUM_NOTHING) > 0) s->strange = 1;
            s->phase = SHMT_PHASE_SCORE;
            if (s->interior) return;
            take_again(pass, s);
            end_remaking(s);
            return;
        case SHMT_PHASE_SCORE:
            take_again(pass, s);
            s->phase = SHMT_PHASE_SLOPE;
            return;
        default:
            end_remaking(s);
            return;
    }
}

void shmt_newton_next(const struct shmt_pass *pass, struct shmt_solve_state *out) {
    struct shmt_solve_state s = *pass->state;
    const bool asked =
        shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_STOP)[0] != 0 || shmt_solve_is_left(pass->memory, pass->round);
    if (s.remakes) { /* whoever asks for an end gets it behind that */
        remake(pass, &s);
    } else if (asked && shmt_newton_may_stop(&s)) {
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
    if (s->begun) begin_step(out);
}
