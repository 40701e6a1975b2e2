/* The layout of a run's segment: see layout.h. */
#include "backends/shm/layout.h"

#include "base/random.h"
#include "consistency/chunks.h"
#include "ps/norm.h"
#include "ps/replicas.h"
#include "segment/segment.h"
#include "update/redo.h"

/* Below this many floats a gradient is folded whole: looking at a map would cost more than it saves. */
#define MAP_FROM_FLOATS 4096

/* Row locks: a power of two, at most so many. Units whose numbers differ by a multiple of it share one, which costs time where
 * they meet, and nothing else. */
#define MOST_LOCKS (1u << 16)

/* Likewise of blocks of the master. Those who merge walk through it at different places, so a lock that two blocks share is
 * seldom asked for by two at a time. */
#define MOST_MERGE_LOCKS (1u << 10)

#define WORDS_OF_LINE (SHMT_LINE / sizeof(uint64_t))

#define MOST_SLICES     256
#define SLICES_PER_SEAT 4
#define SLICE_FLOATS    1024 /* at least */

static uint32_t height_with(const struct shmt_spec *spec, uint32_t n_present) {
    uint32_t highest = 0;
    for (uint32_t seat = 0; seat < n_present; seat++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        shmt_spec_chunks_of(spec, seat, n_present, &from, &to);
        shmt_stack_after(from, to, shmt_flat_is_dense(spec), &stack, &height);
        if (height > highest) highest = height;
    }
    return highest;
}

/* Batches: of every number of seats that may take part, because guests come and go. Rounds: a gradient of each clock that may
 * still wait for those of others. */
static uint32_t stack_height(const struct shmt_spec *spec) {
    uint32_t highest = 0;
    if (shmt_policy_has_rounds(&spec->policy)) return (uint32_t)spec->policy.staleness + 1;
    if (!shmt_policy_is_batched(&spec->policy)) return 0;
    for (uint32_t n = spec->n_seats - spec->n_guests; n <= spec->n_seats; n++)
        highest = (uint32_t)shmt_max_u64(highest, height_with(spec, n));
    return highest;
}

static uint64_t units_of(const struct shmt_table_spec *table) {
    return table->width == 1 ? table->rows : shmt_ceil_div(shmt_table_floats(table), SHMT_LOCK_FLOATS);
}

static uint64_t units_before(const struct shmt_spec *spec, uint32_t t) {
    uint64_t first = 0;
    for (uint32_t before = 0; before < t; before++) first += units_of(&spec->table[before]);
    return first;
}

uint64_t shmt_shm_lock_first(const struct shmt_spec *spec, uint32_t replica, uint32_t t) {
    return replica * units_before(spec, spec->n_tables) + units_before(spec, t);
}

static uint32_t n_locks(const struct shmt_spec *spec) {
    uint32_t n = 1;
    if (spec->policy.write != SHMT_WRITE_LOCKED) return 0;
    while (n < MOST_LOCKS && n < shmt_shm_lock_first(spec, (uint32_t)shmt_max_u64(1, shmt_replicas_count(spec)), 0)) n *= 2;
    return n;
}

static uint32_t n_merge_locks(const struct shmt_spec *spec, uint64_t floats) {
    uint32_t n = 1;
    if (!shmt_policy_merges_replicas(&spec->policy) || shmt_policy_merges_together(&spec->policy)) return 0;
    while (n < MOST_MERGE_LOCKS && n < shmt_ceil_div(floats, SHMT_MERGE_FLOATS)) n *= 2;
    return n;
}

/* A few for each seat, so that those who apply an update at one time find a free one; a small one costs more to take than to
 * change. */
static uint32_t n_slices(const struct shmt_spec *spec, uint64_t floats) {
    const uint64_t most = shmt_min_u64(MOST_SLICES, SLICES_PER_SEAT * (uint64_t)spec->n_seats);
    if (!shmt_policy_has_rounds(&spec->policy)) return 0;
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(most, floats / SLICE_FLOATS));
}

/* What a seat keeps at a time: the old bytes of some floats with their state, which are the block of an apply phase, or a unit
 * under its lock; or the log of a merge. */
static uint64_t undo_bytes(const struct shmt_spec *spec, uint32_t planes) {
    const enum shmt_write write = spec->policy.write;
    uint64_t floats = 0;
    if (!spec->may_die) return 0;
    if (write == SHMT_WRITE_AGGREGATE) floats = SHMT_SHM_BLOCK;
    for (uint32_t t = 0; t < spec->n_tables && write == SHMT_WRITE_LOCKED; t++)
        floats = shmt_max_u64(floats, spec->table[t].width == 1 ? 1 : SHMT_LOCK_FLOATS);
    return shmt_max_u64(floats * (UINT64_C(1) + planes) * sizeof(float),
                        shmt_policy_merges_replicas(&spec->policy) ? sizeof(struct shmt_redo_log) : 0);
}

/* a * b; 0, and the plan has failed, when that is beyond all arithmetic. */
static uint64_t product(struct shmt_layout *plan, uint64_t a, uint64_t b) {
    uint64_t out = 0;
    if (!shmt_mul_u64(a, b, &out)) plan->failed = 1;
    return out;
}

/* a * b in whole pages. */
static uint64_t pages(struct shmt_layout *plan, uint64_t a, uint64_t b, uint64_t page) {
    uint64_t out = 0;
    if (!shmt_round_up_u64(product(plan, a, b), page, &out)) plan->failed = 1;
    return out;
}

