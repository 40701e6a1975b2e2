/* Strata and the order of examples within them: see strata.h. */
#include "ps/strata.h"

#include "base/random.h"
#include "consistency/chunks.h"

/* Many hosts have one order of examples, whatever nodes each of them has. */
static uint32_t n_nodes(const struct shmt_spec *spec) {
    return shmt_spec_is_linked(spec) ? 1 : (uint32_t)shmt_max_u64(1, spec->placement.n_nodes);
}

/* Whose examples are dealt by chunks of a batch; else by items. */
static bool is_batched(const struct shmt_spec *spec) { return shmt_policy_is_batched(&spec->policy); }

uint32_t shmt_strata_count(const struct shmt_spec *spec) { return is_batched(spec) ? spec->n_chunks : n_nodes(spec); }

bool shmt_strata_follow_seats(const struct shmt_spec *spec) {
    return !is_batched(spec) && spec->order.shuffle && shmt_strata_count(spec) > 1;
}

/* ---- by items ---- */

/* Seats on nodes below `node`. */
static uint32_t seats_below(const struct shmt_spec *spec, uint32_t node) {
    uint32_t n = 0;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) n += spec->placement.seat_node[seat] < node;
    return n;
}

uint32_t shmt_strata_region(const struct shmt_spec *spec, uint32_t seat) {
    const uint32_t node = spec->placement.seat_node[seat];
    uint32_t region = seats_below(spec, node);
    for (uint32_t before = 0; before < seat; before++) region += spec->placement.seat_node[before] == node;
    return region;
}

/* The first place of region `region` (of n_seats): where an item begins. */
static uint64_t region_place(const struct shmt_spec *spec, uint32_t region) {
    const uint64_t item = (uint64_t)((unsigned __int128)shmt_spec_steps(spec) * region / spec->n_seats);
    return shmt_min_u64(item * spec->item, spec->n_examples);
}

static void items_at(const struct shmt_spec *spec, uint32_t node, struct shmt_stratum *out) {
    const uint32_t nodes = n_nodes(spec);
    const uint64_t from = node == 0 ? 0 : region_place(spec, seats_below(spec, node));
    const uint64_t to = node + 1 == nodes ? spec->n_examples : region_place(spec, seats_below(spec, node + 1));
    *out = (struct shmt_stratum){.first = from, .n = to - from, .node = node};
}

/* ---- by batches ---- */

/* Examples of all chunks below `chunk`, over all batches of an epoch. Cuts of a short last batch stay where they are. */
static uint64_t below_chunk(const struct shmt_spec *spec, uint32_t chunk) {
    const uint64_t full = spec->n_examples / spec->batch, last = spec->n_examples % spec->batch;
    uint64_t from, to;
    if (chunk == spec->n_chunks) return spec->n_examples;
    shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, spec->batch, &from, &to);
    return full * from + shmt_min_u64(last, from);
}

static uint32_t seat_of_chunk(const struct shmt_spec *spec, uint32_t chunk) {
    const uint32_t own = spec->n_seats - spec->n_guests;
    for (uint32_t seat = 0; seat < own; seat++) {
        uint32_t from, to;
        shmt_chunk_share(spec->n_chunks, seat, own, &from, &to);
        if (chunk >= from && chunk < to) return seat;
    }
    return 0;
}

static void batch_at(const struct shmt_spec *spec, uint32_t chunk, struct shmt_stratum *out) {
    const uint64_t from = below_chunk(spec, chunk);
    *out = (struct shmt_stratum){
        .first = from, .n = below_chunk(spec, chunk + 1) - from, .node = spec->placement.seat_node[seat_of_chunk(spec, chunk)]};
}

void shmt_strata_at(const struct shmt_spec *spec, uint32_t i, struct shmt_stratum *out) {
    if (is_batched(spec))
        batch_at(spec, i, out);
    else
        items_at(spec, i, out);
}

/* ---- order ---- */

/* A run of places that lie side by side in one stratum. */
struct stretch {
    uint32_t stratum;
    uint64_t first, n; /* of the stratum, in examples of the data */
    uint64_t from, to; /* places within the stratum */
};

static struct stretch items_stretch(const struct shmt_spec *spec, uint64_t place, uint64_t n) {
    struct shmt_stratum s = {0};
    uint32_t i = 0;
    for (items_at(spec, 0, &s); place >= s.first + s.n; items_at(spec, ++i, &s)) continue;
    const uint64_t from = place - s.first;
    return (struct stretch){i, s.first, s.n, from, shmt_min_u64(s.n, from + n)};
}

static struct stretch batch_stretch(const struct shmt_spec *spec, uint64_t place, uint64_t n) {
    const uint64_t step = place / spec->batch, at = place % spec->batch;
    uint32_t low = 0, high = spec->n_chunks; /* the chunk of place `at`: the last one that begins at it or before */
    uint64_t from, to;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        shmt_chunk_examples(spec->batch, spec->n_chunks, middle, spec->batch, &from, &to);
        if (from <= at)
            low = middle;
        else
            high = middle;
    }
    shmt_chunk_examples(spec->batch, spec->n_chunks, low, spec->batch, &from, &to);
    const uint64_t first = below_chunk(spec, low), inside = step * (to - from) + (at - from);
    return (struct stretch){low, first, below_chunk(spec, low + 1) - first, inside, inside + shmt_min_u64(n, to - at)};
}

void shmt_strata_order(const struct shmt_spec *spec, uint32_t epoch, uint64_t first, uint64_t n, uint32_t *example_out) {
    if (!spec->order.shuffle || shmt_strata_count(spec) == 1) {
        shmt_order_fill(&spec->order, epoch, first, (uint32_t)n, example_out);
        return;
    }
    while (n > 0) {
        const struct stretch s = is_batched(spec) ? batch_stretch(spec, first, n) : items_stretch(spec, first, n);
        const struct shmt_order order = {
            .seed = shmt_hash64(spec->order.seed, s.stratum, 0, 0), .n_examples = s.n, .shuffle = true};
        const uint32_t count = (uint32_t)(s.to - s.from);
        shmt_order_fill(&order, epoch, s.from, count, example_out);
        for (uint32_t i = 0; i < count; i++) example_out[i] += (uint32_t)s.first;
        example_out += count;
        first += count;
        n -= count;
    }
}
