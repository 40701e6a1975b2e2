/* Norms that an update needs before any of it is applied. clip-norm: of the gradient over all tables that are trained; an update whose
 * mean gradient has a larger one is scaled down to it, as torch.nn.utils.clip_grad_norm_ does (L1, L2 and weight decay are steps of
 * their own and no part of it). In live modes, where no gradient of all tables ever is, each push is clipped by itself. lamb: of the
 * weights and of the step of each table (You et al. 2020; update/rule.h).
 *
 * Squares are added up in double, line by line of the flat array, and the lines' sums in order: so the bits depend neither on who
 * adds which lines, nor on the zeros that stand between tables. Called by backends in `aggregate`, before anything is applied. */
#pragma once

#include "ps/flat.h"

/* Parts are of SHMT_NORM_FLOATS: tables begin on lines, and so do slices. */

/* How many sums of squares each part has: the gradient's, or the weights' and the steps'; 0: the run asks for none. */
static inline uint64_t shmt_norm_sums(const struct shmt_spec *spec) {
    return shmt_rule_needs_norms((enum shmt_rule_kind)spec->rule.kind) ? 2 : spec->rule.clip_norm > 0 ? 1 : 0;
}

/* Doubles that they are kept in, sum by sum. */
static inline uint64_t shmt_norm_parts(const struct shmt_spec *spec, const struct shmt_flat *flat) {
    return shmt_norm_sums(spec) * (flat->n / SHMT_NORM_FLOATS);
}

/* What an update points to. */
struct shmt_norms {
    float trust[SHMT_MAX_TABLES]; /* lamb: of each table, |w| / |u| as rule.h bounds it */
};

/* The sum of the squares of grad (n). */
double shmt_norm_square(const float *grad, uint64_t n);

/* The squares of grad (n, whole parts; NULL: zeros), part by part, into out. */
void shmt_norm_squares(const float *grad, uint64_t n, double *out);

/* All sums of the floats from .. to - 1 (whole parts, of the update u), into `part`, which begins at float 0. weight and state begin
 * there, too, and grad, as in shmt_flat_apply, at `from`. Changes nothing else, so that it may be done again. */
void shmt_norm_measure(const struct shmt_spec *spec, const struct shmt_flat *flat, const float *weight, const float *state,
                       const float *grad, uint64_t from, uint64_t to, const struct shmt_update *u, double *part);

/* Their sum over the parts of tables that are trained, in order. */
double shmt_norm_sum(const struct shmt_spec *spec, const struct shmt_flat *flat, const double *part);

/* The clip_factor of an update whose gradient's sum has these squares, its mean being `scale` times that. 0 where the norm has no bound,
 * or is too large for any float: an element that is infinite becomes no number then, as with torch, and the run's guards find it. */
float shmt_norm_clip_factor(const struct shmt_spec *spec, double squares, float scale);

/* When all is measured: sets u->clip_factor or u->trust of an update whose scale is set; `norms` is where that points to. */
void shmt_norm_take(const struct shmt_spec *spec, const struct shmt_flat *flat, const double *part, struct shmt_norms *norms,
                    struct shmt_update *u);
