/* The host: what workers ask of the machine besides memory. Time, sleep, the turn of others, and waiting on a word go through one
 * table, so that another host can answer in the machine's place: fibers, say, under a scheduler with a clock of its own.
 *
 * Workers, their supervisor and the thread that drives the run ask the host from the run's beginning to its end, because they
 * compare times with one another. Rooms below this one, the measurements of the machine and the program's display ask the machine
 * itself. So does everything that waits for a descriptor (a pipe, a process) and, in the application's thread, for a snapshot
 * (watching/snapshots.c). tests/check_layers refuses the calls that waiting workers would use in all other rooms. The one
 * instruction of base/relax.h is no question.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

/* Called by any thread of a worker, or of the caller's process; none fails. In each of them, `now_ns` included, other workers
 * may run and time may pass. In `now_ns` time must pass, because callers spin until a given time. */
struct shmt_host_ops {
    uint64_t (*now_ns)(void);            /* never less than before, the same for all workers of a run */
    void (*sleep_until)(uint64_t at_ns); /* of the clock above; may return early */
    void (*yield)(void);                 /* lets other threads run */
    /* Sleeps while *word is `expected`, for at most `at_most_ns`. Returns for any reason (woken, another value, time over, a
     * signal): the caller looks again at what it waits for. Comparing and falling asleep are one step for `wake`. */
    void (*wait)(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns);
    void (*wake)(_Atomic uint32_t *word); /* all that sleep on *word, in any process, at any address */
};

extern const struct shmt_host_ops SHMT_HOST_MACHINE;

/* Who answers: the machine, if nobody else was chosen. */
extern const struct shmt_host_ops *shmt_host;

/* Before any worker begins, and again after the last one's end. Workers' processes inherit it. */
static inline void shmt_host_use(const struct shmt_host_ops *host) { shmt_host = host; }

static inline uint64_t shmt_now_ns(void) { return shmt_host->now_ns(); }

static inline void shmt_sleep_ns(uint64_t ns) { shmt_host->sleep_until(shmt_host->now_ns() + ns); }
