/* Passing on items of an epoch from hosts that are behind to hosts that are ahead, so that all are done at about the same time. Pure: from
 * what all hosts have said of themselves each of them computes the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How far a host is with an epoch. */
struct shmt_headway {
    uint64_t left;    /* items that it has and nobody there has begun */
    uint64_t each_ns; /* how long it takes for one, with all of its workers; 0: it has not done enough to tell */
    uint64_t way_ns;  /* how long another host waits for what it passes on */
    bool waits;       /* none of its workers has one */
};

/* Items that host `self` is to pass on to each of n_hosts (n_out); all 0 where that would bring the end hardly nearer: where it would be
 * done little later than all together would (which is good enough while nobody waits), or on the way; and as long as somebody who has items
 * cannot tell. Who has none and cannot tell is taken to be as fast as the others on average. */
void shmt_passing_plan(const struct shmt_headway *of, uint32_t n_hosts, uint32_t self, uint64_t *n_out);
