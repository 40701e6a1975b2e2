/* Where the memory of a run's segment shall lie, as ranges with a policy each: called once, by create, before pages are placed.
 *
 * What everybody uses goes over all nodes in turn, or each shard to its node; what one seat alone writes, and a replica, goes
 * to its node. See struct shmt_placement in ps/spec.h for who decides. */
#include <stdlib.h>

#include "backends/shm/shm_priv.h"
#include "ps/replicas.h"
#include "ps/shards.h"

struct ranges {
    const struct shmt_spec *spec;
    const struct shmt_shm_layout *layout;
    struct shmt_memory_range *at;
    uint32_t n;
};

static void add(struct ranges *r, uint64_t off, uint64_t bytes, enum shmt_memory_policy policy) {
    if (bytes == 0) return;
    r->at[r->n++] = (struct shmt_memory_range){.off = off, .bytes = bytes, .policy = policy};
}

/* Over all nodes in turn. */
static void interleave(struct ranges *r, uint64_t off, uint64_t bytes) {
    const struct shmt_placement *p = &r->spec->placement;
    const uint32_t before = r->n;
    add(r, off, bytes, SHMT_MEMORY_INTERLEAVE);
    if (r->n == before) return;
    struct shmt_memory_range *range = &r->at[before];
    range->n_nodes = p->n_nodes;
    for (uint32_t i = 0; i < p->n_nodes; i++) range->node[i] = p->node[i];
}

/* On one node, by its index. */
static void bind_to(struct ranges *r, uint64_t off, uint64_t bytes, uint32_t node) {
    const uint32_t before = r->n;
    add(r, off, bytes, SHMT_MEMORY_BIND);
    if (r->n == before) return;
    r->at[before].n_nodes = 1;
    r->at[before].node[0] = r->spec->placement.node[node];
}

/* An array in the shape of the flat array, of so many bytes for each float: shard by shard, neighbours on one node as one range.
 * Then tables begin on pages. */
static void bind_shards(struct ranges *r, uint64_t off, uint64_t each, const struct shmt_shard *shard, uint64_t n_shards) {
    for (uint64_t i = 0, next; i < n_shards; i = next) {
        for (next = i + 1; next < n_shards && shard[next].node == shard[i].node; next++) continue;
        bind_to(r, off + shard[i].from * each, (shard[next - 1].to - shard[i].from) * each, shard[i].node);
    }
}

static void place_tables(struct ranges *r, const struct shmt_shard *shard, uint64_t n_shards) {
    const struct shmt_shm_layout *l = r->layout;
    const struct {
        uint64_t off, arrays, each;
    } parts[] = {{l->weight_off, 1, sizeof(float)},
                 {l->state_off, l->planes, sizeof(float)},
                 {l->l2_share_off, r->spec->l2_shares, sizeof(float)},
                 {l->curvature_off, r->spec->curvatures && r->spec->hot_floats == 0, sizeof(float)},
                 {l->counted_off, r->spec->count_lost, sizeof(uint64_t)}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint64_t bytes = l->flat.n * parts[i].each;
        if (r->spec->placement.policy == SHMT_PLACE_INTERLEAVE) interleave(r, parts[i].off, parts[i].arrays * bytes);
        if (r->spec->placement.policy != SHMT_PLACE_BIND) continue;
        for (uint64_t k = 0; k < parts[i].arrays; k++) bind_shards(r, parts[i].off + k * bytes, parts[i].each, shard, n_shards);
    }
    /* Of what replicas hold: it belongs to no shard. */
    if (r->spec->hot_floats > 0) interleave(r, l->curvature_off, l->cover.n * sizeof(float));
}

static void place_seats(struct ranges *r) {
    const struct shmt_placement *p = &r->spec->placement;
    const struct shmt_shm_layout *l = r->layout;
    if (!p->private_local) {
        interleave(r, l->grad_off, r->spec->n_seats * l->seat_grad_bytes);
        return;
    }
    for (uint32_t seat = 0; seat < r->spec->n_seats; seat++) {
        const uint32_t node = p->seat_node[seat];
        bind_to(r, l->grad_off + seat * l->seat_grad_bytes, l->seat_grad_bytes, node);
        if (l->page_bytes != 4096) continue; /* these end where no large page does */
        bind_to(r, l->touched_off + seat * l->seat_map_bytes, l->seat_map_bytes, node);
        bind_to(r, l->trace_off + seat * l->seat_trace_bytes, l->seat_trace_bytes, node);
    }
}

/* A replica is its seats' alone, all of it: weights, state, base. */
static void place_replicas(struct ranges *r) {
    const struct shmt_shm_layout *l = r->layout;
    if (!r->spec->placement.private_local) {
        interleave(r, l->replica_off, l->n_replicas * l->replica_bytes);
        return;
    }
    for (uint32_t i = 0; i < l->n_replicas; i++)
        bind_to(r, l->replica_off + i * l->replica_bytes, l->replica_bytes, shmt_replicas_node(r->spec, i));
}

int shmt_shm_ranges_make(const struct shmt_spec *spec, const struct shmt_shm_layout *layout, struct shmt_memory_range **out,
                         uint32_t *n_out, struct shmt_error *e) {
    const struct shmt_placement *p = &spec->placement;
    const uint64_t arrays = 3 + layout->planes, most = shmt_shards_most(spec);
    *out = NULL;
    *n_out = 0;
    if (p->n_nodes == 0 || p->policy == SHMT_PLACE_OFF) return 0;
    struct shmt_shard *shard = malloc(most * sizeof *shard);
    struct ranges r = {.spec = spec, .layout = layout};
    r.at = calloc(arrays * most + 3 * spec->n_seats + layout->n_replicas + 1, sizeof *r.at);
    if (!shard || !r.at) {
        free(shard);
        free(r.at);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory to place %u tables", spec->n_tables);
    }
    place_tables(&r, shard, shmt_shards_plan(spec, &layout->flat, shard));
    place_seats(&r);
    place_replicas(&r);
    free(shard);
    *out = r.at;
    *n_out = r.n;
    return 0;
}
