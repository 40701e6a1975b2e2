/* Everybody updates at once, and nobody waits. On one copy that is Hogwild!: an update does not know of about n - 1 clocks'
 * worth of others', and may overwrite one (Niu et al. 2011: harmless when few meet). Where each worker's cache holds a copy, it
 * gets one, because lines that all change travel: then nothing is overwritten, and what is not known is what came between two
 * merges. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_ASYNC = {
    .name = "async",
    .known_as = "Hogwild!, on copies where that is faster",
    .about = "update at once, never wait",
    .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
    .number = SHMT_NUMBER_NONE,
    .may_copy = true,
};
