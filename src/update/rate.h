/* The learning rate over time: a pure function, the same bits for all workers, backends and machines. */
#pragma once

#include <stdbool.h>

/* Their numbers stand in named stores: new ones come last. */
enum { SHMT_RATE_CONSTANT, SHMT_RATE_INVERSE, SHMT_RATE_STEP, SHMT_RATE_COSINE, SHMT_RATE_ONE_CYCLE };

/* After t epochs of `epochs`:
 *
 *     constant   base
 *     inverse    base / (1 + t / every)^power       power 0.5 is what theory has for convex losses, 1 for strongly convex ones
 *     step       base * factor^floor(t / every)
 *     cosine     base * (1 + cos(pi t / epochs)) / 2       Loshchilov & Hutter 2017, without restarts
 *     one-cycle  half a cosine up from base / 25 to base, at 0.3 epochs, and one down to base / 250,000 at the end
 *                                                   Smith & Topin 2018; the rates of PyTorch's OneCycleLR, which
 *                                                   cycles momentum as well unless told not to
 *
 * times t / warmup as long as t < warmup (Goyal et al. 2017). */
struct shmt_rate {
    float base;
    int kind;
    float power;          /* inverse: 0 .. SHMT_RATE_MAX_POWER */
    double every, factor; /* inverse, step: epochs, > 0; step: 0 .. 1 */
    double warmup;        /* epochs, 0: none */
    double epochs;        /* of the run; cosine, one-cycle */
};

#define SHMT_RATE_MAX_POWER 16.0f

/* Whether it comes down to about 0 at the end of the run, whose length it goes by. */
static inline bool shmt_rate_goes_by_the_run(const struct shmt_rate *rate) {
    return rate->kind == SHMT_RATE_COSINE || rate->kind == SHMT_RATE_ONE_CYCLE;
}

const char *shmt_rate_name(const struct shmt_rate *rate);

/* The rate after `epochs_done` epochs (>= 0, fractions count). */
float shmt_rate_at(const struct shmt_rate *rate, double epochs_done);
