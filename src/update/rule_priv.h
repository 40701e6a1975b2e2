/* What one push, or one update in `aggregate`, does to up to SHMT_WIDTH parameters and their state: the arithmetic of the rules
 * of rule.h, as templates. Where the words come from and how they are put back is the business of push_priv.h and apply.c.
 *
 * The operations and their order are those of kernels.h, so that plain loops can check every bit. Lanes that hold no
 * parameter are computed along and never stored. */
#pragma once

#include <float.h>
#include <math.h>

#include "update/row_priv.h"

/* Parameters that are computed at a time: pushes load and store them one by one and take four; apply.c has its own number. */
#ifndef SHMT_WIDTH
#    define SHMT_WIDTH 4
#endif

typedef float shmt_lanes __attribute__((vector_size(4 * SHMT_WIDTH)));
typedef int32_t shmt_masks __attribute__((vector_size(4 * SHMT_WIDTH)));

/* What an example, or a dense gradient, pushes with. */
struct shmt_step {
    float slope; /* sgd: rate * slope; other rules and aggregate: the slope */
    float shrink,
        decay;  /* sgd, momentum, nesterov, where regularised: l1 and l2 times the rate that the steps of a gradient sum to */
    float most; /* of a gradient's size, for sgd times the rate; INFINITY: any */
    struct shmt_update u;
};

SHMT_INLINE struct shmt_step shmt_step_of(float slope, const struct shmt_update *u, struct shmt_how how) {
    const bool rated = shmt_how_live(how) && shmt_how_rule(how) == SHMT_RULE_SGD;
    const bool gathers = shmt_how_rule(how) == SHMT_RULE_MOMENTUM || shmt_how_rule(how) == SHMT_RULE_NESTEROV;
    const float summed = gathers ? u->rate / (1 - u->momentum) : u->rate;
    const float most = shmt_how_rule(how) == SHMT_RULE_SGD ? u->rate * u->clip : u->clip;
    return (struct shmt_step){.slope = rated ? u->rate * slope : slope,
                              .shrink = how.regularised ? summed * u->l1 : 0,
                              .decay = how.regularised ? summed * u->l2 : 0,
                              .most = how.clips && u->clip > 0 ? most : INFINITY,
                              .u = *u};
}

/* The same for a row that is not regularised. */
SHMT_INLINE struct shmt_step shmt_step_unruled(struct shmt_step step) {
    step.shrink = step.decay = 0;
    shmt_update_unrule(&step.u);
    return step;
}

/* SHMT_WIDTH parameters: weights and state words. */
struct shmt_cells {
    shmt_lanes w, word0, word1, word2, word3;
};

/* State words of a rule in the live modes: what shmt_rule_planes says, for the compiler. */
SHMT_INLINE uint32_t shmt_how_planes(struct shmt_how how) {
    switch (shmt_how_rule(how)) {
        case SHMT_RULE_SGD:
            return 0;
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
        case SHMT_RULE_LAMB:
            return 4;
        case SHMT_RULE_FTRL:
        case SHMT_RULE_ADADELTA:
            return 2;
        default:
            return 1;
    }
}

#if SHMT_WIDTH == 8
SHMT_INLINE shmt_lanes shmt_all(float x) { return (shmt_lanes){x, x, x, x, x, x, x, x}; }
SHMT_INLINE shmt_lanes shmt_roots(shmt_lanes x) { return (shmt_lanes)_mm256_sqrt_ps((__m256)x); }
#else
SHMT_INLINE shmt_lanes shmt_all(float x) { return (shmt_lanes){x, x, x, x}; }
SHMT_INLINE shmt_lanes shmt_roots(shmt_lanes x) { return (shmt_lanes){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])}; }
#endif

SHMT_INLINE shmt_lanes shmt_sizes(shmt_lanes x) { return (shmt_lanes)((shmt_masks)x & INT32_MAX); }

/* Averages of gradients that have become zero come down to numbers below FLT_MIN and stay there, and arithmetic with these
 * is many times slower: they count as 0. */
SHMT_INLINE shmt_lanes shmt_normal(shmt_lanes x) {
    return (shmt_lanes)((shmt_masks)x & ~(shmt_masks)(shmt_sizes(x) < FLT_MIN));
}

/* sign(g) min(|g|, most). What is no number stays none. */
SHMT_INLINE shmt_lanes shmt_clipped(shmt_lanes g, const struct shmt_step *s, struct shmt_how how) {
    if (!how.clips || !(s->most < INFINITY)) return g;
    const shmt_masks over = (shmt_masks)(shmt_sizes(g) > s->most), sign = (shmt_masks)g & INT32_MIN;
    return (shmt_lanes)((((shmt_masks)shmt_all(s->most) | sign) & over) | ((shmt_masks)g & ~over));
}

