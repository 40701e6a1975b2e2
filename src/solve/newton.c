/* How a fit goes on from phase to phase: see newton.h. The work of the phases is in phases.c. */
#include "solve/newton.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "solve/ascent.h"
#include "solve/choose.h"
#include "solve/hessian.h"
#include "solve/newton_priv.h"

#define ARMIJO       1e-4 /* of the decrease that the gradient promises, so much has to come */
#define MOST_HALVED  40
#define CHOICE_GAP   5e-3 /* choice: how near a fit comes, and after how many steps it is good enough */
#define CHOICE_STEPS 20
#define WARM_GAP     5e-2 /* the fit of a sample that another one begins with: the same */
#define WARM_STEPS   12
#define LIVE_SLOW    5     /* live: epochs in a row in which the gap does not fall ... */
#define LIVE_LESS    0.9   /* ... to so much of what it was, after which there are fewer that ascend */
#define LESS         0.999 /* SHMT_NEWTON_MOST_IDLE: the gap does not fall to so much of what it was */
#define MOST_SMALL   1e-3  /* ... what part of the mean curvature may be taken for small, ... */
#define LESS_SMALL   0.1   /* ... and how much less behind a step after which the products are more than ... */
#define SLOW         0.8   /* ... so much of what they were */
#define INSIDE       0.99  /* interior points: of the way to where they would be none */

/* Whether the parameters will, very likely, be proved to be near enough: they are floats, so that the point itself has to be a
 * little nearer. */
static bool is_near(const struct shmt_pass *pass, const struct shmt_solve_state *s) {
    const double gap = s->primal - s->dual;
    const double part = s->choice.open ? CHOICE_GAP : s->warms ? WARM_GAP : 0.5 * pass->problem->tolerance;
    return gap <= 0 || gap <= part * s->dual;
}

/* Choice: this fit is near enough. */
static void end_candidate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    shmt_choose_next(pass, s);
    s->phase = SHMT_PHASE_KEEP;
}

/* An interior point was scored: it is the next one, also where P is larger. Where it is no better, the Hessian may have been too rough. */
static void take(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double before = s->product, loss = shmt_newton_by_rows(pass, SHMT_SUM_LOSS) / (double)pass->problem->n;
    const double primal = loss + shmt_newton_by_columns(pass, SHMT_SUM_PENALTY),
                 weight = shmt_newton_by_rows(pass, SHMT_SUM_WEIGHT);
    const double product = weight > 0 ? shmt_newton_by_rows(pass, SHMT_SUM_PRODUCTS) / (2 * weight) : 0;
    const bool tried = s->tried != 0;
    s->tried = 0;
    if (!isfinite(primal) || !isfinite(product)) { /* the point before stays what it was */
        s->returns = 1;
        return;
    }
    if (tried) s->at = 1 - s->at;
    s->exact = 0;
    s->loss = loss;
    s->primal = primal;
    s->weight = weight;
    s->product = product;
    s->small = s->product > SLOW * before ? LESS_SMALL * s->small : fmin(MOST_SMALL, s->small / LESS_SMALL);
    s->wish = shmt_newton_by_rows(pass, SHMT_SUM_WISH);
    shmt_newton_balance(pass, s);
}

/* The point was scored: it is the next one, or the step was too long. */
static void judge(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = shmt_newton_by_rows(pass, SHMT_SUM_LOSS), penalties = shmt_newton_by_columns(pass, SHMT_SUM_PENALTY);
    const double primal = shmt_newton_objective(pass, loss, penalties), noise = 4 * DBL_EPSILON * fabs(s->primal);
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
    if (s->tried && !falls && s->warms) {
        s->phase = SHMT_PHASE_PUBLISH;
        return;
    }
    if (s->tried && !falls) {
        s->end = SHMT_SOLVE_EXHAUSTED;
        s->phase = SHMT_PHASE_PUBLISH;
        return;
    }
    if (s->tried) s->at = 1 - s->at;
    s->exact = s->tried && s->rough;
    s->tried = 0;
    s->primal = primal;
    s->loss = loss / (double)pass->problem->n;
    s->held = shmt_newton_by_rows(pass, SHMT_SUM_HELD);
    s->heavy = shmt_newton_by_rows(pass, SHMT_SUM_HEAVY);
    shmt_newton_balance(pass, s);
}

/* Choice: another step, or the fit is near enough for what it is asked. Where a class has no example in a part there is no proof, but
 * the step that was made promised little. */
static void step_or_keep(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool promised_little = s->choice.steps > 0 && -s->along <= CHOICE_GAP * s->primal;
    if (is_near(pass, s) || promised_little || s->choice.steps == CHOICE_STEPS) {
        end_candidate(pass, s);
    } else {
        s->choice.steps++;
        shmt_newton_begin_step(s);
    }
}

