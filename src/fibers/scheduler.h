/* Fibers: n functions on one thread, each with a clock of its own, in virtual nanoseconds.
 *
 * A fiber runs until it asks the host (sync/host.h) for something. What it asks for takes virtual time: a look at the clock and
 * an offer of the processor some nanoseconds, a sleep as long as it says, work what the simulated costs say (sim.h). Then
 * whoever is the furthest behind goes on; among fibers of the same time the seed chooses. So all that happens, happens in the
 * order of virtual time, and the same seed gives the same run, on every machine. Nothing preempts a fiber: what stands between
 * two questions is one step for all others.
 *
 * Waits on a word are queues of the scheduler. A wait ends by a wake of its word, in the order in which they came, or when its
 * time is over.
 *
 * A fiber may die: killed from outside, where it stands at a question; by its own call; or as the simulated mishaps say. Nothing
 * more of it runs then, its stack is empty, and what it had allocated (base/own.h) is freed, but for what it shares with others. It
 * may be begun again, on the same stack. One that pauses goes on later by so much: sleeps and waits not before the pause is over,
 * and what it was computing takes so much longer.
 *
 * Called by runtime/fibers.c. One thread makes, runs and frees it; while it does, this thread is answered by the fibers' host,
 * inside of fibers and outside, and all other threads by the machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fibers/sim.h"
#include "sync/host.h"

struct shmt_fibers;

struct shmt_fibers_spec {
    uint32_t n; /* 1 or more */
    uint64_t seed;
    uint64_t begin_ns;  /* where the virtual clock begins */
    size_t stack_bytes; /* of each */
    struct shmt_sim sim;
    void (*body)(void *arg, uint32_t i);
    bool (*died)(void *arg, uint32_t i); /* outside of fibers. True: it begins again. NULL: never */
    void *arg;
};

#define SHMT_FIBER_STACK (UINT64_C(256) << 10) /* reserved; what is not touched takes no memory */

/* Errors: _MEMORY, with everything undone. */
int shmt_fibers_make(const struct shmt_fibers_spec *spec, struct shmt_fibers **out, struct shmt_error *e);

/* Runs them for so many events: a fiber that goes on is one. True when all have ended. Not from within one. */
bool shmt_fibers_run(struct shmt_fibers *f, uint64_t most_events);

/* Kills one, if it has not ended. Not from within one. */
void shmt_fibers_kill(struct shmt_fibers *f, uint32_t i);

/* The fiber that asks dies. */
_Noreturn void shmt_fiber_die(void);

/* All have ended, or none was run. */
void shmt_fibers_free(struct shmt_fibers *f);

/* Whether a fiber of this thread asks, and which one. */
bool shmt_fiber_asks(uint32_t *which_out);

/* The virtual time, which is that of the fiber that is the furthest behind; events so far. */
uint64_t shmt_fibers_now_ns(const struct shmt_fibers *f);
uint64_t shmt_fibers_events(const struct shmt_fibers *f);
