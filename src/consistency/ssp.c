/* Stale Synchronous Parallel: updates at once, but nobody may be more than s clocks ahead of the slowest. Every update of
 * clocks <= mine - s - 1 is seen, so the delay is bounded; waits are as long as the bound makes them (Ho et al. 2013). */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_SSP = {
    .name = "ssp",
    .known_as = "Stale Synchronous Parallel (Ho et al. 2013)",
    .about = "update at once, at most S clocks ahead",
    .policy = {.write = SHMT_WRITE_ATOMIC, .staleness = 4},
    .number = SHMT_NUMBER_STALENESS,
};
