/* Hogwild! as it was published: everybody updates the one copy at once, and nobody waits. The same point as async without
 * copies of its own; it has a name for those who want to see what copies give, or what it costs that frequent features
 * travel. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_HOGWILD = {
    .name = "hogwild",
    .known_as = "Hogwild! (Niu et al. 2011)",
    .about = "async, always with one copy",
    .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
    .number = SHMT_NUMBER_NONE,
};
