/* The work of the phases: see newton.h. What follows from it is in newton.c. */
#include <math.h>

#include "base/checked.h"
#include "solve/ascent.h"
#include "solve/cholesky.h"
#include "solve/choose.h"
#include "solve/cycle.h"
#include "solve/hessian.h"
#include "solve/interior.h"
#include "solve/keep.h"
#include "solve/newton.h"
#include "solve/turn.h"
#include "solve/wide.h"

/* ---- work on vectors: my blocks of columns ---- */

static void my_columns(const struct shmt_pass *pass, uint64_t *first, uint64_t *behind) {
    shmt_solve_share(pass->plan->n_col_blocks, pass->part, pass->n_parts, first, behind);
}

/* Numbers that are penalised come first; biases are behind them. */
static uint64_t n_penalised(const struct shmt_pass *pass) {
    return (uint64_t)pass->problem->n_columns * pass->problem->n_classes;
}

static uint64_t column_of(const struct shmt_pass *pass, uint64_t j) {
    return pass->problem->n_classes == 1 ? j : j / pass->problem->n_classes;
}

/* The parameter that number j goes to. */
static float *parameter(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_problem *p = pass->problem;
    const uint64_t column = column_of(pass, j), class = j - column * p->n_classes;
    if (p->n_classes == 1) return p->weight + j;
    return j < n_penalised(pass) ? p->weight + class * p->stride + column : p->bias_weight + class;
}

/* Calls `element` for each number of my columns, and leaves the sums of what it returns. */
static void each(const struct shmt_pass *pass, enum shmt_solve_sums which,
                 double (*element)(const struct shmt_pass *pass, uint64_t j)) {
    const uint64_t wide = pass->plan->of.n_classes, all = ((uint64_t)pass->plan->of.n_columns + pass->plan->of.bias) * wide;
    const uint64_t block = pass->plan->col_block * wide;
    uint64_t first, behind;
    my_columns(pass, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * block, all);
        double sum = 0;
        if (!shmt_pass_goes_on(pass)) return;
        for (uint64_t j = b * block; j < to; j++) sum += element(pass, j);
        shmt_solve_put_number(pass->memory, pass->round, which, b, sum);
    }
}

static double *tried(const struct shmt_pass *pass) {
    const struct shmt_solve_state *s = pass->state;
    return pass->memory->w[s->tried ? 1 - s->at : s->at];
}

/* What conjugate gradients have after so many steps, and what they have after the next one. */
static uint32_t now(const struct shmt_pass *pass) { return pass->state->inner % 2; }
static uint32_t then(const struct shmt_pass *pass) { return 1 - now(pass); }

/* Whether the step's direction comes from conjugate gradients. */
static bool is_conjugate(const struct shmt_solve_state *s) { return s->face || !(s->direct || s->cycles); }

static const double *direction(const struct shmt_pass *pass) {
    return pass->memory->direction[is_conjugate(pass->state) ? now(pass) : pass->state->corrects];
}

/* Where the fit begins: at the best candidate of a choice that was made of a sample, else at the parameters. */
static double take_weight(const struct shmt_pass *pass, uint64_t j) {
    const bool chosen = pass->state->choice.fits > 0;
    pass->memory->w[0][j] = chosen ? pass->memory->best[j] : (double)*parameter(pass, j);
    return 0;
}

static double penalty_of(const struct shmt_pass *pass, uint64_t j, double w) {
    return j < n_penalised(pass) ? 0.5 * shmt_pass_l2(pass, column_of(pass, j)) * w * w + pass->problem->l1 * fabs(w) : 0;
}

static double penalty(const struct shmt_pass *pass, uint64_t j) { return penalty_of(pass, j, tried(pass)[j]); }

static double penalty_published(const struct shmt_pass *pass, uint64_t j) {
    return penalty_of(pass, j, (double)*parameter(pass, j));
}

/* The best point so far: the primal of dual ascent goes up and down. */
static double publish(const struct shmt_pass *pass, uint64_t j) {
    if (pass->state->primal < pass->state->best) *parameter(pass, j) = (float)pass->memory->w[pass->state->at][j];
    return 0;
}

/* On a face weights keep their signs, or are 0. */
static double move(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const struct shmt_solve_state *s = pass->state;
    const double before = m->w[s->at][j], next = before + s->step * direction(pass)[j];
    const bool leaves = s->face && j < n_penalised(pass) && before * next < 0;
    m->w[1 - s->at][j] = leaves ? 0 : s->rough ? shmt_pass_rounded(next) : next;
    return 0;
}

