/* Bringing gradients to the parameters, block by block: what both engines of `aggregate` do, and the apply phase of batches,
 * in which every seat adds all gradients over its slice of the parameters, along the same tree whoever computed which part of
 * it, and runs the update rule there.
 *
 * The gradient buffers of others are read, never written. In batches they were published by the meeting before, and their
 * owners clear them only after the meeting that follows; for rounds see slices.c. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "store/kernels.h"

#define NOBODY UINT32_MAX
#define TIMED  16 /* of so many blocks one is timed for a trace: looking at the clock costs as much as a block */

/* Which seat's buffer holds the sum of which subtree: a function of the configuration and of who takes part in this epoch. */
void shmt_shm_nodes_make(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint32_t n_chunks = store->spec.n_chunks;
    uint32_t index = 0;
    for (uint32_t i = 0; i < 2 * n_chunks; i++) p->nodes[i].seat = NOBODY;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        if (!shmt_shm_takes_part(p, seat)) continue;
        shmt_chunk_share(n_chunks, index++, p->seat.n_present, &from, &to);
        shmt_stack_after(from, to, &stack, &height);
        for (uint32_t slot = 0; slot < stack.n; slot++) {
            const struct shmt_subtree sub = stack.at[slot];
            p->nodes[(n_chunks >> sub.level) + (sub.first >> sub.level)] = (struct shmt_shm_node){seat, slot};
        }
    }
}

bool shmt_shm_is_touched(const uint8_t *map, uint64_t at, uint64_t n) {
    if (!map) return true;
    const uint64_t from = at / SHMT_TOUCH_FLOATS, to = shmt_ceil_div(at + n, SHMT_TOUCH_FLOATS);
    return memchr(map + from, 1, to - from) != NULL;
}

/* The sum of subtree (level, index) over the floats at .. at + n - 1; NULL when it is zero. It stands in a seat's buffer, or
 * has been added up in scratch[0]; the blocks behind that one are for the subtrees below. */
static const float *sum_of(const struct shmt_shm_seat *p, uint32_t level, uint32_t index, uint64_t at, uint64_t n,
                           float (*scratch)[SHMT_SHM_BLOCK]) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_node node = p->nodes[(store->spec.n_chunks >> level) + index];
    if (node.seat != NOBODY) {
        if (!shmt_shm_is_touched(shmt_shm_map(store, node.seat, node.slot), at, n)) return NULL;
        return shmt_shm_buffer(store, node.seat, node.slot) + at;
    }
    if (level == 0) return NULL; /* does not happen: every chunk is somebody's */
    const float *left = sum_of(p, level - 1, 2 * index, at, n, scratch + 1);
    if (left == scratch[1]) left = memcpy(scratch[0], left, n * sizeof(float));
    const float *right = sum_of(p, level - 1, 2 * index + 1, at, n, scratch + 1);
    if (!right) return left;
    if (!left) return right == scratch[1] ? memcpy(scratch[0], right, n * sizeof(float)) : right;
    for (uint64_t i = 0; i < n; i++) scratch[0][i] = left[i] + right[i];
    return scratch[0];
}

/* The block at .. end - 1 by the rule, so that a death in the middle of it can be taken back. */
static void change_block(const struct shmt_shm_seat *p, const float *grad, const struct shmt_update *u, uint64_t at,
                         uint64_t end) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_layout *l = &store->layout;
    SHMT_POINT("block:before");
    shmt_undo_open(&p->undo, at, end - at, store->weight + at, l->planes > 0 ? store->state + at : NULL, l->flat.n, l->planes);
    SHMT_POINT("block:open");
    shmt_flat_apply(&store->spec, &l->flat, store->weight, store->state, grad, at, end, u);
    SHMT_POINT("block:written");
    shmt_undo_close(&p->undo, shmt_undo_word(end, 0));
    SHMT_POINT("block:after");
}

/* The byte that says whether lists have brought something to the block of float `at`: then it is in my buffer behind those of
 * the stack. */
static uint8_t *listed_of(const struct shmt_shm_seat *p, uint64_t at) {
    return shmt_shm_map(p->store, p->seat.rank, p->store->layout.stack) + at / SHMT_TERMS_BLOCK;
}

/* For the next batch all of the block is cleared, while it is near: to look which lines were touched takes longer. */
static void forget_lists(const struct shmt_shm_seat *p, uint64_t at, uint64_t end) {
    uint8_t *listed = listed_of(p, at);
    if (!*listed) return;
    memset(shmt_shm_buffer(p->store, p->seat.rank, p->store->layout.stack) + at, 0, (end - at) * sizeof(float));
    *listed = 0;
}

