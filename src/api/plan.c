/* What a run would do with the machine, without training: shmtrain_store_plan.
 *
 * The data is counted and the spec made by the same code that trains, on a store of the plan's own, so that tables and
 * parameters of the application's stay as they are. What a plan says of shards and parts is worked out by the functions that
 * place them. */
#include "api/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ps/replicas.h"
#include "ps/shards.h"
#include "segment/budget.h"

/* A plan and what it points to; it lives in the store until the next one. */
struct shmt_plan_kept {
    struct shmtrain_plan plan;
    struct shmt_budget budget;
    char *data, copies_reason[SHMT_COPIES_WHY];
    struct shmtrain_plan_node *node;
    struct shmtrain_plan_worker *place;
    struct shmtrain_plan_shard *shard;
    struct shmtrain_plan_part *part;
};

void shmt_plan_free(struct shmt_plan_kept *kept) {
    if (!kept) return;
    free(kept->data);
    free(kept->node);
    free(kept->place);
    free(kept->shard);
    free(kept->part);
    free(kept);
}

static int no_memory(struct shmtrain_store *store) {
    return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for a plan of the machine");
}

/* ---- workers and nodes ---- */

static int plan_machine(struct shmtrain_store *store, struct shmt_plan_kept *kept, const struct shmt_crew *crew) {
    const struct shmt_machine *m = &crew->machine;
    struct shmtrain_plan *plan = &kept->plan;
    plan->n_nodes = shmt_topo_all_nodes(crew->topo);
    plan->n_places = crew->n_workers * crew->n_threads;
    kept->node = calloc(plan->n_nodes, sizeof *kept->node);
    kept->place = calloc(plan->n_places, sizeof *kept->place);
    if (!kept->node || !kept->place) return no_memory(store);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        struct shmt_node node;
        shmt_topo_node(crew->topo, i, &node);
        kept->node[i] = (struct shmtrain_plan_node){.node = node.node,
                                                    .usable = node.usable,
                                                    .cores = node.cores,
                                                    .cpus = node.cpus,
                                                    .memory_bytes = node.memory_bytes,
                                                    .available_bytes = node.free_bytes,
                                                    .huge_free = node.huge_free};
    }
    for (uint32_t i = 0; i < plan->n_places; i++) {
        const struct shmt_place *place = &m->place[i];
        kept->place[i] = (struct shmtrain_plan_worker){.worker = i / crew->n_threads,
                                                       .thread = i % crew->n_threads,
                                                       .cpu = place->cpu,
                                                       .core = place->core,
                                                       .node = place->node,
                                                       .shared = place->shared};
    }
    const char *variable = shmt_topo_variable();
    plan->machine = shmt_topo_is_this_machine(crew->topo) ? "this machine" : variable ? variable : "another machine";
    plan->numa = shmt_machine_numa_name(&m->placement);
    plan->data_local = m->placement.private_local;
    plan->bind = shmt_machine_bind_name(m->bind);
    plan->hugepages = m->hugepages;
    plan->page_bytes = m->placement.page_bytes;
    plan->size = sizeof *plan;
    plan->n_workers = crew->n_workers;
    plan->n_threads = crew->n_threads;
    return 0;
}

/* What there is: of this machine the tightest limit, of another one the memory of its nodes. */
static void plan_available(struct shmt_plan_kept *kept, const struct shmt_crew *crew) {
    struct shmtrain_plan *plan = &kept->plan;
    if (shmt_topo_is_this_machine(crew->topo)) {
        shmt_budget_read("", &kept->budget);
        plan->limit = kept->budget.limit;
        plan->available_bytes = kept->budget.available_bytes == UINT64_MAX ? 0 : kept->budget.available_bytes;
        return;
    }
    plan->limit = "memory of the machine";
    for (uint32_t i = 0; i < plan->n_nodes; i++) plan->available_bytes += kept->node[i].available_bytes;
}

/* ---- memory ---- */

/* `bytes` more that the run would place on a node, by its index in the placement; below 0 on all that it uses, in turn.
 * Where the system puts them is not known, unless there is one node only. */
static void need(struct shmt_plan_kept *kept, const struct shmt_placement *p, int32_t node, uint64_t bytes) {
    const int anywhere = p->policy == SHMT_PLACE_OFF;
    if (anywhere && kept->plan.n_nodes > 1) return;
    for (uint32_t i = 0; i < kept->plan.n_nodes; i++) {
        if (anywhere) kept->node[i].need_bytes += bytes;
        for (uint32_t k = 0; !anywhere && k < p->n_nodes; k++) {
            if (p->node[k] != kept->node[i].node) continue;
            if (node == (int32_t)k) kept->node[i].need_bytes += bytes;
            if (node < 0) kept->node[i].need_bytes += bytes / p->n_nodes + (k < bytes % p->n_nodes);
        }
    }
}

/* What lies on no node of its own. */
static int32_t nowhere(const struct shmt_placement *p) {
    return p->policy == SHMT_PLACE_OFF ? SHMTRAIN_PLAN_ANYWHERE : SHMTRAIN_PLAN_ALL_NODES;
}

