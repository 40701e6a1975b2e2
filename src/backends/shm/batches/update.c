/* The update of batches: every seat adds all gradients over its slice of the parameters, along the same tree whoever computed which
 * part of it, or from their lists, and runs the update rule there (apply.c). With equal copies it runs the rule on all of them, with the
 * sum that stands ready (reduce.c). Called by batches.c.
 *
 * The gradients were published by the meeting before, and their owners clear them only after the meeting that follows. */
#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/point.h"
#include "ps/norm.h"
#include "update/kernels.h"
#include "sync/host.h"

#define NOBODY UINT32_MAX

static struct shmt_shm_node *node_of(const struct shmt_shm_seat *p, struct shmt_subtree sub) {
    return &p->nodes[(p->store->spec.n_chunks >> sub.level) + (sub.first >> sub.level)];
}

/* What the link has put. The link itself has put nothing of its own host's when it asks for that. */
static void add_far_nodes(const struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    struct shmt_subtree sub[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    uint32_t host[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    if (!shmt_spec_is_linked(spec)) return;
    const uint32_t n = shmt_far_nodes(spec->n_chunks, spec->hosts.n, shmt_spec_far_without(spec), sub, host);
    for (uint32_t i = 0; i < n; i++)
        if (host[i] != spec->hosts.self || !shmt_shm_is_link(p)) *node_of(p, sub[i]) = (struct shmt_shm_node){spec->n_seats, i};
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
        if (!shmt_shm_takes_part(p, seat)) continue;
        shmt_spec_chunks_of(&store->spec, index++, p->seat.n_present, &from, &to);
        shmt_stack_after(from, to, p->stack.late, &stack, &height);
        for (uint32_t slot = 0; slot < stack.n; slot++) {
            const struct shmt_subtree sub = stack.at[slot];
            *node_of(p, sub) = (struct shmt_shm_node){seat, slot};
        }
    }
    add_far_nodes(p);
}

const float *shmt_shm_sum_of(const struct shmt_shm_seat *p, uint32_t level, uint32_t index, uint64_t at, uint64_t n,
                             float (*scratch)[SHMT_SHM_BLOCK]) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_node node = p->nodes[(store->spec.n_chunks >> level) + index];
    if (node.seat == store->spec.n_seats) return shmt_shm_far_sum(store, node.slot, at, n);
    if (node.seat != NOBODY) {
        const uint8_t *map = shmt_shm_map(store, node.seat, node.slot);
        if (map) shmt_touch(map + at / SHMT_TOUCH_FLOATS, n / SHMT_TOUCH_FLOATS, false);
        if (!shmt_shm_is_touched(map, at, n)) return NULL;
        const float *sum = shmt_shm_buffer(store, node.seat, node.slot) + at;
        shmt_touch(sum, n * sizeof *sum, false);
        return sum;
    }
    if (level == 0) return NULL; /* does not happen: every chunk is somebody's */
    const float *left = shmt_shm_sum_of(p, level - 1, 2 * index, at, n, scratch + 1);
    if (left == scratch[1]) left = memcpy(scratch[0], left, n * sizeof(float));
    const float *right = shmt_shm_sum_of(p, level - 1, 2 * index + 1, at, n, scratch + 1);
    if (!right) return left;
    if (!left) return right == scratch[1] ? memcpy(scratch[0], right, n * sizeof(float)) : right;
    for (uint64_t i = 0; i < n; i++) scratch[0][i] = left[i] + right[i];
    return scratch[0];
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

__attribute__((nonnull)) static const float *sum_of_chunks(const struct shmt_shm_seat *p, uint64_t at, uint64_t n,
                                                           float (*scratch)[SHMT_SHM_BLOCK]) {
    return shmt_shm_sum_of(p, (uint32_t)__builtin_ctz(p->store->spec.n_chunks), 0, at, n, scratch); /* a power of two */
}

static const float *sum_of_listed(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    (void)n;
    (void)scratch;
    return *listed_of(p, at) ? shmt_shm_buffer(p->store, p->seat.rank, p->store->layout.stack) + at : NULL;
}

__attribute__((nonnull)) static const float *sum_of_both(const struct shmt_shm_seat *p, uint64_t at, uint64_t n,
                                                         float (*scratch)[SHMT_SHM_BLOCK]) {
    const float *chunks = sum_of_chunks(p, at, n, scratch), *listed = sum_of_listed(p, at, n, scratch);
    if (!chunks || !listed) return chunks ? chunks : listed;
    for (uint64_t i = 0; i < n; i++) scratch[0][i] = chunks[i] + listed[i];
    return scratch[0];
}

/* Subtrees stand in the stacks of all who take part; each chunk has a list. */
static uint32_t adds_of_chunks(const struct shmt_shm_seat *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * p->store->spec.n_chunks; i++) n += p->nodes[i].seat != NOBODY;
    return n > 0 ? n - 1 : 0;
}
static uint32_t adds_of_lists(const struct shmt_shm_seat *p) { return p->store->spec.n_chunks - 1; }
static uint32_t adds_of_both(const struct shmt_shm_seat *p) { return adds_of_chunks(p) + adds_of_lists(p) + 1; }

