/* The apply phase of `aggregate`: every seat adds all gradients over its slice of the parameters, along the same tree whoever
 * computed which part of it, and runs the update rule there.
 *
 * The gradient buffers of others are read, never written: they were published by the meeting before, and their owners clear
 * them only after the meeting that follows. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "store/kernels.h"

#define BLOCK  256 /* floats that are added at a time: 16 lines, so a block's touched bytes are two words */
#define NOBODY UINT32_MAX
#define TIMED  16 /* of so many blocks one is timed for a trace: looking at the clock costs as much as a block */

static uint32_t levels_of(uint32_t n_chunks) {
    uint32_t level = 0;
    while ((1u << level) < n_chunks) level++;
    return level;
}

/* Which seat's buffer holds the sum of which subtree: a function of the configuration and of who takes part in this epoch. */
void shmt_shm_nodes_make(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint32_t n_chunks = store->spec.n_chunks;
    uint32_t index = 0;
    for (uint32_t i = 0; i < 2 * n_chunks; i++) p->nodes[i].seat = NOBODY;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        if (!shmt_shm_is_present(store, seat)) continue;
        shmt_chunk_share(n_chunks, index++, p->seat.n_present, &from, &to);
        shmt_stack_after(from, to, &stack, &height);
        for (uint32_t slot = 0; slot < stack.n; slot++) {
            const struct shmt_subtree sub = stack.at[slot];
            p->nodes[(n_chunks >> sub.level) + (sub.first >> sub.level)] = (struct shmt_shm_node){seat, slot};
        }
    }
}

static bool is_touched(const uint8_t *map, uint64_t at, uint64_t n) {
    if (!map) return true;
    const uint64_t from = at / SHMT_TOUCH_FLOATS, to = shmt_ceil_div(at + n, SHMT_TOUCH_FLOATS);
    return memchr(map + from, 1, to - from) != NULL;
}

/* The sum of subtree (level, index) over the floats at .. at + n - 1; NULL when it is zero. It stands in a seat's buffer, or
 * has been added up in scratch[0]; the blocks behind that one are for the subtrees below. */
static const float *sum_of(const struct shmt_shm_seat *p, uint32_t level, uint32_t index, uint64_t at, uint64_t n,
                           float (*scratch)[BLOCK]) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_node node = p->nodes[(store->spec.n_chunks >> level) + index];
    if (node.seat != NOBODY) {
        if (!is_touched(shmt_shm_map(store, node.seat, node.slot), at, n)) return NULL;
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

/* My slice of one update. */
struct slice {
    const struct shmt_shm_seat *p;
    struct shmt_update u;
    uint32_t root;
    bool moves_all;
};

/* Nanoseconds of the blocks that were timed. */
struct times {
    uint64_t aggregate_ns, update_ns;
};

/* The block at .. end - 1; times NULL: nobody asks. */
static void apply_block(const struct slice *slice, uint64_t at, uint64_t end, struct times *times) {
    const struct shmt_store *store = slice->p->store;
    float scratch[SHMT_MAX_STACK][BLOCK];
    const uint64_t began_ns = times ? shmt_now_ns() : 0;
    const float *grad = sum_of(slice->p, slice->root, 0, at, end - at, scratch);
    const uint64_t summed_ns = times ? shmt_now_ns() : 0;
    if (grad || slice->moves_all)
        shmt_flat_apply(&store->spec, &store->layout.flat, store->weight, store->state, grad, at, end, &slice->u);
    if (!times) return;
    times->aggregate_ns += summed_ns - began_ns;
    times->update_ns += shmt_now_ns() - summed_ns;
}

/* For a trace: some of the blocks say what the time of all goes to. */
static void apply_traced(const struct slice *slice, uint64_t from, uint64_t to, struct shmt_trace *trace) {
    struct times times = {0};
    shmt_trace_step(trace, slice->p->epoch, slice->p->step);
    shmt_trace_turn(trace, SHMT_EVENT_AGGREGATE);
    for (uint64_t at = from, i = 0; at < to; at += BLOCK, i++)
        apply_block(slice, at, shmt_min_u64(at + BLOCK, to), i % TIMED == 0 ? &times : NULL);
    shmt_trace_shares(trace, times.aggregate_ns, times.update_ns, shmt_ceil_div(to - from, BLOCK));
}

void shmt_shm_apply(struct shmt_shm_seat *p, uint64_t examples) {
    const struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    struct slice slice = {.p = p, .root = levels_of(spec->n_chunks), .moves_all = shmt_rule_moves_all(&spec->rule)};
    uint64_t from, to;
    shmt_spec_update(spec, p->epoch, p->step, &slice.u);
    slice.u.scale = 1.0f / (float)examples;
    shmt_slice(store->layout.flat.n, p->seat.index, p->seat.n_present, &from, &to);
    if (p->seat.trace)
        apply_traced(&slice, from, to, p->seat.trace);
    else
        for (uint64_t at = from; at < to; at += BLOCK) apply_block(&slice, at, shmt_min_u64(at + BLOCK, to), NULL);
}
