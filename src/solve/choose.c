/* The choice of L2 and of scales: see choose.h. */
#include "solve/choose.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

#define STRONGEST  1e3    /* n l2 */
#define WORSE      2      /* values in a row that are worse than the path's best: it is over */
#define FAR_WORSE  1.1    /* ... or one that is so much worse */
#define BETTER     0.9995 /* times the best loss: what is not that low is no better, and has a weaker L2 */
#define ENOUGH     200    /* held-out examples that say that a candidate is far worse */
#define ALIKE      4      /* squares of scales within this factor: the scaled path would be the other one again */
#define FLOAT_STEP 1.2e-7 /* of a number: what floats tell apart */

double shmt_choice_l2(uint32_t strength, uint64_t n) { return STRONGEST * pow(10, -(double)strength) / (double)n; }

uint32_t shmt_choice_most_fits(const struct shmt_problem *p) {
    return (p->scale == SHMT_SCALE_CHOSEN ? 2 : 1) * SHMT_CHOICE_STRENGTHS * p->n_held;
}

/* ---- scales ---- */

static double square_of_scale(const struct shmt_pass *pass, uint32_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint64_t from = m->start[j], to = m->start[j + 1];
    const double here = (double)(to - from), share = here / (double)pass->problem->n;
    double sum = 0, squares = 0;
    if (from == to) return 1;
    for (uint64_t at = from; at < to; at++) sum += m->value ? (double)m->value[at] : 1;
    const double mean = sum / here;
    for (uint64_t at = from; at < to; at++) {
        const double off = (m->value ? (double)m->value[at] : 1) - mean;
        squares += off * off;
    }
    const double variance = squares / here, moment = variance + mean * mean;
    const double scale = pass->problem->bias ? variance + (1 - share) * mean * mean : moment;
    return scale > FLOAT_STEP * FLOAT_STEP * moment ? scale : moment > 0 ? moment : 1;
}

void shmt_choose_scales(const struct shmt_pass *pass) {
    uint64_t first, behind;
    shmt_solve_share_columns(pass->plan, pass->memory, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, pass->plan->of.n_columns);
        double most = 0, least = INFINITY;
        if (!shmt_pass_goes_on(pass)) return;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) {
            const double scale = pass->memory->scale[j] = square_of_scale(pass, (uint32_t)j);
            if (pass->memory->start[j] == pass->memory->start[j + 1]) continue;
            most = fmax(most, scale);
            least = fmin(least, scale);
        }
        shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MOST)[b] = most;
        shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_LEAST)[b] = least;
    }
}

/* ---- from fit to fit ---- */

/* What is read is not written: `kept` of the part that comes is another one's than that of the part before, or the same fit goes on. */
double shmt_choose_keep(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const struct shmt_choice *c = &pass->state->choice;
    const double here = m->w[pass->state->at][j];
    m->kept[c->last_part][j] = here;
    for (uint32_t part = c->last_part + 1; c->left && part < pass->problem->n_held; part++) m->kept[part][j] = 0;
    if (c->improved) m->best[j] = here;
    m->w[1 - pass->state->at][j] = !c->open                  ? (c->improved ? here : m->best[j])
                                   : c->fresh                ? 0
                                   : c->part == c->last_part ? here
                                                             : m->kept[c->part][j];
    return 0;
}

/* Whether scales differ enough for a path of their own. */
static bool differ(const struct shmt_pass *pass) {
    const double *most_of = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_MOST);
    const double *least_of = shmt_solve_sum(pass->memory, pass->round, SHMT_SUM_LEAST);
    double most = 0, least = INFINITY;
    for (uint32_t b = 0; b < pass->plan->n_col_blocks; b++) {
        most = fmax(most, most_of[b]);
        least = fmin(least, least_of[b]);
    }
    return most > ALIKE * least;
}

void shmt_choose_begin(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    s->choice.has_scales = pass->problem->scale == SHMT_SCALE_CHOSEN && differ(pass);
    s->choice.fresh = 1;
    s->choice.best_scaled = s->choice.scaled;
    s->choice.path = s->choice.least = INFINITY;
    s->l2 = shmt_choice_l2(0, pass->problem->n);
}

/* This candidate has been fitted without each of the parts: whether its path goes on. */
static bool judge(struct shmt_choice *c) {
    const double mean = c->heavy > 0 ? c->held / c->heavy : INFINITY;
    const bool is_number = mean < INFINITY; /* false for what is none */
    c->improved = is_number && mean < BETTER * c->least;
    if (c->improved) {
        c->least = mean;
        c->best_scaled = c->scaled;
        c->best_strength = c->strength;
        memcpy(c->best_so_far, c->so_far, sizeof c->so_far);
    }
    c->worse = is_number && mean < c->path ? 0 : c->worse + 1;
    const bool far = c->worse > 0 && !(mean < FAR_WORSE * c->path);
    if (is_number) c->path = fmin(c->path, mean);
    c->held = c->heavy = 0;
    return c->worse < WORSE && !far && c->strength + 1 < SHMT_CHOICE_STRENGTHS;
}

static void next_candidate(struct shmt_choice *c) {
    if (judge(c)) {
        c->strength++;
    } else if (!c->scaled && c->has_scales) {
        c->scaled = 1;
        c->strength = c->worse = 0;
        c->path = INFINITY;
        c->fresh = 1;
    } else {
        c->open = 0;
    }
}

/* By the parts so far the candidate cannot become the best one. Then its mean is as far from the best one's as it is so far. */
static bool is_left(const struct shmt_problem *p, struct shmt_choice *c) {
    const double mean = c->so_far[c->part], best = c->best_so_far[c->part];
    const bool enough = p->n * (c->part + UINT64_C(1)) / p->n_parts >= ENOUGH;
    if (!enough || c->part + 1 == p->n_held || !(c->least < INFINITY) || !(mean > FAR_WORSE * best)) return false;
    c->held = c->least * (mean / best) * c->heavy;
    return true;
}

void shmt_choose_next(const struct shmt_pass *pass, struct shmt_solve_state *s) {
    struct shmt_choice *c = &s->choice;
    c->held += s->held;
    c->heavy += s->heavy;
    c->so_far[c->part] = c->heavy > 0 ? c->held / c->heavy : INFINITY;
    const bool left = is_left(pass->problem, c);
    c->left = left && c->fresh;
    c->fits++;
    c->steps = 0;
    c->improved = 0;
    c->last_part = c->part;
    c->part++;
    if (left || c->part == pass->problem->n_held) {
        c->part = 0;
        c->fresh = 0;
        next_candidate(c);
    }
}
