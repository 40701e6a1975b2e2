/* A plan of the machine as one JSON object; names are those of <shmtrain/plan.h>. In place of a node's number stands "all"
 * (over all in turn), or null (wherever the system puts it). */
#include <shmtrain/plan.h>

#include "base/plain.h"
#include "report/json_priv.h"

static json_t *node_number(int32_t node) {
    if (node == SHMTRAIN_PLAN_ALL_NODES) return json_string("all");
    return node < 0 ? json_null() : json_integer(node);
}

static json_t *nodes_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct shmtrain_plan_node *node = &plan->node[i];
        json_t *o = json_object();
        json_object_set_new(o, "node", shmt_json_whole(node->node));
        json_object_set_new(o, "usable", json_boolean(node->usable));
        json_object_set_new(o, "cores", shmt_json_whole(node->cores));
        json_object_set_new(o, "cpus", shmt_json_whole(node->cpus));
        json_object_set_new(o, "memory_bytes", shmt_json_whole(node->memory_bytes));
        json_object_set_new(o, "available_bytes", shmt_json_whole(node->available_bytes));
        json_object_set_new(o, "need_bytes", shmt_json_whole(node->need_bytes));
        json_object_set_new(o, "huge_free", shmt_json_whole(node->huge_free));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *places_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_places; i++) {
        const struct shmtrain_plan_worker *place = &plan->place[i];
        json_t *o = json_object();
        json_object_set_new(o, "worker", shmt_json_whole(place->worker));
        json_object_set_new(o, "thread", shmt_json_whole(place->thread));
        json_object_set_new(o, "cpu", shmt_json_whole(place->cpu));
        json_object_set_new(o, "core", shmt_json_whole(place->core));
        json_object_set_new(o, "node", shmt_json_whole(place->node));
        json_object_set_new(o, "shared", json_boolean(place->shared));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *range_of(uint64_t first, uint64_t n, uint64_t bytes, int32_t node) {
    json_t *o = json_object();
    json_object_set_new(o, "first", shmt_json_whole(first));
    json_object_set_new(o, "n", shmt_json_whole(n));
    json_object_set_new(o, "bytes", shmt_json_whole(bytes));
    json_object_set_new(o, "node", node_number(node));
    return o;
}

static json_t *shards_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        const struct shmtrain_plan_shard *shard = &plan->shard[i];
        json_t *o = range_of(shard->first, shard->n, shard->bytes, shard->node);
        json_object_set_new(o, "table", shmt_json_text(shard->table));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *word_or_null(const char *word) { return word && word[0] != '\0' ? json_string(word) : json_null(); }

static json_t *parts_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_parts; i++) {
        const struct shmtrain_plan_part *part = &plan->part[i];
        json_array_append_new(list, range_of(part->first, part->n, part->bytes, part->node));
    }
    return list;
}

static void add_memory(json_t *o, const struct shmtrain_plan *plan) {
    json_object_set_new(o, "parameter_bytes", shmt_json_whole(plan->parameter_bytes));
    json_object_set_new(o, "state_bytes", shmt_json_whole(plan->state_bytes));
    json_object_set_new(o, "gradient_bytes", shmt_json_whole(plan->gradient_bytes));
    json_object_set_new(o, "other_bytes", shmt_json_whole(plan->other_bytes));
    json_object_set_new(o, "data_bytes", shmt_json_whole(plan->data_bytes));
    json_object_set_new(o, "total_bytes", shmt_json_whole(plan->total_bytes));
    json_object_set_new(o, "available_bytes", shmt_json_whole(plan->available_bytes));
    json_object_set_new(o, "limit", shmt_json_text(plan->limit));
}

char *shmtrain_plan_json(const struct shmtrain_plan *plan) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object();
    json_object_set_new(o, "machine", json_string(plan->machine));
    json_object_set_new(o, "data", plan->data[0] ? shmt_json_text(plan->data) : json_null());
    json_object_set_new(o, "workers", shmt_json_whole(plan->n_workers));
    json_object_set_new(o, "threads", shmt_json_whole(plan->n_threads));
    json_object_set_new(o, "bind", json_string(plan->bind));
    json_object_set_new(o, "numa", json_string(plan->numa));
    json_object_set_new(o, "data_local", json_boolean(plan->data_local));
    json_object_set_new(o, "hugepages", json_string(plan->hugepages));
    json_object_set_new(o, "page_bytes", shmt_json_whole(plan->page_bytes));
    json_object_set_new(o, "replicas", word_or_null(plan->replicas));
    json_object_set_new(o, "copies_reason", word_or_null(plan->copies_reason));
    json_object_set_new(o, "nodes", nodes_of(plan));
    json_object_set_new(o, "places", places_of(plan));
    json_object_set_new(o, "shards", shards_of(plan));
    json_object_set_new(o, "parts", parts_of(plan));
    add_memory(o, plan);
    return shmt_json_line(o);
}
