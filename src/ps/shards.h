/* Shards: the parts of the tables that lie on one NUMA node each. Pure planning; called by backends, which turn shards into
 * ranges of memory, and by whoever shows a plan. The optimizer state of a shard lies where its weights lie.
 *
 * A table is cut into `parts` shards of whole pages, as even as pages allow (TensorFlow's fixed_size_partitioner). Shards go
 * to the nodes round robin (replica_device_setter), or each to the node that has the fewest bytes so far
 * (GreedyLoadBalancingStrategy). */
#pragma once

#include "ps/flat.h"

struct shmt_shard {
    uint32_t table;
    uint32_t node;     /* index into placement.node; meaningless unless the policy is bind */
    uint64_t from, to; /* floats of the flat array; to includes the padding up to the next table */
};

/* At most this many; the room that shmt_shards_plan needs. */
uint64_t shmt_shards_most(const struct shmt_spec *spec);

/* In the order of the flat array, which they cover without gaps; returns how many. Tables of fewer pages than parts have fewer
 * shards. */
uint64_t shmt_shards_plan(const struct shmt_spec *spec, const struct shmt_flat *flat, struct shmt_shard *out);
