/* A copy for each NUMA node: Hogwild! within a node, whose caches are near, and merges between nodes every H clocks without
 * waiting (DimmWitted, Zhang and Re 2014; HogWild++, Zhang, Hsieh and Akella 2016). With one node it is hogwild. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_NODE = {
    .name = "node",
    .known_as = "DimmWitted's PerNode; HogWild++",
    .about = "a copy per NUMA node, merged on the way",
    .policy = {.write = SHMT_WRITE_RACY,
               .staleness = SHMT_STALENESS_INF,
               .replicas = SHMT_REPLICAS_NODE,
               .merge_every = 4,
               .merge = SHMT_MERGE_SUM},
    .number = SHMT_NUMBER_MERGE_EVERY,
};