/* Another step of the sample's fit, or its point is where that of all begins. */
static void step_or_begin(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (is_near(pass, s) || s->warm_steps == WARM_STEPS) return;
    s->warm_steps++;
    shmt_newton_begin_step(s);
}

/* The best lower bound so far holds for good. */
static void bound(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double dual = shmt_newton_dual(pass, s);
    if (dual > s->dual) s->dual = dual;
    s->begun = 1;
    if (s->ascends && s->stepped && s->may_leave) {
        const double before = s->nearer;
        s->nearer = fmin(s->primal, s->best) - s->dual;
        s->leaves = shmt_newton_is_too_slow(pass, s, before, s->nearer);
    }
    s->phase = SHMT_PHASE_PUBLISH;
    if (s->choice.open)
        step_or_keep(pass, s);
    else if (s->warms)
        step_or_begin(pass, s);
    else if (!s->stepped && !is_near(pass, s))
        shmt_newton_begin_step(s);
}

static void gained(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->gain = shmt_newton_by_rows(pass, SHMT_SUM_GAIN);
    s->change = shmt_newton_by_rows(pass, SHMT_SUM_CHANGE);
}

static void find_step(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->step = shmt_ascent_step(pass, s->gain, s->change, shmt_newton_by_columns(pass, SHMT_SUM_CROSS),
                               shmt_newton_by_columns(pass, SHMT_SUM_LENGTHS), s->pull);
}

static void weighed(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = shmt_newton_by_rows(pass, SHMT_SUM_LOSS);
    s->at = 1 - s->at;
    s->exact = s->rough;
    s->tried = 0;
    s->loss = loss / (double)pass->problem->n;
    s->primal = shmt_newton_objective(pass, loss, shmt_newton_by_columns(pass, SHMT_SUM_PENALTY));
    shmt_newton_balance(pass, s);
}

/* Behind the first direction of an interior point it is known how far down the products may be brought. */
static double find_target(const struct shmt_pass *pass, const struct shmt_solve_state *s, double most) {
    const double step = fmin(1, most),
                 change = shmt_newton_by_rows(pass, SHMT_SUM_FIRST) + step * shmt_newton_by_rows(pass, SHMT_SUM_SECOND);
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

static void corrected(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->wish = shmt_newton_by_rows(pass, SHMT_SUM_WISH);
}

static void aimed(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->corrects ? SHMT_PHASE_AGAIN : SHMT_PHASE_HESSIAN;
}

static void solved(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->phase = s->interior ? SHMT_PHASE_REACH : SHMT_PHASE_MOVE;
}

static void begin_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->rz = shmt_newton_by_columns(pass, SHMT_SUM_RZ);
    s->rz_end = s->part * s->part * s->rz;
    if (!(s->rz > 0)) s->phase = SHMT_PHASE_MOVE;
}

static void step_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double curvature = shmt_newton_by_columns(pass, SHMT_SUM_PQ);
    s->alpha = curvature > 0 ? s->rz / curvature : 0;
    if (!(s->alpha > 0) || !isfinite(s->alpha)) s->phase = SHMT_PHASE_MOVE;
}

static void end_conjugate(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double rz = shmt_newton_by_columns(pass, SHMT_SUM_RZ);
    s->beta = rz / s->rz;
    s->rz = rz;
    s->inner++;
    if (rz <= s->rz_end || s->inner == SHMT_NEWTON_MOST_INNER) {
        s->phase = SHMT_PHASE_MOVE;
    } else if (s->inner == s->most_inner && !s->face) { /* the Hessian would have cost no more: it takes over for good */
        s->direct = 1;
        s->phase = SHMT_PHASE_HESSIAN;
    }
}

/* Live ascents that hardly come nearer lose too much of one another: half as many of them from now on. One alone loses nothing. */
static void thin_out(struct shmt_solve_state *s) {
    const bool has_fallen = s->gap < LIVE_LESS * s->slow_gap;
    if (!s->live) return;
    if (has_fallen) s->slow_gap = s->gap;
    s->slow = has_fallen ? 0 : s->slow + 1;
    if (s->slow < LIVE_SLOW) return;
    s->slow = 0;
    s->halvings += s->halvings < SHMT_NEWTON_MOST_HALVINGS;
}

/* The objective of the parameters is known: whether they are near enough, and what follows where they come no nearer. */
static void prove(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->gap = fmin(s->gap, s->published - s->dual);
    const bool has_fallen = s->gap < LESS * s->stuck;
    s->stuck = has_fallen ? s->gap : s->stuck;
    s->idle = has_fallen ? 0 : s->idle + (s->idle < SHMT_NEWTON_MOST_IDLE);
    thin_out(s);
    if (shmt_newton_gap(s) <= pass->problem->tolerance)
        s->end = SHMT_SOLVE_PROVED;
    else if (is_near(pass, s) && ++s->unproved >= SHMT_NEWTON_MOST_UNPROVED)
        s->end = SHMT_SOLVE_EXHAUSTED;
    else if (s->idle >= SHMT_NEWTON_MOST_IDLE && s->interior)
        s->returns = 1;
    else if (s->idle >= SHMT_NEWTON_MOST_IDLE)
        s->end = SHMT_SOLVE_EXHAUSTED;
}