/* sign(x) max(|x| - t, 0). What is no number stays none, so that guards find it. */
SHMT_INLINE shmt_lanes shmt_shrunk(shmt_lanes x, shmt_lanes t) {
    const shmt_masks sign = (shmt_masks)x & INT32_MIN;
    const shmt_lanes size = shmt_sizes(x) - t;
    const shmt_masks kept = ~(shmt_masks)(size <= 0);
    return (shmt_lanes)(((shmt_masks)size | sign) & kept);
}

SHMT_INLINE shmt_lanes shmt_proximal(shmt_lanes w, shmt_lanes a, shmt_lanes t, shmt_lanes d, bool l1, struct shmt_how how) {
    if (!how.regularised) return w - a;
    return l1 ? shmt_shrunk(w - a, t) / (1 + d) : w - (a + d * w) / (1 + d);
}

/* The weight after state words have changed: rates are the same for all parameters, or each has its own (adagrad, adam). */
SHMT_INLINE shmt_lanes shmt_stepped(shmt_lanes w, shmt_lanes a, shmt_lanes share, const struct shmt_step *s,
                                    struct shmt_how how) {
    return shmt_proximal(w, a, s->shrink * share, s->decay * share, s->u.l1 > 0, how);
}

SHMT_INLINE shmt_lanes shmt_momentum(shmt_lanes velocity, shmt_lanes g, const struct shmt_step *s) {
    return shmt_normal(s->u.momentum * velocity + g);
}

SHMT_INLINE shmt_lanes shmt_squares(shmt_lanes squares, shmt_lanes g) { return squares + g * g; }

/* nesterov's step: where the velocity will lead, one gradient ahead. */
SHMT_INLINE shmt_lanes shmt_nesterov(shmt_lanes velocity, shmt_lanes g, const struct shmt_step *s) {
    return s->u.rate * (g + s->u.momentum * velocity);
}

/* A mean of squares that forgets by rho. */
SHMT_INLINE shmt_lanes shmt_mean_square(shmt_lanes mean, shmt_lanes x, const struct shmt_step *s) {
    return shmt_normal(mean + (1 - s->u.rho) * (x * x - mean));
}

/* adagrad and rmsprop: by the root of what the squares have come to. */
SHMT_INLINE shmt_lanes shmt_rooted(shmt_lanes w, shmt_lanes squares, shmt_lanes g, shmt_lanes share, const struct shmt_step *s,
                                   struct shmt_how how) {
    const shmt_lanes own = s->u.rate / (shmt_roots(squares) + s->u.epsilon);
    const shmt_lanes rate = (shmt_lanes)((shmt_masks)own & (shmt_masks)(squares != 0));
    return shmt_proximal(w, rate * g, rate * s->u.l1 * share, rate * s->u.l2 * share, s->u.l1 > 0, how);
}

/* adadelta: its steps' root mean square by that of the gradients. */
SHMT_INLINE shmt_lanes shmt_adadelta_ratio(shmt_lanes steps, shmt_lanes squares, const struct shmt_step *s) {
    return shmt_roots(steps + s->u.epsilon) / shmt_roots(squares + s->u.epsilon);
}

SHMT_INLINE shmt_lanes shmt_adadelta_weight(shmt_lanes w, shmt_lanes ratio, shmt_lanes squares, shmt_lanes g, shmt_lanes share,
                                            const struct shmt_step *s, struct shmt_how how) {
    const shmt_lanes rate = (shmt_lanes)((shmt_masks)(s->u.rate * ratio) & (shmt_masks)(squares != 0));
    return shmt_proximal(w, rate * g, rate * s->u.l1 * share, rate * s->u.l2 * share, s->u.l1 > 0, how);
}

SHMT_INLINE struct shmt_cells shmt_adadelta(struct shmt_cells c, shmt_lanes g, shmt_lanes share, const struct shmt_step *s,
                                            struct shmt_how how) {
    c.word0 = shmt_mean_square(c.word0, g, s);
    const shmt_lanes ratio = shmt_adadelta_ratio(c.word1, c.word0, s);
    c.word1 = shmt_mean_square(c.word1, ratio * g, s);
    c.w = shmt_adadelta_weight(c.w, ratio, c.word0, g, share, s, how);
    return c;
}

SHMT_INLINE struct shmt_cells shmt_adam_averages(struct shmt_cells c, shmt_lanes g, const struct shmt_step *s) {
    c.word0 = shmt_normal(c.word0 + (1 - s->u.momentum) * (g - c.word0));
    c.word1 = shmt_normal(c.word1 + (1 - s->u.beta2) * (g * g - c.word1));
    return c;
}

