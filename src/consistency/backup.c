/* Backup workers: an update goes on when the first k of n gradients are in; late ones are dropped (Chen et al. 2016;
 * TensorFlow's replicas_to_aggregate). Dropped gradients in place of waiting for stragglers; without stragglers, work thrown
 * away. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_BACKUP = {
    .name = "backup",
    .known_as = "backup workers, Chen et al. 2016",
    .about = "updates take the first K gradients",
    .policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0, .quorum = SHMT_QUORUM_MOST, .late = SHMT_LATE_DROP},
    .number = SHMT_NUMBER_QUORUM,
};
