/* Option race-window: a worker waits between loading parameters and storing them, so that updates are lost as on many cores. Of
 * racy pushes that are counted (counted_priv.h); no other kernel knows of it.
 *
 * In virtual time, where memory takes some (sync/host.h), what such a push takes passes at the same place, with the option and
 * without. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

#define SHMT_RACE_FLOATS  64 /* parameters that a push loads, at most, before it waits and stores them: most of an example */
#define SHMT_RACE_MOST_NS UINT64_C(1000000000)

/* One worker thread's; private to it. */
struct shmt_race {
    uint64_t window_ns;                   /* of one wait, at most SHMT_RACE_MOST_NS; 0: virtual time alone */
    double share;                         /* of the pushes that wait, 0 to 1, by chance */
    uint64_t seed, drawn;                 /* of this thread; how often chance was asked */
    const _Atomic uint32_t *abort, *stop; /* nonzero: nobody waits any more */
};

/* Lets the time pass that the host takes for what was touched, and waits for the window, or not, as chance has it. Times that a sleep can
 * measure are slept, shorter ones are spun. */
void shmt_race_wait(struct shmt_race *race);