/* The objective's derivative along weight j; on a face, where weights that are 0 stay so, that of the others with their L1. */
static double slope_on_face(const struct shmt_pass *pass, uint64_t j) {
    const double w = pass->memory->w[pass->state->at][j], l1 = pass->problem->l1, g = pass->memory->gradient[j];
    if (!pass->state->face || j >= n_penalised(pass)) return g;
    return w > 0 ? g + l1 : w < 0 ? g - l1 : 0;
}

/* How much the whole step promises, by the gradient, and by what L1 has of it. */
static double along(const struct shmt_pass *pass, uint64_t j) {
    const double w = pass->memory->w[pass->state->at][j], d = direction(pass)[j];
    const double l1 = j < n_penalised(pass) ? pass->problem->l1 : 0, g = pass->memory->gradient[j];
    if (pass->state->face) return slope_on_face(pass, j) * d;
    return g * d + (l1 > 0 ? l1 * (fabs(w + d) - fabs(w)) : 0);
}

/* x = 0, r = -g, p = r / diagonal. */
static double begin_inner(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    m->direction[0][j] = 0;
    m->residual[0][j] = -slope_on_face(pass, j);
    m->search[0][j] = m->preconditioned[0][j] = m->diagonal[j] > 0 ? m->residual[0][j] / m->diagonal[j] : 0;
    return m->residual[0][j] * m->preconditioned[0][j];
}

static double step_inner(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t a = now(pass), b = then(pass);
    m->direction[b][j] = m->direction[a][j] + pass->state->alpha * m->search[a][j];
    const bool fixed = pass->state->face && j < n_penalised(pass) && m->w[pass->state->at][j] == 0;
    m->residual[b][j] = fixed ? 0 : m->residual[a][j] - pass->state->alpha * m->product[j];
    m->preconditioned[b][j] = m->diagonal[j] > 0 ? m->residual[b][j] / m->diagonal[j] : 0;
    return m->residual[b][j] * m->preconditioned[b][j];
}

static double next_search(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t a = now(pass); /* the step is counted already */
    m->search[a][j] = m->preconditioned[a][j] + pass->state->beta * m->search[1 - a][j];
    return 0;
}

/* ---- phases ---- */

static bool is_wide(const struct shmt_pass *pass) { return pass->problem->loss == SHMT_SOLVE_SOFTMAX; }

static int count(const struct shmt_pass *pass) {
    if (pass->plan->turns) shmt_turn_count(pass);
    if (is_wide(pass)) shmt_wide_classes(pass);
    shmt_pass_lengths(pass);
    if (!pass->state->remakes) each(pass, SHMT_SUM_NOTHING, take_weight);
    return 0;
}

static int place(const struct shmt_pass *pass) {
    if (pass->part == 0) shmt_turn_place(pass);
    return 0;
}

static int turn(const struct shmt_pass *pass) { return shmt_turn_fill(pass); }

static int scales(const struct shmt_pass *pass) {
    shmt_choose_scales(pass);
    return 0;
}

static int keep(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_NOTHING, shmt_choose_keep);
    return 0;
}

static int score(const struct shmt_pass *pass) {
    if (is_wide(pass))
        shmt_wide_score(pass, tried(pass));
    else if (pass->state->interior)
        shmt_interior_score(pass, tried(pass));
    else
        shmt_pass_score(pass, tried(pass));
    each(pass, SHMT_SUM_PENALTY, penalty);
    return 0;
}

static int slope(const struct shmt_pass *pass) {
    if (is_wide(pass)) {
        shmt_wide_slope(pass, pass->memory->w[pass->state->at]);
        shmt_wide_dual(pass);
        return 0;
    }
    shmt_pass_slope(pass, pass->memory->w[pass->state->at]);
    if (pass->problem->l1 == 0) shmt_pass_dual(pass);
    return 0;
}

static int bound(const struct shmt_pass *pass) {
    shmt_pass_dual(pass);
    return 0;
}

static int hessian(const struct shmt_pass *pass) {
    if (shmt_hessian_by_rows(pass))
        shmt_hessian_add(pass);
    else
        shmt_pass_hessian(pass);
    return 0;
}

static int sum(const struct shmt_pass *pass) {
    shmt_hessian_sum(pass);
    return 0;
}

/* The direction, of the equations with `gradient`. */
static void solve(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    shmt_cholesky_solve(all, m->factor, m->gradient, m->direction[pass->state->corrects]);
}

static int factor(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    if (pass->part != 0) return 0;
    for (uint64_t j = 0; j < all; j++) {
        if (!shmt_pass_goes_on(pass)) return 0;
        shmt_cholesky_row(all, m->hessian, m->factor, j);
    }
    solve(pass);
    return 0;
}

static int again(const struct shmt_pass *pass) {
    if (pass->part == 0) solve(pass);
    return 0;
}

