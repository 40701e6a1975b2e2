/* All tables of a store as one flat array of floats, each starting on a line of its own: what gradients are folded and applied
 * over. The rule's state is as many further arrays of the same shape (planes). */
#pragma once

#include "ps/spec.h"

/* In floats. */
struct shmt_flat {
    uint64_t start[SHMT_MAX_TABLES];
    uint64_t n; /* in all, a multiple of a line; of a page, where replicas hold a part of it */
};
void shmt_flat_plan(const struct shmt_spec *spec, struct shmt_flat *out);

/* The table that `at` is in, or in whose padding. */
uint32_t shmt_flat_table(const struct shmt_spec *spec, const struct shmt_flat *flat, uint64_t at);

/* Terms that each chunk of a batch may keep in a list (update/terms.h); 0: none are kept. It decides the order in which gradients
 * are summed, so it follows from batch, chunks and tables alone. Lists pay where parameters of sparse pushes (width 1) are many, and
 * examples of a chunk few: a buffer's lines that many examples touch are shared by them. */
uint32_t shmt_flat_terms(const struct shmt_spec *spec);

/* Whether most floats are in tables of rows (width 2 and more), which take no pushes of single floats: their gradients are taken for
 * dense. */
bool shmt_flat_is_dense(const struct shmt_spec *spec);

/* State words of each float, in planes of flat->n floats. */
static inline uint32_t shmt_flat_planes(const struct shmt_spec *spec) {
    return shmt_rule_planes(&spec->rule, shmt_policy_is_live(&spec->policy));
}

/* The apply phase of `aggregate` on the floats from .. to - 1: the update rule with their gradient sums in grad[0 .. to - from)
 * (NULL: zero). weight and state begin at float 0. Rows that are not regularised are left out of L1 and L2. Runs in any worker;
 * slices must not overlap. */
void shmt_flat_apply(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, float *state, const float *grad,
                     uint64_t from, uint64_t to, const struct shmt_update *u);

/* lamb: sums of squares of the floats from .. to - 1 that a table's norms are of, of weights and of the next update's steps before
 * the rate, one for each line; others count as zeros (rows that are not regularised, tables that are not trained). from and to are at
 * lines; weight, state and grad are as above; nothing else is changed. */
void shmt_flat_squares(const struct shmt_spec *spec, const struct shmt_flat *flat, const float *weight, const float *state,
                       const float *grad, uint64_t from, uint64_t to, const struct shmt_update *u, double *weights_out,
                       double *steps_out);

/* After state was merged (update/merge.h): the weights from .. to - 1 that follow from it, for rules where they do. weight and
 * state (planes `plane` floats apart) begin at float `from`. */
void shmt_flat_follow(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, const float *state,
                      uint64_t plane, uint64_t from, uint64_t to, const struct shmt_update *u);

/* After rows row .. row + n - 1 of table t were set from outside: gives them state that fits. While nobody trains. */
void shmt_flat_begin(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, float *state, int t,
                     uint64_t row, uint64_t n);
