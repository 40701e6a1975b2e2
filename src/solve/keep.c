/* What is kept of a fit: see keep.h. How a fit goes on from it is in newton.c. */
#include "solve/keep.h"

#include <string.h>

#include "solve/ascent.h"
#include "solve/choose.h"
#include "solve/loss_priv.h"
#include "solve/newton.h"

#define SLACK 1e-9 /* of its range, that rounding may have taken u beyond an end */

/* ---- room ---- */

static uint64_t numbers_of_point(const struct shmt_solve_plan *plan) {
    return ((uint64_t)plan->of.n_columns + plan->of.bias) * plan->of.n_classes;
}

static uint64_t n_dual(const struct shmt_solve_plan *plan) { return shmt_solve_has_dual(&plan->of) ? plan->of.n : 0; }

static uint64_t n_inner(const struct shmt_solve_plan *plan) { return shmt_solve_has_inner(plan) ? plan->of.n : 0; }

void shmt_keep_plan(const struct shmt_solve_plan *plan, struct shmt_keep_plan *out) {
    struct shmt_keep_plan p = {0};
    p.over_off = shmt_solve_add(&p.bytes, 1, sizeof(struct shmt_solve_state));
    p.state_off = shmt_solve_add(&p.bytes, 1, sizeof(struct shmt_solve_state));
    p.point_off = shmt_solve_add(&p.bytes, numbers_of_point(plan), sizeof(double));
    p.dual_off = shmt_solve_add(&p.bytes, n_dual(plan), sizeof(double));
    p.inner_off = shmt_solve_add(&p.bytes, n_inner(plan), sizeof(struct shmt_interior));
    *out = p;
}

void shmt_keep_at(const struct shmt_solve_plan *plan, const struct shmt_keep_plan *keep, void *base, struct shmt_keep *out) {
    unsigned char *at = base;
    *out = (struct shmt_keep){.over = (struct shmt_solve_state *)(void *)(at + keep->over_off),
                              .state = (struct shmt_solve_state *)(void *)(at + keep->state_off),
                              .point = (double *)(void *)(at + keep->point_off)};
    if (n_dual(plan) > 0) out->dual = (double *)(void *)(at + keep->dual_off);
    if (n_inner(plan) > 0) out->inner = (struct shmt_interior *)(void *)(at + keep->inner_off);
}

/* ---- keeping ---- */

_Static_assert(sizeof(struct shmt_solve_state) == 688,
               "a new member that an epoch leaves to the next one is kept, too: struct shmt_kept_fit; but for those that "
               "only live fits have, which repeat no bits: slow, slow_gap");

void shmt_keep_copy(const struct shmt_pass *pass, const struct shmt_keep *to) {
    const struct shmt_solve_memory *m = pass->memory;
    const struct shmt_solve_state *s = pass->state;
    uint64_t from, behind;
    if (pass->part == 0) *to->state = *s;
    shmt_solve_share(numbers_of_point(pass->plan), pass->part, pass->n_parts, &from, &behind);
    memcpy(to->point + from, m->w[s->at] + from, (behind - from) * sizeof *to->point);
    SHMT_POINT("fit:keeping");
    shmt_solve_share(pass->problem->n, pass->part, pass->n_parts, &from, &behind);
    for (uint64_t i = from; i < behind && s->ascends; i++) to->dual[i] = m->slope[i].pull;
    if (s->interior) memcpy(to->inner + from, m->inner[s->at] + from, (behind - from) * sizeof *to->inner);
}

void shmt_keep_numbers(const struct shmt_solve_state *s, struct shmt_kept_fit *out) {
    const struct shmt_choice *c = &s->choice;
    const bool chosen = c->fits > 0;
    *out = (struct shmt_kept_fit){.chosen = chosen,
                                  .scaled = c->scaled,
                                  .strength = chosen ? c->best_strength : 0,
                                  .fits = c->fits,
                                  .direct = s->direct,
                                  .interior = s->interior,
                                  .may_leave = s->may_leave,
                                  .leaves = s->leaves,
                                  .returns = s->returns,
                                  .idle = s->idle,
                                  .unproved = s->unproved,
                                  .halvings = s->halvings,
                                  .exhausted = s->end == SHMT_SOLVE_EXHAUSTED,
                                  .choice_loss = chosen ? c->least : INFINITY,
                                  .primal = s->primal,
                                  .dual = s->dual,
                                  .best = s->best,
                                  .gap = s->gap,
                                  .stuck = s->stuck,
                                  .published = isnan(s->published) ? INFINITY : s->published,
                                  .nearer = s->nearer,
                                  .small = s->small,
                                  .along = isfinite(s->along) ? s->along : 0};
}

