/* The layout of a run's segment: see layout.h. */
#include "backends/shm/layout.h"

#include "base/random.h"
#include "consistency/chunks.h"
#include "ps/replicas.h"
#include "segment/segment.h"
#include "store/redo.h"

/* Below this many floats a gradient is folded whole: looking at a map would cost more than it saves. */
#define MAP_FROM_FLOATS 4096

/* Row locks: a power of two, at most so many. Units whose numbers differ by a multiple of it share one, which costs time where
 * they meet, and nothing else. */
#define MOST_LOCKS (1u << 16)

/* Likewise of blocks of the master. Those who merge walk through it at different places, so a lock that two blocks share is
 * seldom asked for by two at a time. */
#define MOST_MERGE_LOCKS (1u << 10)

#define MOST_SLICES     256
#define SLICES_PER_SEAT 4
#define SLICE_FLOATS    1024 /* at least */

static uint32_t height_with(const struct shmt_spec *spec, uint32_t n_present) {
    uint32_t highest = 0;
    for (uint32_t seat = 0; seat < n_present; seat++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        shmt_chunk_share(spec->n_chunks, seat, n_present, &from, &to);
        shmt_stack_after(from, to, &stack, &height);
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
    if (!shmt_policy_has_replicas(&spec->policy) || shmt_policy_merges_together(&spec->policy)) return 0;
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
                        shmt_policy_has_replicas(&spec->policy) ? sizeof(struct shmt_redo_log) : 0);
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

int shmt_shm_layout_plan(const struct shmt_spec *spec, struct shmt_shm_layout *out, struct shmt_error *e) {
    struct shmt_layout plan = {0};
    shmt_flat_plan(spec, &out->flat);
    shmt_replicas_cover(spec, &out->flat, &out->cover);
    const uint64_t floats = out->flat.n, table_bytes = product(&plan, floats, sizeof(float)), locks = n_locks(spec),
                   merge_locks = n_merge_locks(spec, out->cover.n);
    const uint64_t page = spec->placement.page_bytes ? spec->placement.page_bytes : 4096;
    const uint64_t held_page = spec->hot_floats > 0 ? shmt_spec_hot_unit(spec) * sizeof(float) : page; /* small parts */
    out->page_bytes = page;
    out->planes = shmt_flat_planes(spec);
    out->lock_mask = (uint32_t)(locks - 1);
    out->merge_mask = (uint32_t)(merge_locks - 1);
    out->n_replicas = shmt_replicas_count(spec);
    out->base = shmt_replicas_keep_base(&spec->policy);
    out->replica_bytes = out->n_replicas ? pages(&plan, product(&plan, out->cover.n, sizeof(float)),
                                                 (UINT64_C(1) + out->planes) * (1 + out->base), held_page)
                                         : 0;
    out->stack = stack_height(spec);
    out->n_slices = n_slices(spec, floats);
    out->touched = out->stack > 0 && floats >= MAP_FROM_FLOATS;
    out->map_bytes = out->touched ? floats / SHMT_TOUCH_FLOATS : 0;
    out->terms = out->touched ? shmt_flat_terms(spec) : 0;
    const uint64_t buffers = out->stack + (out->terms > 0), terms = product(&plan, spec->n_chunks, out->terms);
    out->seat_grad_bytes = pages(&plan, table_bytes, buffers, page);
    out->seat_map_bytes = pages(&plan, out->map_bytes, buffers, 4096);
    out->seat_trace_bytes = pages(&plan, shmt_ring_bytes(spec->trace_events), 1, 4096);
    out->seat_undo_bytes = pages(&plan, undo_bytes(spec, out->planes), 1, 4096);
    out->head_off = shmt_layout_add(&plan, 1, spec->head_bytes);
    out->control_off = shmt_layout_add(&plan, 1, sizeof(struct shmt_shm_control));
    out->fronts_off = shmt_layout_add(&plan, spec->n_seats, sizeof(struct shmt_shm_front));
    out->slots_off = shmt_layout_add(&plan, spec->n_seats, sizeof(struct shmt_shm_slot));
    out->offers_off = shmt_layout_add(&plan, out->n_slices ? spec->n_seats : 0, sizeof(struct shmt_shm_offer));
    out->slices_off = shmt_layout_add(&plan, out->n_slices, sizeof(struct shmt_shm_slice));
    out->ledger_off = shmt_layout_add(&plan, shmt_spec_pieces(spec), sizeof(struct shmt_shm_piece));
    out->locks_off = shmt_layout_add(&plan, locks, sizeof(uint32_t));
    out->merge_locks_off = shmt_layout_add(&plan, merge_locks, SHMT_LINE);
    out->terms_head_off = shmt_layout_add(&plan, out->terms ? spec->n_chunks : 0, sizeof(struct shmt_shm_terms_head));
    out->cut_off = shmt_layout_add(&plan, out->terms ? spec->n_seats : 0, sizeof(uint64_t));
    out->terms_id_off = shmt_layout_add_at(&plan, terms, sizeof(uint32_t), 4096);
    out->terms_value_off = shmt_layout_add_at(&plan, terms, sizeof(float), 4096);
    out->weight_off = shmt_layout_add_at(&plan, floats, sizeof(float), page);
    out->state_off = shmt_layout_add_at(&plan, out->planes, table_bytes, page);
    out->l2_share_off = shmt_layout_add_at(&plan, spec->l2_shares ? floats : 0, sizeof(float), page);
    out->curvature_off = shmt_layout_add_at(&plan, spec->curvatures ? out->cover.n : 0, sizeof(float), held_page);
    out->counted_off = shmt_layout_add_at(&plan, spec->count_lost ? floats : 0, sizeof(uint64_t), page);
    out->grad_off = shmt_layout_add_at(&plan, spec->n_seats, out->seat_grad_bytes, page);
    out->touched_off = shmt_layout_add_at(&plan, spec->n_seats, out->seat_map_bytes, page);
    out->trace_off = shmt_layout_add_at(&plan, spec->n_seats, out->seat_trace_bytes, page);
    out->undo_off = shmt_layout_add_at(&plan, spec->n_seats, out->seat_undo_bytes, 4096);
    out->replica_off = shmt_layout_add_at(&plan, out->n_replicas, out->replica_bytes, held_page);
    out->row_place_off = shmt_layout_add_at(&plan, spec->row_places ? spec->table[0].rows : 0, sizeof(uint32_t), 4096);
    const uint64_t kept = spec->pauses.allowed ? shmt_spec_pieces(spec) : 0;
    out->snapshot_clock_off = shmt_layout_add(&plan, spec->pauses.allowed ? spec->n_seats : 0, sizeof(uint64_t));
    out->snapshot_loss_off = shmt_layout_add(&plan, kept, sizeof(double));
    out->snapshot_done_off = shmt_layout_add(&plan, kept, sizeof(uint32_t));
    out->snapshot_off = shmt_layout_add_at(&plan, spec->pauses.allowed ? UINT64_C(1) + out->planes : 0, table_bytes, page);
    out->board_off = shmt_layout_add_at(&plan, 1, spec->board_bytes, page);
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
