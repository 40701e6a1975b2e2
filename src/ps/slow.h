/* Workers that are slowed down on purpose, to see what stragglers do to a run: by a factor, by a time for each work item,
 * or by chance. They really wait: the worker sleeps after its work, which takes no processor from others. Work is what
 * the seat's meter says (ps/meter.h): computing, pushing, folding and updating; not waiting, merging or evaluating, and not what
 * was slept here.
 *
 * The plan is one for all, made before workers exist (configuration/slow.c); the worker that enters a session gives it a struct
 * shmt_slow of its own (train/job.c). The session sleeps before what it pushes counts: before dense pushes, and at the clock. */
#pragma once

#include <shmtrain/session.h>
#include <stdbool.h>

#include "base/atomic.h"

#define SHMT_SLOW_MOST   64
#define SHMT_SLOW_CHANCE UINT32_MAX /* in the place of a worker: any, by chance */

struct shmt_slow_entry {
    uint32_t worker;  /* or SHMT_SLOW_CHANCE */
    double share;     /* of the work items that it concerns, 0 to 1; of a worker: 1 */
    double factor;    /* an item takes so many times its time, from 1 on, */
    uint64_t more_ns; /* and so much more */
};

/* Constant while workers run. */
struct shmt_slow_plan {
    uint32_t n;
    uint64_t seed;
    struct shmt_slow_entry entry[SHMT_SLOW_MOST];
};

/* Whether any item of the worker may be slowed down. */
bool shmt_slow_concerns(const struct shmt_slow_plan *plan, uint32_t worker);

/* What the plan makes of one item: a pure function of the plan, the worker, and the item's epoch and first place. Factors
 * multiply, times add up. */
void shmt_slow_of_item(const struct shmt_slow_plan *plan, uint32_t worker, const struct shmtrain_work *work, double *factor_out,
                       uint64_t *more_ns_out);

/* One thread's; private to it. */
struct shmt_slow {
    const struct shmt_slow_plan *plan;
    const _Atomic uint32_t *abort, *stop; /* nonzero: no time is to be lost any more */
    uint32_t worker;
    const _Atomic uint64_t *busy_ns; /* the counter of the seat's meter that work goes to */
    double factor;                   /* of the item in hand, or between two of the last one; at first 1 */
    uint64_t more_ns;                /* of it, not asked for yet */
    uint64_t since_ns;               /* so much of busy_ns has been asked for, or was slept */
    double debt_ns; /* time to be lost; below 0: more was lost than should have been, because sleeps end late */
};

/* An item was handed out. What was done since the last call, folding and updating, belongs to the item before; it is paid with
 * this one. */
void shmt_slow_begin(struct shmt_slow *slow, const struct shmtrain_work *work);

/* Adds the time that the item's factor makes of the work since the last call, and the item's own time, and sleeps that long. Ends
 * soon when the abort or stop word is set. Times too short for a sleep are kept and added to later ones. */
void shmt_slow_pay(struct shmt_slow *slow);