const struct shmt_shm_sum *shmt_shm_find_sum(const struct shmt_shm_seat *p) {
    static const struct shmt_shm_sum CHUNKS = {sum_of_chunks, NULL, adds_of_chunks},
                                     LISTED = {sum_of_listed, forget_lists, adds_of_lists},
                                     BOTH = {sum_of_both, forget_lists, adds_of_both};
    if (p->store->layout.terms == 0) return &CHUNKS;
    for (uint32_t chunk = 0; chunk < p->store->spec.n_chunks; chunk++)
        if (shmt_shm_is_summed(p->store, chunk)) return &BOTH;
    return &LISTED;
}

static void sum_lists(struct shmt_shm_seat *p, uint64_t from, uint64_t to) {
    const uint64_t began_ns = p->seat.trace ? shmt_now_ns() : 0;
    if (from == to) return; /* as of the link, which has no room for a sum */
    shmt_shm_sum_lists(p, from, to);
    if (p->seat.trace)
        p->times.aggregate_ns += (shmt_now_ns() - began_ns) / SHMT_SHM_TIMED; /* as if it were a part of each block */
}

void shmt_shm_update_of(const struct shmt_shm_seat *p, struct shmt_update *out) {
    const struct shmt_spec *spec = &p->store->spec;
    shmt_spec_update(spec, p->epoch, p->step, out);
    out->scale = 1.0f / (float)shmt_spec_examples_of_step(spec, p->step);
}

void shmt_shm_measure(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    struct shmt_update u;
    const struct shmt_shm_sum *sum = shmt_shm_find_sum(p);
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    uint64_t from, to;
    shmt_shm_update_of(p, &u);
    shmt_shm_my_slice(p, &from, &to);
    if (store->layout.terms) sum_lists(p, from, to);
    p->listed = true;
    for (uint64_t at = from, end; at < to; at = end) {
        end = shmt_min_u64((at / SHMT_SHM_BLOCK + 1) * SHMT_SHM_BLOCK, to);
        shmt_norm_measure(&store->spec, &store->layout.flat, p->weight, p->state, sum->of(p, at, end - at, scratch), at, end,
                          &u, store->norm);
        SHMT_POINT("norm:block");
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

void shmt_shm_my_update(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out) {
    *from_out = 0;
    *to_out = p->store->layout.flat.n;
    if (!p->store->layout.equal || shmt_shm_is_link(p)) shmt_shm_my_slice(p, from_out, to_out);
}

void shmt_shm_apply(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    struct shmt_norms norms;
    struct shmt_update u;
    uint64_t from, to;
    shmt_shm_update_of(p, &u);
    if (shmt_norm_sums(&store->spec) > 0) shmt_norm_take(&store->spec, &store->layout.flat, store->norm, &norms, &u);
    shmt_shm_my_update(p, &from, &to);
    from = shmt_shm_apply_stood_at(p, from, to);
    shmt_shm_apply_begins(p, p->step);
    if (store->layout.terms && !store->layout.equal && !p->listed) sum_lists(p, from, to);
    p->listed = false;
    shmt_shm_apply_range(p, store->layout.equal ? &SHMT_SHM_REDUCED : shmt_shm_find_sum(p), &u, from, to);
    shmt_shm_apply_ends(p);
}
