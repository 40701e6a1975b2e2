/* What the stages of a run's steps take, from the events of its seats (ps/trace.h): for those who want numbers of a run that has ended,
 * and not a file. */
#pragma once

#include <stdint.h>

struct shmt_run;

/* Of one seat. Steps are batches in `sync`, else items; those that the events have whole. */
struct shmt_stage_times {
    uint64_t steps; /* 0: there are none, and the rest is 0 */
    double sigma;   /* of the logarithm of what pulling, computing and pushing of a step take, by its middle two thirds */
    double
        hiccup_every_ns; /* of steps without what takes them far longer than usual, between two such times; 0: there were too few */
    double hiccup_ns;    /* what one takes, on average */
    double aggregate_ns; /* of a step that has an update: adding up its gradients, and */
    double update_ns;    /* applying the rule; 0: no step has one */
};

/* Of a run that has kept events (shmt_run.keeps_events, or a trace), when its workers have ended. Errors: _MEMORY. */
int shmt_stage_times_take(const struct shmt_run *run, uint32_t seat, struct shmt_stage_times *out);

/* Of steps of `examples` examples each: what stops a worker now and then, as interrupts do. Steps that take more than 1.3 times as long
 * as the middle one (or four sigmas more, where that is longer) are taken for stopped ones. x: (n) logarithms of nanoseconds an
 * example, ascending. 0 and 0 where there are fewer than four. */
void shmt_stage_find_hiccups(const double *x, uint64_t n, double examples, double sigma, double *every_ns_out, double *ns_out);
