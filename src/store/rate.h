/* The learning rate over time: a pure function, the same bits for all workers, backends and machines. */
#ifndef SHMT_STORE_RATE_H
#define SHMT_STORE_RATE_H

enum { SHMT_RATE_CONSTANT, SHMT_RATE_INVERSE, SHMT_RATE_STEP, SHMT_RATE_COSINE };

/* After t epochs of `epochs`:
 *
 *     constant   base
 *     inverse    base / (1 + t / every)^power       power 0.5 is what theory has for convex losses, 1 for strongly convex ones
 *     step       base * factor^floor(t / every)
 *     cosine     base * (1 + cos(pi t / epochs)) / 2       Loshchilov & Hutter 2017, without restarts
 *
 * times t / warmup as long as t < warmup (Goyal et al. 2017). */
struct shmt_rate {
    float base;
    int kind;
    float power;          /* inverse: 0 .. SHMT_RATE_MAX_POWER */
    double every, factor; /* inverse, step: epochs, > 0; step: 0 .. 1 */
    double warmup;        /* epochs, 0: none */
    double epochs;        /* of the run; cosine */
};

#define SHMT_RATE_MAX_POWER 16.0f

const char *shmt_rate_name(const struct shmt_rate *rate);

/* The rate after `epochs_done` epochs (>= 0, fractions count). */
float shmt_rate_at(const struct shmt_rate *rate, double epochs_done);

#endif