static int begin(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_RZ, begin_inner);
    return 0;
}

static int rows(const struct shmt_pass *pass) {
    const double *search = pass->memory->search[now(pass)];
    if (is_wide(pass))
        shmt_wide_scaled(pass, search);
    else
        shmt_pass_scaled(pass, search);
    return 0;
}

static int columns(const struct shmt_pass *pass) {
    const double *search = pass->memory->search[now(pass)];
    if (is_wide(pass))
        shmt_wide_product(pass, search);
    else
        shmt_pass_product(pass, search);
    return 0;
}

static int step(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_RZ, step_inner);
    return 0;
}

static int search(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_NOTHING, next_search);
    return 0;
}

static int aim(const struct shmt_pass *pass) {
    shmt_interior_aim(pass);
    return 0;
}

static int reach(const struct shmt_pass *pass) {
    shmt_interior_reach(pass);
    return 0;
}

static int correct(const struct shmt_pass *pass) {
    shmt_interior_correct(pass);
    return 0;
}

static int move_all(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_ALONG, along);
    each(pass, SHMT_SUM_NOTHING, move);
    if (pass->state->interior) shmt_interior_move(pass);
    return 0;
}

static int start(const struct shmt_pass *pass) {
    if (pass->state->interior)
        shmt_interior_start(pass);
    else
        shmt_ascent_start(pass);
    return 0;
}

static int share_image(const struct shmt_pass *pass) {
    shmt_ascent_share_image(pass);
    return 0;
}

static int gain(const struct shmt_pass *pass) {
    shmt_ascent_gain(pass);
    return 0;
}

static int image(const struct shmt_pass *pass) {
    shmt_ascent_image(pass);
    return 0;
}

static int advance(const struct shmt_pass *pass) {
    shmt_ascent_advance(pass);
    return 0;
}

static int weigh(const struct shmt_pass *pass) {
    shmt_ascent_weigh(pass);
    each(pass, SHMT_SUM_PENALTY, penalty);
    return 0;
}

static int find(const struct shmt_pass *pass) {
    shmt_keep_find(pass);
    each(pass, SHMT_SUM_PENALTY, penalty);
    return 0;
}

static int publish_all(const struct shmt_pass *pass) {
    each(pass, SHMT_SUM_NOTHING, publish);
    return 0;
}

static int verify(const struct shmt_pass *pass) {
    if (is_wide(pass))
        shmt_wide_verify(pass);
    else
        shmt_pass_verify(pass);
    each(pass, SHMT_SUM_PENALTY, penalty_published);
    return 0;
}

static int nothing(const struct shmt_pass *pass) {
    (void)pass;
    return 0;
}

int shmt_newton_work(const struct shmt_pass *pass) {
    static int (*const WORK[])(const struct shmt_pass *pass) = {
        [SHMT_PHASE_COUNT] = count,
        [SHMT_PHASE_PLACE] = place,
        [SHMT_PHASE_TURN] = turn,
        [SHMT_PHASE_SCALES] = scales,
        [SHMT_PHASE_KEEP] = keep,
        [SHMT_PHASE_SCORE] = score,
        [SHMT_PHASE_SLOPE] = slope,
        [SHMT_PHASE_BOUND] = bound,
        [SHMT_PHASE_CYCLE] = shmt_cycle,
        [SHMT_PHASE_HESSIAN] = hessian,
        [SHMT_PHASE_SUM] = sum,
        [SHMT_PHASE_FACTOR] = factor,
        [SHMT_PHASE_BEGIN] = begin,
        [SHMT_PHASE_ROWS] = rows,
        [SHMT_PHASE_COLUMNS] = columns,
        [SHMT_PHASE_STEP] = step,
        [SHMT_PHASE_SEARCH] = search,
        [SHMT_PHASE_AIM] = aim,
        [SHMT_PHASE_REACH] = reach,
        [SHMT_PHASE_CORRECT] = correct,
        [SHMT_PHASE_AGAIN] = again,
        [SHMT_PHASE_MOVE] = move_all,
        [SHMT_PHASE_START] = start,
        [SHMT_PHASE_SHARE_IMAGE] = share_image,
        [SHMT_PHASE_ASCEND] = shmt_ascent_sweep,
        [SHMT_PHASE_GAIN] = gain,
        [SHMT_PHASE_IMAGE] = image,
        [SHMT_PHASE_ADVANCE] = advance,
        [SHMT_PHASE_WEIGH] = weigh,
        [SHMT_PHASE_PUBLISH] = publish_all,
        [SHMT_PHASE_VERIFY] = verify,
        [SHMT_PHASE_OVER] = nothing,
        [SHMT_PHASE_FIND] = find,
    };
    return WORK[pass->state->phase](pass);
}
