/* Planning shards: see shards.h. */
#include "ps/shards.h"

static uint64_t parts_of(const struct shmt_spec *spec) { return shmt_max_u64(1, spec->placement.parts); }

uint64_t shmt_shards_most(const struct shmt_spec *spec) { return spec->n_tables * parts_of(spec); }

static uint64_t page_floats(const struct shmt_spec *spec) {
    return (spec->placement.page_bytes ? spec->placement.page_bytes : 4096) / sizeof(float);
}

/* The node for the next shard of `floats`; load: what each has so far. Where copies are equal, the parameters are seat 0's. */
static uint32_t choose(const struct shmt_spec *spec, uint64_t n_before, uint64_t floats, uint64_t *load) {
    const struct shmt_placement *p = &spec->placement;
    if (shmt_policy_has_equal_copies(&spec->policy)) return p->seat_node[0];
    const uint32_t nodes = (uint32_t)shmt_max_u64(1, p->n_nodes);
    uint32_t node = (uint32_t)(n_before % nodes);
    if (p->strategy == SHMT_SHARDS_GREEDY) {
        node = 0;
        for (uint32_t i = 1; i < nodes; i++)
            if (load[i] < load[node]) node = i;
    }
    load[node] += floats;
    return node;
}

uint64_t shmt_shards_plan(const struct shmt_spec *spec, const struct shmt_flat *flat, struct shmt_shard *out) {
    uint64_t load[SHMT_MAX_NODES] = {0}, n = 0;
    const uint64_t page = page_floats(spec), parts = parts_of(spec);
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        const uint64_t start = flat->start[t], end = t + 1 < spec->n_tables ? flat->start[t + 1] : flat->n;
        const uint64_t pages = shmt_ceil_div(end - start, page);
        for (uint64_t part = 0; part < parts; part++) {
            const uint64_t from = start + pages * part / parts * page, to = start + pages * (part + 1) / parts * page;
            if (from >= to || from >= end) continue;
            const uint64_t floats = shmt_min_u64(to, end) - from;
            out[n] = (struct shmt_shard){.table = t, .node = choose(spec, n, floats, load), .from = from, .to = from + floats};
            n++;
        }
    }
    return n;
}