/* Rows that begin within the floats from .. to - 1 of a table. */
static void rows_of(const struct shmt_spec *spec, const struct shmt_flat *flat, const struct shmt_shard *shard,
                    struct shmtrain_plan_shard *out) {
    const struct shmt_table_spec *table = &spec->table[shard->table];
    const uint64_t start = flat->start[shard->table];
    const uint64_t first = shmt_min_u64(table->rows, shmt_ceil_div(shard->from - start, table->width));
    const uint64_t end = shmt_min_u64(table->rows, shmt_ceil_div(shard->to - start, table->width));
    memcpy(out->table, table->name, sizeof out->table);
    out->first = first;
    out->n = end - first;
}

static int plan_shards(struct shmtrain_store *store, struct shmt_plan_kept *kept) {
    const struct shmt_spec *spec = &store->spec;
    const struct shmt_placement *p = &spec->placement;
    /* Words beside each parameter that lie where it lies. */
    const uint64_t words =
        1 + shmt_flat_planes(spec) + spec->l2_shares + 2 * spec->count_lost + (spec->hot_floats == 0 && spec->curvatures);
    struct shmt_flat flat;
    shmt_flat_plan(spec, &flat);
    struct shmt_shard *shard = calloc(shmt_shards_most(spec), sizeof *shard);
    kept->shard = calloc(shmt_shards_most(spec), sizeof *kept->shard);
    if (!shard || !kept->shard) {
        free(shard);
        return no_memory(store);
    }
    kept->plan.n_shards = (uint32_t)shmt_shards_plan(spec, &flat, shard);
    for (uint32_t i = 0; i < kept->plan.n_shards; i++) {
        struct shmtrain_plan_shard *out = &kept->shard[i];
        const int bound = p->policy == SHMT_PLACE_BIND;
        rows_of(spec, &flat, &shard[i], out);
        out->bytes = (shard[i].to - shard[i].from) * words * sizeof(float);
        out->node = bound ? (int32_t)p->node[shard[i].node] : nowhere(p);
        need(kept, p, bound ? (int32_t)shard[i].node : -1, out->bytes);
    }
    free(shard);
    return 0;
}

static int plan_parts(struct shmtrain_store *store, struct shmt_plan_kept *kept, const struct shmt_prepared *prepared) {
    const struct shmt_placement *p = &store->spec.placement;
    const struct shmt_readers readers = {p, &store->spec, prepared->train_example};
    struct shmt_stretch *stretch;
    const int rc = shmt_load_stretches(prepared->train, &readers, &stretch, &kept->plan.n_parts, &store->error);
    if (rc < 0) return rc;
    kept->part = calloc(kept->plan.n_parts, sizeof *kept->part);
    for (uint32_t i = 0; kept->part && i < kept->plan.n_parts; i++) {
        const uint64_t bytes = shmt_load_stretch_bytes(prepared->train, &stretch[i]);
        kept->part[i] =
            (struct shmtrain_plan_part){.first = stretch[i].from,
                                        .n = stretch[i].to - stretch[i].from,
                                        .bytes = bytes,
                                        .node = stretch[i].node < 0 ? nowhere(p) : (int32_t)p->node[stretch[i].node]};
        if (!prepared->train->in_place) need(kept, p, stretch[i].node, bytes);
    }
    free(stretch);
    return kept->part ? 0 : no_memory(store);
}

/* Copies of the parameters, or of the hot ones: what is needed of these beyond the tables. */
static void plan_replicas(struct shmt_plan_kept *kept, const struct shmt_spec *spec, const struct shmt_need *bytes) {
    const uint32_t n = shmt_replicas_count(spec);
    uint64_t copies = bytes->parameter_bytes + bytes->state_bytes;
    for (uint32_t i = 0; i < kept->plan.n_shards; i++) copies -= shmt_min_u64(copies, kept->shard[i].bytes);
    for (uint32_t i = 0; i < n; i++)
        need(kept, &spec->placement, spec->placement.private_local ? (int32_t)shmt_replicas_node(spec, i) : -1, copies / n);
}

static int plan_memory(struct shmtrain_store *store, struct shmt_plan_kept *kept, const struct shmt_prepared *prepared) {
    const struct shmt_spec *spec = &store->spec;
    struct shmtrain_plan *plan = &kept->plan;
    struct shmt_need bytes;
    const int rc = store->ops->plan(spec, &bytes, &store->error);
    if (rc < 0) return rc;
    plan->parameter_bytes = bytes.parameter_bytes;
    plan->state_bytes = bytes.state_bytes;
    plan->gradient_bytes = bytes.gradient_bytes;
    plan->other_bytes = bytes.other_bytes + prepared->work_bytes;
    const uint64_t train_bytes = shmt_load_own_bytes(prepared->train);
    const uint64_t valid_bytes = prepared->valid ? shmt_load_own_bytes(prepared->valid) : 0;
    if (!shmt_add_u64(train_bytes, valid_bytes, &plan->data_bytes)) plan->data_bytes = UINT64_MAX;
    if (!shmt_add_u64(plan->data_bytes, bytes.total_bytes + prepared->work_bytes, &plan->total_bytes))
        plan->total_bytes = UINT64_MAX;
    const uint64_t share = bytes.gradient_bytes / spec->n_seats;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++)
        need(kept, &spec->placement, spec->placement.private_local ? spec->placement.seat_node[seat] : -1, share);
    plan_replicas(kept, spec, &bytes);
    /* What is left over of whole pages, and what belongs to nobody. */
    uint64_t rest = train_bytes + bytes.gradient_bytes % spec->n_seats;
    for (uint32_t i = 0; i < plan->n_parts && !prepared->train->in_place; i++) rest -= shmt_min_u64(rest, kept->part[i].bytes);
    need(kept, &spec->placement, -1, plan->other_bytes + valid_bytes + rest);
    return 0;
}

