/* What it takes to move memory on this machine, measured by threads on its cores within a tenth of a second. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct shmt_topo;

struct shmt_traffic {
    /* To fetch a line that another core has written, or to take it from there for writing, while both want the same few lines all the time;
     * no less than half of a ball's way to another core, which is both. 0: there is one core. */
    double line_ns;
    double next_ns;   /* of each further line that a core fetches at the same time, while another core wants them, too */
    double bandwidth; /* bytes a nanosecond that all cores together read, up to SHMT_TRAFFIC_CORES */
};

#define SHMT_TRAFFIC_CORES 64
#define SHMT_TRAFFIC_BYTES (UINT64_C(256) << 20) /* of memory that it takes at most */

/* By threads of its own, which are bound where the system lets them. The best of several turns: who else is busy makes them longer. Errors:
 * _MEMORY, _SYSTEM (no thread). Where processors are too busy for figures, these are 0. */
int shmt_traffic_measure(const struct shmt_topo *topo, struct shmt_traffic *out, struct shmt_error *e);