static void verified(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const double loss = shmt_newton_by_rows(pass, SHMT_SUM_LOSS);
    s->loss = loss / (double)pass->problem->n;
    s->published = shmt_newton_objective(pass, loss, shmt_newton_by_columns(pass, SHMT_SUM_PENALTY));
    prove(pass, s);
}

/* Whoever asks for an end gets it at the last point that was judged; before the fit of all examples has one, at the best candidate of
 * the choice. */
static void stop(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    const bool open = s->choice.open != 0;
    const bool of_all = !s->choice.open && !s->warms && s->phase != SHMT_PHASE_KEEP;
    const bool chosen = s->choice.fits > 0 && s->choice.least < INFINITY, has_point = s->begun && of_all;
    if (s->choice.open) s->l2 = shmt_choice_l2(s->choice.strength, pass->problem->n_all);
    if (!of_all) { /* a bound of a part is none of all, nor its objective */
        s->dual = -INFINITY;
        s->exact = 0;
    }
    s->warms = 0;
    s->stopped = open ? 2 : 1;
    s->choice.open = s->choice.improved = s->choice.sampled = 0;
    const bool warmed = s->warm_steps > 0 && !s->choice.scaled; /* the parameters are a sample's; scales may not be there */
    s->phase = !has_point && chosen ? SHMT_PHASE_KEEP
               : s->begun           ? SHMT_PHASE_PUBLISH
               : warmed             ? SHMT_PHASE_VERIFY
                                    : SHMT_PHASE_OVER;
    if (s->phase == SHMT_PHASE_OVER) s->loss = NAN;
}

/* Another objective: nothing is known of its minimum. */
static void forget(struct shmt_solve_state *s) {
    s->primal = INFINITY;
    s->dual = -INFINITY;
    s->begun = s->stepped = s->tried = s->exact = 0;
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
        .warms = sampled && p->n_held == 0,
        .choice = {.open = p->n_held > 0, .scaled = p->scale == SHMT_SCALE_YES, .sampled = sampled, .least = INFINITY},
        .primal = INFINITY,
        .best = INFINITY,
        .gap = INFINITY,
        .stuck = INFINITY,
        .slow_gap = INFINITY,
        .small = MOST_SMALL,
        .dual = -INFINITY,
        .published = NAN,
        .loss = NAN,
        .up = 1,
        .down = 1};
}

static void sloped(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->image = shmt_newton_by_columns(pass, SHMT_SUM_IMAGE);
    if (pass->problem->l1 > 0)
        shmt_newton_shorten(pass, s);
    else
        bound(pass, s);
}

static void started(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->resumes) shmt_newton_balance(pass, s);
    s->resumes = 0;
    if (s->ascends) shmt_newton_begin_step(s);
}

static void scored(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->interior)
        take(pass, s);
    else
        judge(pass, s);
}

static void turned(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (pass->problem->scale == SHMT_SCALE_NO) begin_choice(pass, s);
    s->phase = s->ascends || s->interior               ? SHMT_PHASE_START
               : pass->problem->scale != SHMT_SCALE_NO ? SHMT_PHASE_SCALES
                                                       : SHMT_PHASE_SCORE;
}

static void counted(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    shmt_newton_choose_method(pass, s);
    if (!pass->plan->turns) turned(pass, s);
}

static void has_hessian(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->phase = s->cycles ? SHMT_PHASE_CYCLE : shmt_hessian_by_rows(pass) ? SHMT_PHASE_SUM : SHMT_PHASE_FACTOR;
}

/* Sweeps over the data have become as dear as the Hessian: it takes over for good. */
static void cycled(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->pays && !s->direct && shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MORE)[0] != 0) s->direct = 1;
}

static void swept(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->phase = ++s->inner == shmt_ascent_sweeps(pass->problem) ? SHMT_PHASE_GAIN : SHMT_PHASE_ASCEND;
}

static void scaled(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->scaled = shmt_newton_by_rows(pass, SHMT_SUM_SCALED);
}

static void moved(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->along = shmt_newton_by_columns(pass, SHMT_SUM_ALONG);
    s->tried = s->stepped = 1;
}

static void advanced(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    (void)pass;
    s->tried = s->stepped = 1;
}

/* The sample's point is there, as parameters, from which the fit of all takes its own. */
static void begin_all(struct shmt_solve_state *s) {
    forget(s);
    s->warms = s->choice.sampled = s->direct = s->at = 0;
    s->phase = SHMT_PHASE_COUNT;
}

