/* What work takes in virtual time, and what befalls workers there: the text of option sim, and draws from it.
 *
 *     compute=lognormal:10ms:0.3,straggler=3:5x,pull=5us,push=5us,look=50ns
 *     pause=7@2s:1s,death=2@5s
 *     line=80ns,bandwidth=20GB/s,cache=1MiB,nodes=2,far=1.7x,race=100ns
 *     measured
 *
 * compute is a full work item's, or example each of its examples', item what one takes besides, pull and push a call's; aggregate that
 * of adding one gradient of all parameters to another, update that of the rule on all of them, in the modes that aggregate; look that of a
 * look at the clock, an offer of the processor and a wake-up. A cost is a time ("10ms"), or a distribution: lognormal:MEDIAN:SIGMA,
 * exponential:MEAN, uniform:LEAST:MOST.
 * hiccup=EVERY:COST stops a worker for a COST, on average once in so much time that it computes: as interrupts do, and other guests of
 * the machine. Workers that wait for one another pay for those of all.
 *
 * straggler=W:Fx makes all that worker W computes take F times as long. What is not named is as in the text above, but that computing
 * is example=lognormal:1us:0.3, and item, aggregate and update take nothing.
 *
 * pause=W@T:D stops worker W for D when training has gone on for T, death=W@T kills it then; if it has ended by then, nothing is done.
 *
 * The third line is of memory (memory.h), and takes no time where it is not named. race is a cost that passes between the loads and
 * the stores of a racy push, besides what the push's lines take.
 *
 * measured: what a short real run takes is found out (by api/measured.c), and said by shmt_sim_complete in words as the others; words that
 * stand beside it count instead of these. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fibers/memory.h"

enum shmt_cost_shape { SHMT_COST_FIXED, SHMT_COST_LOGNORMAL, SHMT_COST_EXPONENTIAL, SHMT_COST_UNIFORM };

struct shmt_cost {
    enum shmt_cost_shape shape;
    double ns;    /* the time; its median, mean or least */
    double param; /* sigma; most, in nanoseconds */
};

#define SHMT_SIM_TEXT       1024 /* bytes of a text, its end included */
#define SHMT_MAX_STRAGGLERS 16
#define SHMT_MAX_MISHAPS    16 /* pauses, and as many deaths */

/* Worker `worker` is stopped, or dies, when training has gone on for so long. */
struct shmt_mishap {
    uint32_t worker;
    uint64_t at_ns, pause_ns; /* pause_ns is 0: it dies */
};

struct shmt_sim {
    struct shmt_cost compute, pull, push;
    struct shmt_cost example;           /* where nothing was said of compute */
    struct shmt_cost item;              /* besides compute, of each item, whatever its size */
    struct shmt_cost aggregate, update; /* of all parameters */
    double hiccup_every_ns;             /* of computing; 0: there are none */
    struct shmt_cost hiccup;
    struct shmt_cost race; /* up to 64 parameters of a racy push, between loading and storing them */
    struct shmt_memory_costs memory;
    uint64_t look_ns; /* a look at the clock, an offer of the processor, a wake-up */
    uint32_t n_stragglers;
    struct {
        uint32_t worker;
        double times;
    } straggler[SHMT_MAX_STRAGGLERS];
    uint32_t n_pauses, n_deaths;
    struct shmt_mishap pause[SHMT_MAX_MISHAPS], death[SHMT_MAX_MISHAPS];
    bool measured; /* the costs that the text does not name are to be measured */
};

/* What was measured, in nanoseconds; 0: it takes no time, or none that could be told. */
struct shmt_sim_found {
    double example_ns, sigma; /* of an example, where an item is so many of them: the median of items, and how they differ */
    double item_ns;           /* of an item besides its examples */
    double hiccup_every_ns, hiccup_ns; /* of computing between two hiccups, and what one takes, on average */
    double aggregate_ns, update_ns;
    double line_ns, next_ns; /* a cache line from another core, and each further one that is fetched beside it */
    double bandwidth;        /* of all processors together, in bytes a nanosecond */
};

/* `text`, in which measured stands for words of what was found, with these words themselves: a text that shmt_sim_parse takes. False: it
 * does not fit into `out`. */
bool shmt_sim_complete(const char *text, const struct shmt_sim_found *found, char *out, size_t bytes);

/* Where nothing was said of compute: so many examples are a full item. Before draws of it. */
void shmt_sim_settle(struct shmt_sim *sim, uint64_t examples);

/* "" : as nobody has said anything. Errors: _USAGE, with what is wrong and what would be right; the sentence begins with `given_as`. */
int shmt_sim_parse(const char *given_as, const char *text, struct shmt_sim *out, struct shmt_error *e);

/* Errors: _USAGE: there is no such worker, or a node would have none. */
int shmt_sim_check(const struct shmt_sim *costs, const char *given_as, uint32_t n_workers, struct shmt_error *e);

/* Draw number `drawn` of a cost, for somebody (who: a seat, a kind of work), in nanoseconds: a function of these, the same bits on every
 * machine. */
uint64_t shmt_cost_draw(const struct shmt_cost *cost, uint64_t seed, uint64_t who, uint64_t drawn);

/* Whether parameters are touched at a cost, and racy pushes take time between loading and storing. */
bool shmt_sim_touches(const struct shmt_sim *costs);

double shmt_sim_times(const struct shmt_sim *costs, uint32_t worker);