/* In the live modes each parameter corrects its averages by its own count k of updates: words 2 and 3 are 1 - b1^k and
 * 1 - b2^k. */
SHMT_INLINE struct shmt_cells shmt_adam_corrections(struct shmt_cells c, const struct shmt_step *s) {
    c.word2 = s->u.momentum * c.word2 + (1 - s->u.momentum);
    c.word3 = s->u.beta2 * c.word3 + (1 - s->u.beta2);
    return c;
}

/* adamw, lamb: what is taken of a weight by itself, whatever its gradients are. Never more than all of it. */
SHMT_INLINE shmt_lanes shmt_decayed(shmt_lanes w, shmt_lanes share, const struct shmt_step *s, struct shmt_how how) {
    if ((shmt_how_rule(how) != SHMT_RULE_ADAMW && shmt_how_rule(how) != SHMT_RULE_LAMB) || !how.regularised) return w;
    const shmt_lanes d = s->u.rate * s->u.weight_decay * share;
    const shmt_masks all = (shmt_masks)(d > 1);
    return w - (shmt_lanes)(((shmt_masks)shmt_all(1) & all) | ((shmt_masks)d & ~all)) * w;
}

SHMT_INLINE struct shmt_cells shmt_adam_weight(struct shmt_cells c, shmt_lanes share, const struct shmt_step *s,
                                               struct shmt_how how) {
    const shmt_lanes own = s->u.rate / (shmt_roots(c.word1 / c.word3) + s->u.epsilon);
    const shmt_lanes rate = (shmt_lanes)((shmt_masks)own & (shmt_masks)(c.word1 != 0));
    c.w = shmt_decayed(c.w, share, s, how);
    c.w = shmt_proximal(c.w, rate * (c.word0 / c.word2), rate * s->u.l1 * share, rate * s->u.l2 * share, s->u.l1 > 0, how);
    return c;
}

/* Without beta and L2 nothing holds a parameter that has had no gradient: its w is no function of z, and stays. */
SHMT_INLINE struct shmt_cells shmt_ftrl(struct shmt_cells c, shmt_lanes g, const struct shmt_step *s) {
    const shmt_lanes after = shmt_squares(c.word1, g), root = shmt_roots(after);
    c.word0 += g - (root - shmt_roots(c.word1)) / s->u.rate * c.w;
    c.word1 = after;
    const shmt_lanes hold = (s->u.beta + root) / s->u.rate + s->u.l2;
    const shmt_masks held = (shmt_masks)(hold != 0);
    const shmt_lanes solved = 0 - shmt_shrunk(c.word0, shmt_all(s->u.l1)) / hold;
    c.w = (shmt_lanes)(((shmt_masks)solved & held) | ((shmt_masks)c.w & ~held));
    return c;
}

/* One push in the live modes. g: the gradient, for sgd rate * gradient; share: as in span.h. */
SHMT_INLINE struct shmt_cells shmt_rule_step(struct shmt_cells c, shmt_lanes g, shmt_lanes share, const struct shmt_step *s,
                                             struct shmt_how how) {
    g = shmt_clipped(g, s, how);
    switch (shmt_how_rule(how)) {
        case SHMT_RULE_MOMENTUM:
            c.word0 = shmt_momentum(c.word0, g, s);
            c.w = shmt_stepped(c.w, s->u.rate * c.word0, share, s, how);
            return c;
        case SHMT_RULE_NESTEROV:
            c.word0 = shmt_momentum(c.word0, g, s);
            c.w = shmt_stepped(c.w, shmt_nesterov(c.word0, g, s), share, s, how);
            return c;
        case SHMT_RULE_ADAGRAD:
            c.word0 = shmt_squares(c.word0, g);
            c.w = shmt_rooted(c.w, c.word0, g, share, s, how);
            return c;
        case SHMT_RULE_RMSPROP:
            c.word0 = shmt_mean_square(c.word0, g, s);
            c.w = shmt_rooted(c.w, c.word0, g, share, s, how);
            return c;
        case SHMT_RULE_ADADELTA:
            return shmt_adadelta(c, g, share, s, how);
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
            c = shmt_adam_corrections(shmt_adam_averages(c, g, s), s);
            return shmt_adam_weight(c, share, s, how);
        case SHMT_RULE_FTRL:
            return shmt_ftrl(c, g, s);
        default:
            c.w = shmt_stepped(c.w, g, share, s, how);
            return c;
    }
}
