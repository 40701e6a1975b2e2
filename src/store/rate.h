/* The learning rate over time: a pure function, the same bits for all workers, backends and machines. */
#ifndef SHMT_STORE_RATE_H
#define SHMT_STORE_RATE_H

enum { SHMT_RATE_CONSTANT, SHMT_RATE_INVERSE };

/* Constant: base. Inverse scaling: base / (1 + t)^power after t epochs; power 0.5 is what theory has for convex losses, 1
 * for strongly convex ones. */
struct shmt_rate {
    float base;
    int kind;
    float power; /* 0 .. SHMT_RATE_MAX_POWER; not looked at when constant */
};

#define SHMT_RATE_MAX_POWER 16.0f

/* The rate after `epochs_done` epochs (>= 0, fractions count). */
float shmt_rate_at(const struct shmt_rate *rate, double epochs_done);

#endif
