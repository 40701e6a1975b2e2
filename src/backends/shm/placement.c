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
    const struct shmt_shm_part *const parts[] = {&l->weight, &l->state, &l->l2_share, &l->counted, &l->curvature};
    const size_t n_parts = sizeof parts / sizeof *parts;
    /* Curvatures of what replicas hold belong to no shard. */
    const size_t n_sharded = r->spec->placement.policy == SHMT_PLACE_INTERLEAVE ? 0 : n_parts - (r->spec->hot_floats > 0);
    for (size_t i = 0; i < n_parts; i++) {
        if (i >= n_sharded) interleave(r, parts[i]->off, shmt_shm_part_bytes(parts[i]));
        for (uint64_t k = 0; i < n_sharded && k < parts[i]->n; k++)
            bind_shards(r, parts[i]->off + k * parts[i]->each, parts[i]->each / l->flat.n, shard, n_shards);
    }
}

static void bind_one(struct ranges *r, const struct shmt_shm_part *part, uint64_t i, uint32_t node) {
    bind_to(r, part->off + i * part->each, part->each, node);
}

static void place_seats(struct ranges *r) {
    const struct shmt_placement *p = &r->spec->placement;
    const struct shmt_shm_layout *l = r->layout;
    if (!p->private_local) {
        interleave(r, l->grad.off, shmt_shm_part_bytes(&l->grad));
        return;
    }
    for (uint32_t seat = 0; seat < r->spec->n_seats; seat++) {
        bind_one(r, &l->grad, seat, p->seat_node[seat]);
        bind_one(r, &l->pulled, seat, p->seat_node[seat]);
        if (seat < l->coll_exchange.n) bind_one(r, &l->coll_exchange, seat, p->seat_node[seat]);
        if (l->page_bytes != 4096) continue; /* these end where no large page does */
        bind_one(r, &l->map, seat, p->seat_node[seat]);
        bind_one(r, &l->ring, seat, p->seat_node[seat]);
        bind_one(r, &l->tape, seat, p->seat_node[seat]);
    }
}

/* A replica is its seats' alone, all of it: weights, state, base. */
static void place_replicas(struct ranges *r) {
    const struct shmt_shm_layout *l = r->layout;
    if (l->equal) interleave(r, l->reduced.off, shmt_shm_part_bytes(&l->reduced));
    if (!r->spec->placement.private_local) {
        interleave(r, l->replica.off, shmt_shm_part_bytes(&l->replica));
        return;
    }
    for (uint32_t i = 0; i < l->n_replicas; i++) bind_one(r, &l->replica, i, shmt_replicas_node(r->spec, i));
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
    r.at = calloc(arrays * most + 6 * spec->n_seats + layout->n_replicas + 2, sizeof *r.at);
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
