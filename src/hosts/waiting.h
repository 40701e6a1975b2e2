/* Who has not come yet, and why, as lines for whoever looks at the run. By the link's process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "link/lanes.h"

#define SHMT_WAITING_LINE 1000

struct shmt_waiting {
    const struct shmt_lanes *lanes;
    uint32_t self, n_hosts;
    bool is_told;                 /* somebody has heard that hosts are waited for */
    char said[SHMT_WAITING_LINE]; /* what was said of it last */
    uint64_t change_ns, pause_ns; /* nothing else before then; and how long that is */
    uint64_t remind_ns;           /* the same again then */
};

/* From now on others are waited for. */
void shmt_waiting_begin(struct shmt_waiting *waiting, const struct shmt_lanes *lanes, uint32_t self, uint32_t n_hosts);

/* Whether there is something to say: then it is in `out`. Nobody hears of hosts that come within two seconds. A line comes again each
 * minute, and when the reason is another one: then soon, but the more seldom the more often that happens. `thorough`: reasons are looked
 * for; else it is only noticed when all have come. */
bool shmt_waiting_look(struct shmt_waiting *waiting, bool thorough, char out[SHMT_WAITING_LINE]);
