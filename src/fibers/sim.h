/* What work takes in virtual time, and what befalls workers there: the text of option sim, and draws from it.
 *
 *     compute=lognormal:10ms:0.3,straggler=3:5x,pull=5us,push=5us,look=50ns,pause=7@2s:1s,death=2@5s
 *
 * compute is a full work item's, pull and push a call's, look that of a look at the clock, an offer of the processor and a
 * wake-up. A cost is a time ("10ms"), or a distribution: lognormal:MEDIAN:SIGMA, exponential:MEAN, uniform:LEAST:MOST.
 * straggler=W:Fx makes all that worker W computes take F times as long. pause=W@T:D stops worker W for D when training has gone
 * on for T, and death=W@T kills it then; nothing is done if it has ended by then. What is not named is as in the text above, but
 * nobody pauses or dies, and in place of compute each example takes a microsecond, of which items have a lognormal share with a
 * sigma of 0.3. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum shmt_cost_shape { SHMT_COST_FIXED, SHMT_COST_LOGNORMAL, SHMT_COST_EXPONENTIAL, SHMT_COST_UNIFORM };

struct shmt_cost {
    enum shmt_cost_shape shape;
    double ns;    /* the time; its median, mean or least */
    double param; /* sigma; most, in nanoseconds */
};

#define SHMT_MAX_STRAGGLERS 16
#define SHMT_MAX_MISHAPS    16 /* pauses, and as many deaths */

/* Worker `worker` is stopped, or dies, when training has gone on for so long. */
struct shmt_mishap {
    uint32_t worker;
    uint64_t at_ns, pause_ns; /* pause_ns is 0: it dies */
};

struct shmt_sim {
    struct shmt_cost compute, pull, push;
    uint64_t look_ns; /* a look at the clock, an offer of the processor, a wake-up */
    uint32_t n_stragglers;
    struct {
        uint32_t worker;
        double times;
    } straggler[SHMT_MAX_STRAGGLERS];
    uint32_t n_pauses, n_deaths;
    struct shmt_mishap pause[SHMT_MAX_MISHAPS], death[SHMT_MAX_MISHAPS];
};

/* Where nobody has said what computing takes: so many examples are a full item. Before draws of it. */
void shmt_sim_settle(struct shmt_sim *sim, uint64_t examples);

/* "" : as nobody has said anything. Errors: _USAGE, with what is wrong and what would be right; the sentence begins with `given_as`. */
int shmt_sim_parse(const char *given_as, const char *text, struct shmt_sim *out, struct shmt_error *e);

/* Errors: _USAGE: there is no such worker. */
int shmt_sim_check(const struct shmt_sim *costs, const char *given_as, uint32_t n_workers, struct shmt_error *e);

/* Draw number `drawn` of a cost, for somebody (who: a seat, a kind of work), in nanoseconds: a function of these, the same bits on every
 * machine. */
uint64_t shmt_cost_draw(const struct shmt_cost *cost, uint64_t seed, uint64_t who, uint64_t drawn);

double shmt_sim_times(const struct shmt_sim *costs, uint32_t worker);
