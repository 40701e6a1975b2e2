/* Hogwild!: everybody updates one copy at once, and nobody waits. Fastest where gradients are sparse and cheap; an update
 * sees about n - 1 clocks' worth of others' that it does not know of, and may overwrite one (Niu et al. 2011: harmless when
 * few meet). */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_ASYNC = {
    .name = "async",
    .known_as = "Hogwild! (Niu et al. 2011)",
    .about = "update at once, never wait",
    .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
    .number = SHMT_NUMBER_NONE,
    .may_copy = true,
};
