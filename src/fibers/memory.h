/* What memory takes in virtual time: who has a cache line, the bandwidth of each NUMA node, and the distance between nodes.
 *
 * Lines have 64 bytes. Each worker has a cache of its own. It pays `line_ns` for
 *
 *   - reading a line that another worker wrote last, unless it has a copy that is as new;
 *   - writing a line that it has not alone: another worker has read or written it since;
 *
 * and `next_ns` for each further one of the same call, as processors fetch several lines at a time.
 *
 * A write takes the line from all others. A line that nobody has written, or that one worker alone has, costs nothing of this. A line
 * comes to one worker at a time: others wait for it until then.
 *
 * Bytes of lines of which a worker has no copy pass through a queue, one for each node, at its bandwidth. The lines of one call
 * (shmt_memory_touch until shmt_memory_pay) join it together, in the order of calls. A call takes as long as its lines, one after the
 * other, or until its bytes have passed, whichever is longer.
 *
 * Workers are spread over the nodes in order: worker i of n is on node i * n_nodes / n. A line is on the node of the worker that wrote it
 * last, or, before, of the first that has touched it. From another node both, the line and its bytes, take `far` times as long.
 *
 * A worker's cache is mapped directly, by the number of the line; lines are numbered as they are first touched. Addresses tell lines
 * from one another and decide nothing else, so the costs are the same wherever memory lies.
 *
 * Called by scheduler.c. One thread uses it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SHMT_MEMORY_MOST_NODES 64
#define SHMT_MEMORY_AS_FIRST   -1.0

struct shmt_memory_costs {
    double line_ns;       /* 0: lines of others cost nothing */
    double next_ns;       /* of a call's further lines; SHMT_MEMORY_AS_FIRST: as much as the first */
    double bandwidth;     /* of a node, in bytes a nanosecond; 0: no limit */
    uint64_t cache_bytes; /* of each worker; at least a line */
    double far;           /* from 1 on */
    uint32_t n_nodes;     /* 1 to SHMT_MEMORY_MOST_NODES, and no more than workers */
};

static inline bool shmt_memory_costs_any(const struct shmt_memory_costs *c) { return c->line_ns > 0 || c->bandwidth > 0; }

/* What a worker has touched since it has paid. Zeros: nothing. */
struct shmt_memory_bill {
    double lines_ns; /* of its lines, one after the other */
    double until_ns; /* when its bytes will have passed */
};

struct shmt_memory;

/* Errors: _MEMORY. */
int shmt_memory_make(const struct shmt_memory_costs *costs, uint32_t n_workers, struct shmt_memory **out, struct shmt_error *e);

/* NULL is allowed. */
void shmt_memory_free(struct shmt_memory *m);

/* A worker whose clock is at at_ns reads or writes bytes (> 0) at `at`. Calls come in the order of at_ns. Lines for which there is no
 * memory any more cost nothing. */
void shmt_memory_touch(struct shmt_memory *m, uint32_t worker, double at_ns, const void *at, uint64_t bytes, bool writes,
                       struct shmt_memory_bill *bill);

/* What the bill makes of the time from at_ns on; empties it. */
double shmt_memory_pay(struct shmt_memory_bill *bill, double at_ns);
