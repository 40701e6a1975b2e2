/* Local SGD: every worker updates a copy of its own; all meet every H clocks to average (Zinkevich et al. 2010; McMahan et
 * al. 2017; Stich 2019). No traffic between merges; the copies drift apart until the next one. */
#include "consistency/mode_priv.h"

const struct shmt_mode SHMT_MODE_LOCAL = {
    .name = "local",
    .known_as = "local SGD",
    .about = "a copy per worker, averaged every H clocks",
    .policy = {.write = SHMT_WRITE_RACY,
               .staleness = 0,
               .replicas = SHMT_REPLICAS_WORKER,
               .merge_every = 8,
               .merge = SHMT_MERGE_MEAN},
    .number = SHMT_NUMBER_MERGE_EVERY,
};
