/* What a run would do with the machine, without training: shmtrain_store_plan.
 *
 * The data is counted and the spec made by the same code that trains, with a run of the plan's own, so that tables and
 * parameters of the application's stay as they are. What a plan says of shards and parts is worked out by the functions that
 * place them. */
#include "running/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ps/replicas.h"
#include "ps/shards.h"
#include "running/plan_hosts.h"
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
    struct shmtrain_plan_host *host;
    struct shmtrain_model_layer layer[SHMTRAIN_MODEL_LAYERS];
};

void shmt_plan_free(struct shmt_plan_kept *kept) {
    if (!kept) return;
    free(kept->data);
    free(kept->node);
    free(kept->place);
    free(kept->shard);
    free(kept->part);
    free(kept->host);
    free(kept);
}

static int no_memory(struct shmt_call *call) { return shmt_no_memory(&call->error, "for a plan of the machine"); }

/* ---- workers and nodes ---- */

static int plan_machine(struct shmt_call *call, struct shmt_plan_kept *kept, const struct shmt_crew *crew) {
    const struct shmt_machine *m = &crew->machine;
    struct shmtrain_plan *plan = &kept->plan;
    plan->n_nodes = shmt_topo_all_nodes(crew->topo);
    plan->n_places = crew->n_workers * crew->n_threads;
    kept->node = calloc(plan->n_nodes, sizeof *kept->node);
    kept->place = calloc(plan->n_places, sizeof *kept->place);
    if (!kept->node || !kept->place) return no_memory(call);
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

/* UINT64_MAX: more than any memory. */
static void add_need(struct shmtrain_plan_node *node, uint64_t bytes) {
    if (!shmt_add_u64(node->need_bytes, bytes, &node->need_bytes)) node->need_bytes = UINT64_MAX;
}

/* `bytes` more that the run would place on a node, by its index in the placement; below 0 on all that it uses, in turn.
 * Where the system puts them is not known, unless there is one node only. */
static void need(struct shmt_plan_kept *kept, const struct shmt_placement *p, int32_t node, uint64_t bytes) {
    const int anywhere = p->policy == SHMT_PLACE_OFF;
    if (anywhere && kept->plan.n_nodes > 1) return;
    for (uint32_t i = 0; i < kept->plan.n_nodes; i++) {
        if (anywhere) add_need(&kept->node[i], bytes);
        for (uint32_t k = 0; !anywhere && k < p->n_nodes; k++) {
            if (p->node[k] != kept->node[i].node) continue;
            if (node == (int32_t)k) add_need(&kept->node[i], bytes);
            if (node < 0) add_need(&kept->node[i], bytes / p->n_nodes + (k < bytes % p->n_nodes));
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

static int plan_shards(struct shmt_run *run, struct shmt_plan_kept *kept) {
    const struct shmt_spec *spec = &run->spec;
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
        return no_memory(run->call);
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

static int plan_parts(struct shmt_run *run, struct shmt_plan_kept *kept, const struct shmt_prepared *prepared) {
    const struct shmt_placement *p = &run->spec.placement;
    const struct shmt_readers readers = {p, &run->spec, prepared->train_example};
    struct shmt_stretch *stretch;
    const int rc = shmt_load_stretches(prepared->train, &readers, &stretch, &kept->plan.n_parts, &run->call->error);
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
    return kept->part ? 0 : no_memory(run->call);
}

/* Copies of the parameters, or of the hot ones: what is needed of these beyond the tables. */
static void plan_replicas(struct shmt_plan_kept *kept, const struct shmt_spec *spec, const struct shmt_need *bytes) {
    const uint32_t n = shmt_replicas_count(spec);
    uint64_t copies = bytes->parameter_bytes + bytes->state_bytes;
    for (uint32_t i = 0; i < kept->plan.n_shards; i++) copies -= shmt_min_u64(copies, kept->shard[i].bytes);
    for (uint32_t i = 0; i < n; i++)
        need(kept, &spec->placement, spec->placement.private_local ? (int32_t)shmt_replicas_node(spec, i) : -1, copies / n);
}

static int plan_memory(struct shmt_run *run, struct shmt_plan_kept *kept, const struct shmt_prepared *prepared) {
    const struct shmt_spec *spec = &run->spec;
    struct shmtrain_plan *plan = &kept->plan;
    struct shmt_need bytes;
    const int rc = run->backend->plan(spec, &bytes, &run->call->error);
    if (rc < 0) return rc;
    plan->parameter_bytes = bytes.parameter_bytes;
    plan->state_bytes = bytes.state_bytes;
    plan->gradient_bytes = bytes.gradient_bytes;
    if (!shmt_add_u64(bytes.other_bytes, prepared->work_bytes, &plan->other_bytes)) plan->other_bytes = UINT64_MAX;
    const uint64_t train_bytes = shmt_load_own_bytes(prepared->train);
    const uint64_t valid_bytes = prepared->valid ? shmt_load_own_bytes(prepared->valid) : 0;
    if (!shmt_add_u64(train_bytes, valid_bytes, &plan->data_bytes)) plan->data_bytes = UINT64_MAX;
    if (!shmt_add_u64(plan->data_bytes, bytes.total_bytes, &plan->total_bytes) ||
        !shmt_add_u64(plan->total_bytes, prepared->work_bytes, &plan->total_bytes))
        plan->total_bytes = UINT64_MAX;
    const uint64_t share = bytes.gradient_bytes / spec->n_seats;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++)
        need(kept, &spec->placement, spec->placement.private_local ? spec->placement.seat_node[seat] : -1, share);
    plan_replicas(kept, spec, &bytes);
    /* What is left over of whole pages, and what belongs to nobody. */
    uint64_t rest = train_bytes + bytes.gradient_bytes % spec->n_seats;
    for (uint32_t i = 0; i < plan->n_parts && !prepared->train->in_place; i++) rest -= shmt_min_u64(rest, kept->part[i].bytes);
    if (!shmt_add_u64(rest, valid_bytes, &rest) || !shmt_add_u64(rest, plan->other_bytes, &rest)) rest = UINT64_MAX;
    need(kept, &spec->placement, -1, rest);
    return 0;
}

/* ---- a plan ---- */

/* Called with everything counted. */
static int plan_run(struct shmt_run *run, const struct shmt_prepared *prepared, void *arg) {
    struct shmt_plan_kept *kept = arg;
    const struct shmt_placement *p = &run->spec.placement;
    int rc = plan_machine(run->call, kept, prepared->crew);
    if (rc == 0) rc = plan_shards(run, kept);
    if (rc == 0) rc = plan_parts(run, kept, prepared);
    if (rc == 0) rc = plan_memory(run, kept, prepared);
    if (rc == 0) rc = shmt_plan_hosts(run, &kept->plan, &kept->host);
    if (rc < 0) return rc;
    const struct shmtrain_data like = prepared->train->data; /* without its arrays, so far */
    kept->plan.n_layers = shmt_opened_layers(&run->job.opened, &like, &run->job.settings, kept->layer);
    plan_available(kept, prepared->crew);
    memcpy(kept->copies_reason, run->copies_reason, sizeof kept->copies_reason);
    kept->plan.replicas = shmt_replicas_name(run->spec.policy.replicas);
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
static int plan_workers(struct shmt_run *run, struct shmt_plan_kept *kept) {
    struct shmt_crew crew = {0};
    run->backend = shmt_backend_at(run->config->backend);
    int rc = shmt_crew_make(run->call, run->config, run->backend, SHMT_SEAT_OF_THREAD, &crew);
    if (rc == 0) rc = plan_machine(run->call, kept, &crew);
    if (rc == 0) {
        plan_available(kept, &crew);
        const int may_2m = strcmp(run->config->hugepages, "2M") == 0;
        kept->plan.hugepages = shmt_pages_name(may_2m ? SHMT_PAGES_2M : SHMT_PAGES_ORDINARY);
        kept->plan.page_bytes = shmt_pages_bytes(may_2m ? SHMT_PAGES_2M : SHMT_PAGES_ORDINARY);
    }
    shmt_crew_free(&crew);
    return rc;
}

int shmt_plan_make(struct shmt_run *run, const char *data, struct shmt_plan_kept **out) {
    struct shmt_plan_kept *kept = calloc(1, sizeof *kept);
    if (kept) kept->data = strdup(data ? data : "");
    int rc = kept && kept->data ? 0 : no_memory(run->call);
    if (rc == 0) rc = data ? shmt_train_prepare(run, data, plan_run, kept) : plan_workers(run, kept);
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
    kept->plan.layer = kept->layer;
    kept->plan.hosts = kept->host;
    *out = kept;
    return 0;
}

const struct shmtrain_plan *shmt_plan_of(const struct shmt_plan_kept *kept) { return &kept->plan; }
