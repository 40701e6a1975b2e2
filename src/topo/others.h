/* How much of the processors others use meanwhile: other programs, and the hypervisor's other guests. Called by whoever
 * measures times and wants to know whether they mean something. */
#pragma once

#include <stdint.h>

struct shmt_others {
    uint64_t began_ns, busy_ticks, own_ns;
};
void shmt_others_begin(struct shmt_others *o);

/* Processors that others have used since then, on average: 1.5, one and a half. Own children count as own once they have been
 * waited for. Ticks are coarse: one or two of them, of some 10 ms, are no news. Below 0 where the system does not say. */
double shmt_others_end(const struct shmt_others *o);
