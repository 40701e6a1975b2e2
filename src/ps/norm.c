/* Norms of gradients, weights and steps: see norm.h. */
#include "ps/norm.h"

#include <math.h>
#include <string.h>

#define LEAST 1e-6 /* added to the norm before it divides, as torch has it */

double shmt_norm_square(const float *grad, uint64_t n) {
    const uint64_t whole = n - n % SHMT_NORM_FLOATS;
    double sum = 0;
    for (uint64_t i = 0; i < whole; i += SHMT_NORM_FLOATS) sum += shmt_squares_of_line(grad + i);
    for (uint64_t i = whole; i < n; i++) sum += (double)grad[i] * (double)grad[i];
    return sum;
}

void shmt_norm_squares(const float *grad, uint64_t n, double *out) {
    if (!grad) memset(out, 0, n / SHMT_NORM_FLOATS * sizeof *out);
    for (uint64_t i = 0; grad && i < n; i += SHMT_NORM_FLOATS) *out++ = shmt_squares_of_line(grad + i);
}

void shmt_norm_measure(const struct shmt_spec *spec, const struct shmt_flat *flat, const float *weight, const float *state,
                       const float *grad, uint64_t from, uint64_t to, const struct shmt_update *u, double *part) {
    double *const weights = part + from / SHMT_NORM_FLOATS, *const steps = weights + flat->n / SHMT_NORM_FLOATS;
    if (shmt_rule_needs_norms((enum shmt_rule_kind)spec->rule.kind))
        shmt_flat_squares(spec, flat, weight, state, grad, from, to, u, weights, steps);
    else
        shmt_norm_squares(grad, to - from, weights);
}

static double sum_of_table(const struct shmt_spec *spec, const struct shmt_flat *flat, uint32_t t, double sum,
                           const double *part) {
    const uint64_t from = flat->start[t], to = from + shmt_table_floats(&spec->table[t]);
    for (uint64_t i = from / SHMT_NORM_FLOATS; i < shmt_ceil_div(to, SHMT_NORM_FLOATS); i++) sum += part[i];
    return sum;
}

double shmt_norm_sum(const struct shmt_spec *spec, const struct shmt_flat *flat, const double *part) {
    double sum = 0;
    for (uint32_t t = 0; t < spec->n_tables; t++)
        if (spec->tuning[t].role == SHMTRAIN_TRAINED) sum = sum_of_table(spec, flat, t, sum, part);
    return sum;
}

/* A norm that is no number limits nothing: the gradient has one that is none, and guards shall find it. */
float shmt_norm_clip_factor(const struct shmt_spec *spec, double squares, float scale) {
    const double most = (double)spec->rule.clip_norm, norm = sqrt(squares) * (double)scale;
    return (float)fmin(1, most / (norm + LEAST));
}

/* A table of zeros begins to move as with adam, and one that shall not move rests. What is no number is no ratio, and guards find it. */
static float trust_of(double weights, double steps) {
    const bool known = weights > 0 && steps > 0 && isfinite(weights) && isfinite(steps);
    return known ? (float)fmin(sqrt(weights) / sqrt(steps), SHMT_MOST_TRUST) : 1;
}

void shmt_norm_take(const struct shmt_spec *spec, const struct shmt_flat *flat, const double *part, struct shmt_norms *norms,
                    struct shmt_update *u) {
    const double *const of_steps = part + flat->n / SHMT_NORM_FLOATS;
    if (!shmt_rule_needs_norms((enum shmt_rule_kind)spec->rule.kind)) {
        u->clip_factor = shmt_norm_clip_factor(spec, shmt_norm_sum(spec, flat, part), u->scale);
        return;
    }
    for (uint32_t t = 0; t < spec->n_tables; t++)
        norms->trust[t] = trust_of(sum_of_table(spec, flat, t, 0, part), sum_of_table(spec, flat, t, 0, of_steps));
    u->trust = norms->trust;
}
