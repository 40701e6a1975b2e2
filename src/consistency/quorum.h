/* When a round is closed: an update is of the gradients that are in by then. Pure: who closes it, and how all find out, is the
 * backend's (backends/shm/rounds/quorum.c). */
#pragma once

#include "consistency/policy.h"

/* Who is at a round, counted one by one; {0} to begin with. */
struct shmt_attendance {
    uint32_t arrived, late, working; /* late ones are not among `arrived` */
};

static inline void shmt_attendance_count(struct shmt_attendance *all, bool works, bool arrived, bool late) {
    all->working += works || arrived; /* who has died since it came is one of those that the round is of */
    all->arrived += arrived && !late;
    all->late += arrived && late;
}

/* Whether the round can be closed: min(asked, all who have work and have not come with a late offer) are there, and anybody is. A
 * late offer gets in, and counts towards no quorum. */
static inline bool shmt_attendance_is_enough(const struct shmt_attendance *all, uint32_t asked) {
    return all->arrived + all->late > 0 && all->arrived >= shmt_policy_needed(asked, all->working - all->late);
}
