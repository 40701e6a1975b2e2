/* Bringing gradients to the parameters, block by block, so that a death can be taken back: for batches (batches/update.c) and rounds
 * (rounds/slices.c), which say where the sum of all gradients is. Undo of what this backend changes is opened and closed here alone, and
 * traces are told here.
 *
 * The gradient buffers of others are read, never written. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "ps/touch.h"
#include "sync/host.h"

void shmt_shm_apply_stands_at(const struct shmt_shm_seat *p, uint64_t at) { shmt_undo_close(&p->undo, shmt_undo_word(at, 0)); }

uint64_t shmt_shm_apply_stood_at(const struct shmt_shm_seat *p, uint64_t from, uint64_t to) {
    if (!p->undo.word) return from;
    /* relaxed: mine; of an earlier life, where it stood */
    return shmt_max_u64(from, shmt_min_u64(to, shmt_undo_at(load_relaxed(p->undo.word))));
}

bool shmt_shm_is_touched(const uint8_t *map, uint64_t at, uint64_t n) {
    if (!map) return true;
    const uint64_t from = at / SHMT_TOUCH_FLOATS, to = shmt_ceil_div(at + n, SHMT_TOUCH_FLOATS);
    return memchr(map + from, 1, to - from) != NULL;
}

/* The block at .. end - 1 by the rule, so that a death in the middle of it can be taken back. */
static void change_block(const struct shmt_shm_seat *p, const float *grad, const struct shmt_update *u, uint64_t at,
                         uint64_t end) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_layout *l = &store->layout;
    shmt_touch_planes(p->weight + at, l->planes > 0 ? p->state + at : NULL, l->flat.n, l->planes, end - at, true);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    SHMT_POINT("block:before");
    shmt_undo_open(&p->undo, at, end - at, p->weight + at, l->planes > 0 ? p->state + at : NULL, l->flat.n, l->planes);
    SHMT_POINT("block:open");
    shmt_flat_apply(&store->spec, &l->flat, p->weight, p->state, grad, at, end, u);
    SHMT_POINT("block:written");
    shmt_shm_apply_stands_at(p, end);
    SHMT_POINT("block:after");
}

/* The block at .. end - 1. Its times are looked at only if somebody asks. */
static void apply_block(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, const struct shmt_update *u, uint64_t at,
                        uint64_t end, bool timed) {
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    const uint64_t began_ns = timed ? shmt_now_ns() : 0;
    const float *grad = sum->of(p, at, end - at, scratch);
    const uint64_t summed_ns = timed ? shmt_now_ns() : 0;
    if (grad || shmt_rule_moves_all(&p->store->spec.rule)) change_block(p, grad, u, at, end);
    if (grad && sum->forget) sum->forget(p, at, end);
    if (!timed) return;
    p->times.aggregate_ns += summed_ns - began_ns;
    p->times.update_ns += shmt_now_ns() - summed_ns;
}

/* Where work takes virtual time: of all parameters the share that was applied. A trace sees it as the block's. */
static void pay_for_range(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, double share) {
    const uint64_t from_ns = p->seat.trace ? shmt_now_ns() : 0;
    shmt_spend(SHMT_SPENT_ADDING, share * sum->adds(p));
    const uint64_t added_ns = p->seat.trace ? shmt_now_ns() : 0;
    shmt_spend(SHMT_SPENT_UPDATING, share);
    if (!p->seat.trace) return;
    p->times.aggregate_ns += added_ns - from_ns;
    p->times.update_ns += shmt_now_ns() - added_ns;
}

void shmt_shm_apply_range(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, const struct shmt_update *u, uint64_t from,
                          uint64_t to) {
    const double share = to > from ? (double)(to - from) / (double)p->store->layout.flat.n : 0;
    for (uint64_t at = from, end; at < to; at = end) {
        end = shmt_min_u64((at / SHMT_SHM_BLOCK + 1) * SHMT_SHM_BLOCK, to);
        apply_block(p, sum, u, at, end, p->seat.trace && p->times.blocks++ % SHMT_SHM_TIMED == 0);
    }
    if (share > 0 && shmt_host()->spend) pay_for_range(p, sum, share);
}

void shmt_shm_apply_begins(struct shmt_shm_seat *p, uint64_t step) {
    if (!p->seat.trace) return;
    p->times = (struct shmt_shm_times){0};
    shmt_trace_step(p->seat.trace, p->epoch, step);
    shmt_trace_turn(p->seat.trace, SHMT_EVENT_AGGREGATE);
}

void shmt_shm_apply_ends(struct shmt_shm_seat *p) {
    if (p->seat.trace) shmt_trace_shares(p->seat.trace, p->times.aggregate_ns, p->times.update_ns, p->times.blocks);
}
