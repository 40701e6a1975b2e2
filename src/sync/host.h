/* The host: what workers ask of the machine besides memory. Time, sleep, the turn of others, and waiting on a word go through one
 * table, so that another host can answer in the machine's place: fibers, say, under a scheduler with a clock of its own.
 *
 * Workers, their supervisor and the thread that drives the run ask the host from the run's beginning to its end, because they
 * compare times with one another. Rooms below this one, the measurements of the machine and the program's display ask the machine
 * itself. So does everything that waits for a descriptor (a pipe, a process) and, in the application's thread, for a snapshot
 * (watching/snapshots.c). tests/check_layers refuses the calls that waiting workers would use in all other rooms.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/relax.h"

enum shmt_spent {
    SHMT_SPENT_ITEM,      /* an item begins, and its computing will take `times` as much as a full one's */
    SHMT_SPENT_COMPUTING, /* of the item's computing the share `times` is done; 1: all that is left */
    SHMT_SPENT_PULLING,   /* so many pulls */
    SHMT_SPENT_PUSHING,
    SHMT_SPENT_ADDING,   /* so many gradients of all parameters were added to others */
    SHMT_SPENT_UPDATING, /* the rule was applied to the share `times` of all parameters */
    SHMT_SPENT_LOOKING,  /* a look at what others do, by who will look again until they have done it */
    SHMT_SPENT_TOUCHING, /* what this worker has touched since it has last paid for that */
    SHMT_SPENT_RACING    /* that, and what else passes between the loads and the stores of a racy push */
};

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
    /* Work that takes time has been done. NULL: it has taken its time itself. */
    void (*spend)(enum shmt_spent what, double times);
    /* The worker reads or writes parameters, bytes (> 0) at `at`. No time passes before it says SHMT_SPENT_TOUCHING or _RACING; what it
     * does in between happens at once. NULL: memory takes its own time. */
    void (*touch)(const void *at, uint64_t bytes, bool writes);
    uint64_t shortest_sleep_ns; /* a shorter one takes longer than it was told to: who wants one spins */
    bool takes_turns;           /* between two calls of the above nobody else runs */
};

extern const struct shmt_host_ops SHMT_HOST_MACHINE;

/* Who answers: the machine, if nobody else was chosen. */
extern const struct shmt_host_ops *_Atomic shmt_host_in_use;

/* Before any worker begins, and again after the last one's end. Workers' processes inherit it. relaxed, both: tables are constants. */
static inline void shmt_host_use(const struct shmt_host_ops *host) { store_relaxed(&shmt_host_in_use, host); }
static inline const struct shmt_host_ops *shmt_host(void) { return load_relaxed(&shmt_host_in_use); }

static inline uint64_t shmt_now_ns(void) { return shmt_host()->now_ns(); }

static inline void shmt_spend(enum shmt_spent what, double times) {
    if (shmt_host()->spend) shmt_host()->spend(what, times);
}

/* Whether it matters what is touched: then who is about to, or has just done so, says what. */
static inline bool shmt_host_touches(void) { return shmt_host()->touch != NULL; }

static inline void shmt_touch(const void *at, uint64_t bytes, bool writes) {
    if (shmt_host()->touch) shmt_host()->touch(at, bytes, writes);
}

/* A word or a few, which are fetched by themselves: paid for at once. */
static inline void shmt_touch_alone(const void *at, uint64_t bytes, bool writes) {
    if (!shmt_host_touches()) return;
    shmt_touch(at, bytes, writes);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* Between two looks of a loop that spins: no question to the host, and nobody else's turn. Where workers take turns the processor is
 * not told, for its pause of a hundred cycles would be most of what a run of fibers takes. */
static inline void shmt_relax(void) {
    if (!shmt_host()->takes_turns) shmt_relax_processor();
}

static inline void shmt_sleep_ns(uint64_t ns) { shmt_host()->sleep_until(shmt_host()->now_ns() + ns); }
