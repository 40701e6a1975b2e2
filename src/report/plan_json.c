/* A plan of the machine as one JSON object; names are those of <shmtrain/plan.h>. A node of -1 ("over all, or anywhere") is
 * null. */
#include <shmtrain/plan.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

static json_t *whole(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *node_number(int32_t node) { return node < 0 ? json_null() : json_integer(node); }

/* A path is bytes, JSON is UTF-8: what is not becomes question marks. */
static json_t *text_of(const char *name) {
    json_t *text = json_string(name);
    if (text) return text;
    char *copy = strdup(name);
    for (char *at = copy; at && *at; at++)
        if (*at & 0x80) *at = '?';
    text = copy ? json_string(copy) : NULL;
    free(copy);
    return text ? text : json_null();
}

static json_t *nodes_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct shmtrain_plan_node *node = &plan->node[i];
        json_t *o = json_object();
        json_object_set_new(o, "node", whole(node->node));
        json_object_set_new(o, "usable", json_boolean(node->usable));
        json_object_set_new(o, "cores", whole(node->cores));
        json_object_set_new(o, "cpus", whole(node->cpus));
        json_object_set_new(o, "memory_bytes", whole(node->memory_bytes));
        json_object_set_new(o, "available_bytes", whole(node->available_bytes));
        json_object_set_new(o, "need_bytes", whole(node->need_bytes));
        json_object_set_new(o, "huge_free", whole(node->huge_free));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *places_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_places; i++) {
        const struct shmtrain_plan_worker *place = &plan->place[i];
        json_t *o = json_object();
        json_object_set_new(o, "worker", whole(place->worker));
        json_object_set_new(o, "thread", whole(place->thread));
        json_object_set_new(o, "cpu", whole(place->cpu));
        json_object_set_new(o, "core", whole(place->core));
        json_object_set_new(o, "node", whole(place->node));
        json_object_set_new(o, "shared", json_boolean(place->shared));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *range_of(uint64_t first, uint64_t n, uint64_t bytes, int32_t node) {
    json_t *o = json_object();
    json_object_set_new(o, "first", whole(first));
    json_object_set_new(o, "n", whole(n));
    json_object_set_new(o, "bytes", whole(bytes));
    json_object_set_new(o, "node", node_number(node));
    return o;
}

static json_t *shards_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        const struct shmtrain_plan_shard *shard = &plan->shard[i];
        json_t *o = range_of(shard->first, shard->n, shard->bytes, shard->node);
        json_object_set_new(o, "table", text_of(shard->table));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *parts_of(const struct shmtrain_plan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_parts; i++) {
        const struct shmtrain_plan_part *part = &plan->part[i];
        json_array_append_new(list, range_of(part->first, part->n, part->bytes, part->node));
    }
    return list;
}

static void add_memory(json_t *o, const struct shmtrain_plan *plan) {
    json_object_set_new(o, "parameter_bytes", whole(plan->parameter_bytes));
    json_object_set_new(o, "state_bytes", whole(plan->state_bytes));
    json_object_set_new(o, "gradient_bytes", whole(plan->gradient_bytes));
    json_object_set_new(o, "other_bytes", whole(plan->other_bytes));
    json_object_set_new(o, "data_bytes", whole(plan->data_bytes));
    json_object_set_new(o, "total_bytes", whole(plan->total_bytes));
    json_object_set_new(o, "available_bytes", whole(plan->available_bytes));
    json_object_set_new(o, "limit", text_of(plan->limit));
}

char *shmtrain_plan_json(const struct shmtrain_plan *plan) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object();
    json_object_set_new(o, "machine", json_string(plan->machine));
    json_object_set_new(o, "data", plan->data[0] ? text_of(plan->data) : json_null());
    json_object_set_new(o, "workers", whole(plan->n_workers));
    json_object_set_new(o, "threads", whole(plan->n_threads));
    json_object_set_new(o, "bind", json_string(plan->bind));
    json_object_set_new(o, "numa", json_string(plan->numa));
    json_object_set_new(o, "hugepages", json_string(plan->hugepages));
    json_object_set_new(o, "page_bytes", whole(plan->page_bytes));
    json_object_set_new(o, "nodes", nodes_of(plan));
    json_object_set_new(o, "places", places_of(plan));
    json_object_set_new(o, "shards", shards_of(plan));
    json_object_set_new(o, "parts", parts_of(plan));
    add_memory(o, plan);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    if (!text) return NULL;
    const size_t n = strlen(text);
    char *line = realloc(text, n + 2);
    if (!line) {
        free(text);
        return NULL;
    }
    memcpy(line + n, "\n", 2);
    return line;
}
