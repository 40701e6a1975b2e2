/* For whom a seat has waited: the few who took the most of its time, each with a sum (the heavy hitters of Metwally et al.
 * 2005, "space saving"). Written by the seat's owner, read by reports and displays. */
#pragma once

#include "ps/backend_ops.h"

/* By the owner: `ns` more of waiting for seat `rank`. A seat that is not in the list takes a free entry, or the entry with the
 * least time, and keeps that time: so a sum may be too large by at most that much, and is never too small.
 * relaxed, all: one writer, read for display and, when the team has ended, for the report */
static inline void shmt_waits_note(struct shmt_waited_for *list, uint32_t rank, uint64_t ns) {
    struct shmt_waited_for *least = &list[0];
    for (uint32_t i = 0; i < SHMT_WAITED_FOR; i++) {
        if (load_relaxed(&list[i].rank) == rank + 1) {
            bump_relaxed(&list[i].ns, ns);
            return;
        }
        if (load_relaxed(&list[i].ns) < load_relaxed(&least->ns)) least = &list[i];
    }
    store_relaxed(&least->rank, rank + 1);
    bump_relaxed(&least->ns, ns);
}
