/* Bulk synchronous: one update per batch, of all workers' gradients (TensorFlow's SyncReplicasOptimizer, data-parallel
 * all-reduce). No delay, the same bits for every number of workers; everybody waits for the slowest at each batch. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_SYNC = {
    .name = "sync",
    .known_as = "bulk synchronous (BSP)",
    .about = "one update per batch, of all gradients",
    .policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0},
    .number = SHMT_NUMBER_NONE,
};