/* n elements of `each` bytes behind all that was placed before. */
static struct shmt_shm_part place(struct shmt_layout *plan, uint64_t n, uint64_t each, uint64_t alignment) {
    const uint64_t off = alignment == SHMT_LINE ? shmt_layout_add(plan, n, each) : shmt_layout_add_at(plan, n, each, alignment);
    return (struct shmt_shm_part){.off = off, .n = n, .each = each};
}

/* `held_page`: what parts that are mapped from here or there are aligned to. */
static void place_all(const struct shmt_spec *spec, struct shmt_layout *plan, uint64_t held_page, struct shmt_shm_layout *l) {
    const uint64_t seats = spec->n_seats, pieces = shmt_spec_pieces(spec), page = l->page_bytes;
    const uint64_t array = product(plan, l->flat.n, sizeof(float)), held = product(plan, l->cover.n, sizeof(float));
    const uint64_t buffers = l->stack + (l->terms > 0), copies = (UINT64_C(1) + l->planes) * (1 + l->base);
    const uint64_t norm_parts = shmt_policy_is_batched(&spec->policy) ? shmt_norm_parts(spec, &l->flat) : 0;
    const bool merges = shmt_spec_merges_over_hosts(spec);
    const uint64_t passed = shmt_spec_most_passed(spec);
    const uint64_t lists = l->terms ? spec->n_chunks : 0, terms = product(plan, lists, l->terms);
#define PLACE(name, type, n, each, alignment) l->name = place(plan, n, each, alignment);
    SHMT_SHM_PARTS(PLACE)
#undef PLACE
}

static uint32_t count_far_nodes(const struct shmt_spec *spec) {
    struct shmt_subtree node[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    const bool sums = shmt_spec_is_linked(spec) && shmt_policy_is_batched(&spec->policy);
    if (shmt_spec_has_quorum_of_hosts(spec)) return 1;
    return sums ? shmt_far_nodes(spec->n_chunks, spec->hosts.n, shmt_spec_far_without(spec), node, NULL) : 0;
}

int shmt_shm_layout_plan(const struct shmt_spec *spec, struct shmt_shm_layout *out, struct shmt_error *e) {
    struct shmt_layout plan = {0};
    const uint64_t page = spec->placement.page_bytes ? spec->placement.page_bytes : 4096;
    const uint64_t held_page = spec->hot_floats > 0 ? shmt_spec_hot_unit(spec) * sizeof(float) : page; /* small parts */
    *out = (struct shmt_shm_layout){.page_bytes = page,
                                    .planes = shmt_flat_planes(spec),
                                    .stack = stack_height(spec),
                                    .n_replicas = shmt_replicas_count(spec),
                                    .equal = shmt_policy_has_equal_copies(&spec->policy) && spec->n_seats > 1,
                                    .ready_words = (uint32_t)(shmt_ceil_div(spec->n_tables, WORDS_OF_LINE) * WORDS_OF_LINE),
                                    .links = shmt_spec_is_linked(spec),
                                    .far_nodes = count_far_nodes(spec),
                                    .base = shmt_replicas_keep_base(&spec->policy)};
    shmt_flat_plan(spec, &out->flat);
    shmt_replicas_cover(spec, &out->flat, &out->cover);
    out->n_slices = n_slices(spec, out->flat.n);
    const bool sums = out->stack > 0 || out->far_nodes > 0; /* a host may have no chunk of its own */
    out->touched = sums && out->flat.n >= MAP_FROM_FLOATS;
    out->map_bytes = out->touched ? out->flat.n / SHMT_TOUCH_FLOATS : 0;
    out->terms = out->touched ? shmt_flat_terms(spec) : 0;
    out->tells = out->links && shmt_policy_is_batched(&spec->policy) && shmt_flat_is_dense(spec) && out->terms == 0;
    place_all(spec, &plan, held_page, out);
    out->lock_mask = (uint32_t)(out->locks.n - 1);
    out->merge_mask = (uint32_t)(out->merge_locks.n - 1);
    out->bytes = plan.bytes;
    if (plan.failed) return shmt_fail(e, SHMTRAIN_E_MEMORY, "the store would be larger than any memory");
    return 0;
}

uint64_t shmt_shm_layout_fingerprint(void) {
    uint64_t h = shmt_hash64(SHMT_SHM_LAYOUT_VERSION, sizeof(struct shmt_shm_control), sizeof(struct shmt_shm_slot),
                             sizeof(struct shmt_shm_piece) << 32 | sizeof(struct shmt_shm_front));
    h = shmt_hash64(h, offsetof(struct shmt_shm_control, abort), offsetof(struct shmt_shm_control, over), SHMT_LINE);
    h = shmt_hash64(h, offsetof(struct shmt_shm_control, pause_step), offsetof(struct shmt_shm_control, asked),
                    offsetof(struct shmt_shm_control, snapshot_before));
    h = shmt_hash64(h, sizeof(struct shmt_shm_offer), sizeof(struct shmt_shm_list),
                    sizeof(struct shmt_shm_terms_head) << 32 | sizeof(struct shmt_shm_slice));
    h = shmt_hash64(h, offsetof(struct shmt_shm_slot, records), sizeof(struct shmt_redo_log), SHMT_REDO_FLOATS);
    h = shmt_hash64(h, sizeof(struct shmt_ring), sizeof(struct shmt_event), offsetof(struct shmt_event, kind));
    return shmt_hash64(
        h, offsetof(struct shmt_shm_slot, counters), offsetof(struct shmt_shm_slot, undo),
        sizeof(struct shmt_gate) << 32 | sizeof(struct shmt_counters) << 16 | offsetof(struct shmt_shm_front, guest));
}
