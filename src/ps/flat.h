/* All tables of a store as one flat array of floats, each starting on a line of its own: what gradients are folded and applied
 * over. */
#ifndef SHMT_PS_FLAT_H
#define SHMT_PS_FLAT_H

#include "ps/spec.h"

/* In floats. */
struct shmt_flat {
    uint64_t start[SHMT_MAX_TABLES];
    uint64_t n; /* in all, a multiple of a line */
};
void shmt_flat_plan(const struct shmt_spec *spec, struct shmt_flat *out);

/* The apply phase of `aggregate` on the floats from .. to - 1: the update rule with their gradient sums in grad[0 .. to - from)
 * (NULL: zero), scale = 1 / examples. Rows that are not regularised are left out of L2. Runs in any worker; slices must not
 * overlap. */
void shmt_flat_apply(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, const float *grad,
                     uint64_t from, uint64_t to, float scale, float rate);

#endif
