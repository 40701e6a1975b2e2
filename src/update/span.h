/* What kernels run on: where one worker reads the weights of one table and where it writes.
 *
 * A backend fills a span, once per session where parameters stay in place, or once per work item. Kernels inline memory:
 * they know nothing of processes, modes or policies. In the live modes sink == weight, the live rows, and a push is an
 * update. In `aggregate` sink is a gradient buffer that no other worker writes, weight is not written before all have met,
 * and the update comes later (shmt_rule_apply in rule.h).
 *
 * RACE(hogwild): in the live modes several workers read and write the same floats without locks. An update that another one
 * overwrites is lost, which is what Hogwild! (Niu et al. 2011) shows to be harmless for sparse problems. How a float is
 * accessed so that each is whole is said in live.h, and on what that relies in docs/memory-model.md. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "update/terms.h"
#include "update/undo.h"

struct shmt_race; /* race.h */

/* Row locks of one table: lock words of the shared memory. Unit u of the table (a row of a table of width 1, else a block of
 * SHMT_LOCK_FLOATS floats) is guarded by word (first + u) & mask. A word is 0 or `owner`: (life << 16 | rank + 1) of the
 * seat that holds it, so that it says after a death whose it was. Nobody holds two at a time (lock.h). */
struct shmt_locks {
    _Atomic uint32_t *word; /* (mask + 1); NULL: no locks */
    uint64_t first;
    uint32_t mask, owner;
    const _Atomic uint32_t *abort; /* nonzero: whoever waits goes on without the lock, for the run is given up */
};

#define SHMT_LOCK_FLOATS 1024 /* of a table that is wider than 1 */

#define SHMT_TOUCH_FLOATS 16 /* one byte of the touched map stands for a cache line of 64 bytes */

struct shmt_span {
    const float *weight; /* (rows * width) */
    float *sink;         /* (rows * width): == weight, or a gradient buffer */
    uint8_t *touched;    /* (ceil(rows * width / 16)) of sink: 1 where it may be other than 0; NULL: not kept, all of it may */
    struct shmt_terms terms; /* `aggregate`: the list that rows of sparse pushes go to, as long as there is room */
    const float *l2_share;   /* (rows) live modes with L1 or L2: examples there are for each that touches the row; NULL: 1 */
    float *state;   /* live modes: word 0 of the rule's state for float 0 of the table; NULL: the rule keeps none, or the
                              update comes later */
    uint64_t plane; /* floats from one state word of a parameter to the next */
    _Atomic uint64_t *counted; /* (rows * width) kernels that count: each float and its updates, in one word (counted_priv.h);
                                  its memory is zeros when a run begins; NULL: no such kernel is called */
    struct shmt_race *race;    /* kernels that count: how they wait; NULL: they do not */
    struct shmt_locks locks;   /* write locked */
    struct shmt_undo undo;     /* write locked; of words of the span as counted from undo.first */
    uint64_t rows;
    uint32_t width;
    uint32_t reserved;
};