/* The block at .. end - 1; times NULL: nobody asks. */
static void apply_block(const struct shmt_shm_seat *p, shmt_shm_sum *sum, const struct shmt_update *u, uint64_t at,
                        uint64_t end, struct shmt_shm_times *times) {
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    const uint64_t began_ns = times ? shmt_now_ns() : 0;
    const float *grad = sum(p, at, end - at, scratch);
    const uint64_t summed_ns = times ? shmt_now_ns() : 0;
    if (grad || shmt_rule_moves_all(&p->store->spec.rule)) change_block(p, grad, u, at, end);
    if (p->store->layout.terms) forget_lists(p, at, end);
    if (!times) return;
    times->aggregate_ns += summed_ns - began_ns;
    times->update_ns += shmt_now_ns() - summed_ns;
}

void shmt_shm_apply_range(struct shmt_shm_seat *p, shmt_shm_sum *sum, const struct shmt_update *u, uint64_t from, uint64_t to,
                          struct shmt_shm_times *times) {
    for (uint64_t at = from, end; at < to; at = end) {
        const bool timed = times && times->blocks++ % TIMED == 0;
        end = shmt_min_u64((at / SHMT_SHM_BLOCK + 1) * SHMT_SHM_BLOCK, to);
        apply_block(p, sum, u, at, end, timed ? times : NULL);
    }
}

void shmt_shm_apply_begins(struct shmt_shm_seat *p, uint64_t step) {
    if (!p->seat.trace) return;
    shmt_trace_step(p->seat.trace, p->epoch, step);
    shmt_trace_turn(p->seat.trace, SHMT_EVENT_AGGREGATE);
}

void shmt_shm_apply_ends(struct shmt_shm_seat *p, const struct shmt_shm_times *times) {
    if (p->seat.trace) shmt_trace_shares(p->seat.trace, times->aggregate_ns, times->update_ns, times->blocks);
}

/* ---- batches ---- */

static const float *sum_of_chunks(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    return sum_of(p, (uint32_t)__builtin_ctz(p->store->spec.n_chunks), 0, at, n, scratch); /* a power of two */
}

static const float *sum_of_listed(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    (void)n;
    (void)scratch;
    return *listed_of(p, at) ? shmt_shm_buffer(p->store, p->seat.rank, p->store->layout.stack) + at : NULL;
}

static const float *sum_of_both(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    const float *chunks = sum_of_chunks(p, at, n, scratch), *listed = sum_of_listed(p, at, n, scratch);
    if (!chunks || !listed) return chunks ? chunks : listed;
    for (uint64_t i = 0; i < n; i++) scratch[0][i] = chunks[i] + listed[i];
    return scratch[0];
}

/* Where the gradient of this batch is: in the chunks' buffers, in their lists, or in both. */
static shmt_shm_sum *find_sum(const struct shmt_shm_seat *p) {
    if (p->store->layout.terms == 0) return sum_of_chunks;
    for (uint32_t chunk = 0; chunk < p->store->spec.n_chunks; chunk++)
        if (shmt_shm_is_summed(p->store, chunk)) return sum_of_both;
    return sum_of_listed;
}

void shmt_shm_apply_from_start(struct shmt_shm_seat *p) {
    uint64_t from, to;
    shmt_shm_my_slice(p, &from, &to);
    shmt_undo_close(&p->undo, shmt_undo_word(from, 0));
}

static void sum_lists(const struct shmt_shm_seat *p, uint64_t from, uint64_t to, struct shmt_shm_times *times) {
    const uint64_t began_ns = times ? shmt_now_ns() : 0;
    shmt_shm_sum_lists(p, from, to);
    if (times) times->aggregate_ns += (shmt_now_ns() - began_ns) / TIMED; /* as if it were a part of each block */
}

void shmt_shm_apply(struct shmt_shm_seat *p, uint64_t examples) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_times times = {0};
    struct shmt_update u;
    uint64_t from, to;
    shmt_spec_update(&store->spec, p->epoch, p->step, &u);
    u.scale = 1.0f / (float)examples;
    shmt_shm_my_slice(p, &from, &to);
    /* relaxed: mine; of an earlier life, where it stood */
    if (p->undo.word) from = shmt_max_u64(from, shmt_min_u64(to, shmt_undo_at(load_relaxed(p->undo.word))));
    shmt_shm_apply_begins(p, p->step);
    if (store->layout.terms) sum_lists(p, from, to, p->seat.trace ? &times : NULL);
    shmt_shm_apply_range(p, find_sum(p), &u, from, to, p->seat.trace ? &times : NULL);
    shmt_shm_apply_ends(p, &times);
}
