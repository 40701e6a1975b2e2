/* Lines while a run goes on, by steps: option log-every. Called by run.c, on the thread that drives the run. Workers ring when
 * it is about time (ps/session.h), so that lines do not wait for the next tick; what a line says comes from the seats'
 * counters. */
#pragma once

#include <stdint.h>

struct shmt_run;
struct shmt_spec;

/* What the last line said. */
struct shmt_steps {
    uint64_t at_ns; /* 0: before the first one */
    uint64_t step, examples;
    double loss; /* the sum */
};

void shmt_steps_begin(struct shmt_run *run);

/* Tells the listener, and whoever follows the metrics, when so many more steps are done. Epochs that are done were told
 * before. */
void shmt_steps_tick(struct shmt_run *run);

/* Steps of the run that the epochs of the report consist of. */
uint64_t shmt_steps_told(const struct shmt_run *run);

/* After how many work items of its own a seat rings, when a line is due every `every` steps of all; 0: never. */
uint64_t shmt_steps_ring_every(const struct shmt_spec *spec, uint64_t every);