/* ---- a plan ---- */

/* Called with everything counted. */
static int plan_run(struct shmtrain_store *store, const struct shmt_prepared *prepared, void *arg) {
    struct shmt_plan_kept *kept = arg;
    const struct shmt_placement *p = &store->spec.placement;
    int rc = plan_machine(store, kept, prepared->crew);
    if (rc == 0) rc = plan_shards(store, kept);
    if (rc == 0) rc = plan_parts(store, kept, prepared);
    if (rc == 0) rc = plan_memory(store, kept, prepared);
    if (rc < 0) return rc;
    plan_available(kept, prepared->crew);
    memcpy(kept->copies_reason, store->copies_reason, sizeof kept->copies_reason);
    kept->plan.replicas = shmt_replicas_name(store->spec.policy.replicas);
    kept->plan.numa = shmt_machine_numa_name(p);
    kept->plan.data_local = p->policy != SHMT_PLACE_OFF && p->private_local;
    const enum shmt_pages pages = p->page_bytes != SHMT_HUGE_BYTES ? SHMT_PAGES_ORDINARY
                                  : p->transparent                 ? SHMT_PAGES_TRANSPARENT
                                                                   : SHMT_PAGES_2M;
    kept->plan.page_bytes = shmt_pages_bytes(pages);
    kept->plan.hugepages = shmt_pages_name(pages);
    return 0;
}

/* Only workers and machine: which pages there will be depends on what is to lie in them. */
static int plan_workers(struct shmtrain_store *store, struct shmt_plan_kept *kept) {
    struct shmt_crew crew = {0};
    store->ops = shmt_backend_find(store->config.backend);
    int rc = shmt_crew_make(store, store->ops, SHMT_SEAT_OF_THREAD, &crew);
    if (rc == 0) rc = plan_machine(store, kept, &crew);
    if (rc == 0) {
        plan_available(kept, &crew);
        const int may_2m = strcmp(store->config.hugepages, "2M") == 0;
        kept->plan.hugepages = shmt_pages_name(may_2m ? SHMT_PAGES_2M : SHMT_PAGES_ORDINARY);
        kept->plan.page_bytes = shmt_pages_bytes(may_2m ? SHMT_PAGES_2M : SHMT_PAGES_ORDINARY);
    }
    shmt_crew_free(&crew);
    return rc;
}

/* A store that shares the application's configuration and nothing that it has learned. */
static void borrow(const struct shmtrain_store *store, struct shmtrain_store *out) {
    memset(out, 0, sizeof *out);
    out->config = store->config;
    out->log = store->log;
    out->stop_fd = store->stop_fd;
    out->plans_only = true;
    pthread_mutex_init(&out->lock, NULL);
    out->arrays = store->arrays;
    out->snapshots.wanted = store->snapshots.wanted;
    out->n_offered = store->n_offered;
    memcpy(out->offered, store->offered, sizeof out->offered);
}

int shmtrain_store_plan(struct shmtrain_store *store, const char *data, const struct shmtrain_plan **out) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    struct shmtrain_store *own = malloc(sizeof *own);
    struct shmt_plan_kept *kept = calloc(1, sizeof *kept);
    if (kept) kept->data = strdup(data ? data : "");
    rc = own && kept && kept->data ? 0 : no_memory(store);
    if (rc == 0) {
        borrow(store, own);
        rc = data ? shmt_train_prepare(own, data, plan_run, kept) : plan_workers(own, kept);
        store->error = own->error;
        shmt_store_forget_tables(own);
        free(own->epochs);
        free(own->slow_text);
        pthread_mutex_destroy(&own->lock);
    }
    free(own);
    shmt_call_leave(store);
    if (rc < 0) {
        shmt_plan_free(kept);
        return rc;
    }
    kept->plan.data = kept->data;
    kept->plan.copies_reason = kept->copies_reason;
    if (!kept->plan.replicas) kept->plan.replicas = "";
    kept->plan.node = kept->node;
    kept->plan.place = kept->place;
    kept->plan.shard = kept->shard;
    kept->plan.part = kept->part;
    shmt_plan_free(store->plan);
    store->plan = kept;
    *out = &kept->plan;
    return 0;
}
