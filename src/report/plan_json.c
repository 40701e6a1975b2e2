/* A plan of the machine as one JSON object; names are those of <shmtrain/plan.h>. In place of a node's number stands "all"
 * (over all in turn), or null (wherever the system puts it). */
#include <shmtrain/plan.h>

#include "report/fields.h"
#include "report/json_priv.h"

static json_t *node_number(const void *at) {
    const int32_t node = *(const int32_t *)at;
    if (node == SHMTRAIN_PLAN_ALL_NODES) return json_string("all");
    return node < 0 ? json_null() : json_integer(node);
}

/* clang-format off */
static const struct shmt_field NODE[] = {
    FIELD(plan_node, node), FLAG(plan_node, usable), FIELD(plan_node, cores), FIELD(plan_node, cpus),
    FIELD(plan_node, memory_bytes), FIELD(plan_node, available_bytes), FIELD(plan_node, need_bytes), FIELD(plan_node, huge_free),
    {0}};

static const struct shmt_field THREAD[] = {
    FIELD(plan_worker, worker), FIELD(plan_worker, thread), FIELD(plan_worker, cpu), FIELD(plan_worker, core),
    FIELD(plan_worker, node), FLAG(plan_worker, shared),
    {0}};

static const struct shmt_field SHARD[] = {
    FIELD(plan_shard, first), FIELD(plan_shard, n), FIELD(plan_shard, bytes), MADE_OF(plan_shard, node, node_number),
    FIELD(plan_shard, table),
    {0}};

static const struct shmt_field PART[] = {
    FIELD(plan_part, first), FIELD(plan_part, n), FIELD(plan_part, bytes), MADE_OF(plan_part, node, node_number),
    {0}};

static const struct shmt_field HOST[] = {
    FIELD(plan_host, name), FIELD(plan_host, examples), FIELD(plan_host, most_bytes),
    {0}};

static const struct shmt_field PLAN[] = {
    FIELD(plan, machine), SOME(plan, data), KEYED(plan, "workers", n_workers), KEYED(plan, "threads", n_threads),
    FIELD(plan, bind), FIELD(plan, numa), FLAG(plan, data_local), FIELD(plan, hugepages), FIELD(plan, page_bytes),
    SOME(plan, replicas), SOME(plan, copies_reason),
    LIST(plan, "nodes", node, n_nodes, NODE), LIST(plan, "places", place, n_places, THREAD),
    LIST(plan, "shards", shard, n_shards, SHARD), LIST(plan, "parts", part, n_parts, PART),
    LIST(plan, "hosts", hosts, n_hosts, HOST), FIELD(plan, host), FIELD(plan, exchange),
    LIST(plan, "layers", layer, n_layers, SHMT_LAYER),
    FIELD(plan, parameter_bytes), FIELD(plan, state_bytes), FIELD(plan, gradient_bytes), FIELD(plan, other_bytes),
    FIELD(plan, data_bytes), FIELD(plan, total_bytes), FIELD(plan, available_bytes), FIELD(plan, limit),
    {0}};
/* clang-format on */

char *shmtrain_plan_json(const struct shmtrain_plan *plan) { return shmt_fields_line(PLAN, plan); }
