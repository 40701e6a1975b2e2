/* What it costs to wait for one another: the library's meetings and clocks (sync/gate.h, as its workers use them), a
 * process-shared pthread_barrier, and the two plain barriers that one writes first: a counter, and FUTEX_WAKE of all by the last
 * one, or sched_yield until it has come. With two workers on two cores the floor is a cache line's way to the other core and
 * back; with more workers than cores it is the plain barrier that sleeps. */
#pragma once

#include <stdint.h>

enum { SHMT_MOST_IN_HALL = 8, SHMT_LATE_MS = 50 };
enum shmt_barrier {
    SHMT_BARRIER_LINE,
    SHMT_BARRIER_MEETING,
    SHMT_BARRIER_CLOCK,
    SHMT_BARRIER_PTHREAD,
    SHMT_BARRIER_PLAIN,
    SHMT_BARRIER_YIELD,
    SHMT_BARRIERS
};

struct shmt_barriers {
    double ns[SHMT_BARRIERS]; /* of one barrier: the median of the matches. The line's only with two workers */
    double late_ns;           /* the processor time of all who wait for one that comes SHMT_LATE_MS late */
};

/* Once: `matches` (odd; 0 .. 99) of `n_barriers` barriers right behind one another, all kinds in turn, by n workers (2 ..
 * SHMT_MOST_IN_HALL) in processes: two are bound to a core each, more to the first two cores together. */
void shmt_barriers_run(uint32_t n, uint32_t n_barriers, uint32_t matches, struct shmt_barriers *out);