static void published(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    if (s->warms) {
        begin_all(s);
        return;
    }
    const bool taken = s->primal < s->best; /* else the parameters are those of an earlier point */
    s->best = fmin(s->best, s->primal);
    if (!s->exact || !taken) return;
    s->published = s->primal;
    s->phase = SHMT_PHASE_OVER;
    prove(pass, s);
}

/* What follows a phase: the one that stands here, or the one that the function chooses. */
static const struct {
    enum shmt_solve_phase then;
    void (*find)(const struct shmt_pass *pass, struct shmt_solve_state *s);
} NEXT[] = {[SHMT_PHASE_COUNT] = {SHMT_PHASE_PLACE, counted},
            [SHMT_PHASE_PLACE] = {SHMT_PHASE_TURN, NULL},
            [SHMT_PHASE_TURN] = {SHMT_PHASE_SCORE, turned},
            [SHMT_PHASE_SCALES] = {SHMT_PHASE_SCORE, begin_choice},
            [SHMT_PHASE_KEEP] = {SHMT_PHASE_SCORE, kept},
            [SHMT_PHASE_SCORE] = {SHMT_PHASE_SLOPE, scored},
            [SHMT_PHASE_SLOPE] = {SHMT_PHASE_PUBLISH, sloped},
            [SHMT_PHASE_BOUND] = {SHMT_PHASE_PUBLISH, bound},
            [SHMT_PHASE_CYCLE] = {SHMT_PHASE_MOVE, cycled},
            [SHMT_PHASE_HESSIAN] = {SHMT_PHASE_FACTOR, has_hessian},
            [SHMT_PHASE_SUM] = {SHMT_PHASE_FACTOR, NULL},
            [SHMT_PHASE_FACTOR] = {SHMT_PHASE_MOVE, solved},
            [SHMT_PHASE_BEGIN] = {SHMT_PHASE_ROWS, begin_conjugate},
            [SHMT_PHASE_ROWS] = {SHMT_PHASE_COLUMNS, scaled},
            [SHMT_PHASE_COLUMNS] = {SHMT_PHASE_STEP, step_conjugate},
            [SHMT_PHASE_STEP] = {SHMT_PHASE_SEARCH, end_conjugate},
            [SHMT_PHASE_SEARCH] = {SHMT_PHASE_ROWS, NULL},
            [SHMT_PHASE_AIM] = {SHMT_PHASE_HESSIAN, aimed},
            [SHMT_PHASE_REACH] = {SHMT_PHASE_MOVE, reached},
            [SHMT_PHASE_CORRECT] = {SHMT_PHASE_AIM, corrected},
            [SHMT_PHASE_AGAIN] = {SHMT_PHASE_REACH, NULL},
            [SHMT_PHASE_MOVE] = {SHMT_PHASE_SCORE, moved},
            [SHMT_PHASE_START] = {SHMT_PHASE_SCORE, started},
            [SHMT_PHASE_SHARE_IMAGE] = {SHMT_PHASE_ASCEND, NULL},
            [SHMT_PHASE_ASCEND] = {SHMT_PHASE_GAIN, swept},
            [SHMT_PHASE_GAIN] = {SHMT_PHASE_IMAGE, gained},
            [SHMT_PHASE_IMAGE] = {SHMT_PHASE_ADVANCE, find_step},
            [SHMT_PHASE_ADVANCE] = {SHMT_PHASE_WEIGH, advanced},
            [SHMT_PHASE_WEIGH] = {SHMT_PHASE_SLOPE, weighed},
            [SHMT_PHASE_PUBLISH] = {SHMT_PHASE_VERIFY, published},
            [SHMT_PHASE_VERIFY] = {SHMT_PHASE_OVER, verified},
            [SHMT_PHASE_OVER] = {SHMT_PHASE_OVER, NULL}};

bool shmt_newton_may_stop(const struct shmt_solve_state *s) {
    return (s->phase < SHMT_PHASE_PUBLISH || s->warms) && !s->stopped; /* what a sample has published may be once more */
}

bool shmt_newton_may_skip(const struct shmt_solve_state *s) {
    return shmt_newton_may_stop(s) && s->phase != SHMT_PHASE_KEEP && !s->remakes;
}

void shmt_newton_next(const struct shmt_pass *pass, struct shmt_solve_state *out) {
    struct shmt_solve_state s = *pass->state;
    const bool asked =
        shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_STOP)[0] != 0 || shmt_solve_is_skipped(pass->memory, pass->round);
    if (s.remakes) { /* whoever asks for an end gets it behind that */
        shmt_newton_remake(pass, &s);
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
    if (s->begun) shmt_newton_begin_step(out);
}
