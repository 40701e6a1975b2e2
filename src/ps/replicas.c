/* Whose each replica is: see replicas.h. */
#include "ps/replicas.h"

/* Whether some seat is on the node; a spec without nodes has one. */
static bool has_seats(const struct shmt_spec *spec, uint32_t node) {
    if (spec->placement.n_nodes <= 1) return node == 0;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++)
        if (spec->placement.seat_node[seat] == node) return true;
    return false;
}

/* Nodes below `node` that have seats. */
static uint32_t nodes_below(const struct shmt_spec *spec, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < node; i++) n += has_seats(spec, i);
    return n;
}

uint32_t shmt_replicas_count(const struct shmt_spec *spec) {
    switch (spec->policy.replicas) {
        case SHMT_REPLICAS_WORKER:
            return (uint32_t)shmt_ceil_div(spec->n_seats, shmt_seats_of_worker(spec));
        case SHMT_REPLICAS_NODE:
            return nodes_below(spec, (uint32_t)shmt_max_u64(1, spec->placement.n_nodes));
        case SHMT_REPLICAS_EQUAL:
            return spec->n_seats - 1;
        default:
            return 0;
    }
}

/* Of the run's own workers. Where those of many hosts are merged together, each host is taken to have as many. */
static uint32_t count_own(const struct shmt_spec *spec) {
    const uint32_t here = spec->policy.replicas == SHMT_REPLICAS_WORKER ? spec->n_workers : shmt_replicas_count(spec);
    return shmt_spec_merges_over_hosts(spec) ? here * spec->hosts.n : here;
}

uint32_t shmt_replicas_averaged(const struct shmt_spec *spec) {
    if (!shmt_policy_merges_replicas(&spec->policy) || spec->policy.merge == SHMT_MERGE_SUM ||
        shmt_policy_is_damped(&spec->policy))
        return 1;
    return count_own(spec);
}

uint32_t shmt_replicas_summed(const struct shmt_spec *spec) {
    if (!shmt_policy_merges_replicas(&spec->policy) || spec->policy.merge != SHMT_MERGE_SUM) return 1;
    return count_own(spec);
}

#define SLOWEST 16 /* turns */

uint32_t shmt_replicas_merge_all_every(const struct shmt_spec *spec) {
    const uint64_t every = shmt_replicas_stretch(&spec->policy), seats = spec->n_seats - spec->n_guests;
    if (!shmt_policy_is_damped(&spec->policy) || spec->policy.staleness != SHMT_STALENESS_INF) return (uint32_t)every;
    /* One after the other: what somebody else's store says may be as large as it likes. */
    const uint64_t turns = spec->n_examples / shmt_max_u64(1, spec->item) / shmt_max_u64(1, every) / shmt_max_u64(1, seats);
    return (uint32_t)shmt_min_u64(UINT32_MAX, every * shmt_max_u64(1, shmt_min_u64(SLOWEST, turns)));
}

uint32_t shmt_replicas_of(const struct shmt_spec *spec, uint32_t seat) {
    switch (spec->policy.replicas) {
        case SHMT_REPLICAS_WORKER:
            return seat / shmt_seats_of_worker(spec);
        case SHMT_REPLICAS_NODE:
            return spec->placement.n_nodes <= 1 ? 0 : nodes_below(spec, spec->placement.seat_node[seat]);
        case SHMT_REPLICAS_EQUAL:
            return seat > 0 ? seat - 1 : SHMT_REPLICA_NONE;
        default:
            return 0;
    }
}

/* One by one, n seats would take n^2 looks for each node. */
void shmt_replicas_of_all(const struct shmt_spec *spec, uint32_t *out) {
    uint32_t of_node[SHMT_MAX_NODES];
    const bool by_node = spec->policy.replicas == SHMT_REPLICAS_NODE && spec->placement.n_nodes > 1;
    for (uint32_t node = 0; by_node && node < spec->placement.n_nodes; node++) of_node[node] = nodes_below(spec, node);
    for (uint32_t seat = 0; seat < spec->n_seats; seat++)
        out[seat] = by_node ? of_node[spec->placement.seat_node[seat]] : shmt_replicas_of(spec, seat);
}

uint32_t shmt_replicas_node(const struct shmt_spec *spec, uint32_t replica) {
    if (spec->policy.replicas == SHMT_REPLICAS_EQUAL) return spec->placement.seat_node[replica + 1];
    if (spec->policy.replicas == SHMT_REPLICAS_WORKER) return spec->placement.seat_node[replica * shmt_seats_of_worker(spec)];
    for (uint32_t node = 0; node < spec->placement.n_nodes; node++)
        if (has_seats(spec, node) && nodes_below(spec, node) == replica) return node;
    return 0;
}

void shmt_replicas_cover(const struct shmt_spec *spec, const struct shmt_flat *flat, struct shmt_cover *out) {
    const uint64_t unit = shmt_spec_hot_unit(spec), n = flat->n;
    *out = (struct shmt_cover){n, n, n};
    if (spec->hot_floats == 0) return;
    out->hot = spec->hot_floats;
    out->tail = (spec->table[0].rows - 1) / unit * unit; /* of the one table, which begins at 0 */
    out->n = out->hot + shmt_min_u64(unit, n - out->tail);
}