/* ---- going on ---- */

void shmt_keep_begin(const struct shmt_problem *p, const struct shmt_kept_fit *kept, uint32_t epoch,
                     struct shmt_solve_state *out) {
    shmt_newton_begin(p, false, out);
    out->remakes = out->begun = 1;
    out->epoch = epoch;
    out->choice = (struct shmt_choice){.scaled = kept->scaled,
                                       .best_scaled = kept->scaled,
                                       .best_strength = kept->strength,
                                       .fits = kept->fits,
                                       .path = INFINITY,
                                       .least = kept->choice_loss};
    if (kept->chosen) out->l2 = shmt_choice_l2(kept->strength, p->n_all);
    out->direct = kept->direct;
    out->interior = kept->interior;
    out->may_leave = kept->may_leave;
    out->leaves = kept->leaves;
    out->returns = kept->returns;
    out->idle = kept->idle;
    out->unproved = kept->unproved;
    out->halvings = kept->halvings;
    out->primal = kept->primal;
    out->dual = kept->dual;
    out->best = kept->best;
    out->gap = kept->gap;
    out->stuck = kept->stuck;
    out->published = kept->published;
    out->nearer = kept->nearer;
    out->small = kept->small;
    out->along = kept->along;
}

double shmt_keep_gap(const struct shmt_kept_fit *kept) {
    return shmt_newton_gap(&(struct shmt_solve_state){.published = kept->published, .dual = kept->dual});
}

static bool is_possible_dual(const struct shmt_problem *p, uint64_t i, double u) {
    const double c = shmt_problem_weight(p, i), along = shmt_example_label(p, i) * u;
    if (c == 0 || p->loss == SHMT_SOLVE_SQUARED) return isfinite(u) && (c > 0 || u == 0);
    return along >= -SLACK * c && along <= (1 + SLACK) * c;
}

static bool is_possible_inner(const struct shmt_problem *p, uint64_t i, const struct shmt_interior *inner) {
    const double c = shmt_problem_weight(p, i);
    return c == 0 || (inner->dual > 0 && inner->dual < c && inner->slack > 0 && isfinite(inner->slack));
}

static double loss_of(const struct shmt_pass *pass, uint64_t from, uint64_t to, const double *w) {
    double loss = 0;
    for (uint64_t i = from; i < to; i += SHMT_TOGETHER) {
        struct shmt_loss_at at[SHMT_TOGETHER];
        double z[SHMT_TOGETHER];
        const uint32_t n = shmt_together(i, to);
        for (uint32_t k = 0; k < n; k++) z[k] = shmt_example_dot(pass->problem, i + k, w);
        shmt_losses(pass->problem, i, n, z, at);
        for (uint32_t k = 0; k < n; k++) loss += at[k].loss;
    }
    return loss;
}

static void find_dual(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_solve_memory *m = pass->memory;
    double up = 0, down = 0, weight = 0, strange = 0;
    for (uint64_t i = from; i < to; i++) {
        const double u = m->slope[i].pull;
        m->square[i] = shmt_ascent_square(pass->problem, i);
        strange += !is_possible_dual(pass->problem, i, u);
        up += u > 0 ? u : 0;
        down += u > 0 ? 0 : -u;
        weight += shmt_problem_weight(pass->problem, i);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss_of(pass, from, to, w));
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, up);
    shmt_pass_put_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_pass_put_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_pass_put_sum(pass, SHMT_SUM_CURVE, number, 0);
    shmt_pass_put_sum(pass, SHMT_SUM_STRANGE, number, strange);
}

static void find_inner(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    double strange = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++)
        strange += !is_possible_inner(pass->problem, i, &pass->memory->inner[pass->state->at][i]);
    shmt_pass_put_sum(pass, SHMT_SUM_STRANGE, number, strange);
}

void shmt_keep_find(const struct shmt_pass *pass) {
    shmt_each_block(pass, pass->memory->w[pass->state->at], pass->state->interior ? find_inner : find_dual);
}
