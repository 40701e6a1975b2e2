/* Equal copies, `allreduce`: the sum of all gradients, which every seat then updates a copy of its own with. Each adds up its slice
 * (reduce-scatter), to where all read it (all-gather by reading). Slices are of each table, so that a table's sum may be made as soon
 * as its gradients are complete, while those of earlier layers are still being computed; what is left is done behind the meeting "all
 * gradients are in". Nobody waits for a table. Called by batches.c and update.c.
 *
 * Who has completed a table in its last chunk of the batch says so by a word: step and life. Its gradient rests from then on, until all
 * have met behind their sums; unless it dies: its next life takes the words back before it clears anything, and who has read meanwhile
 * finds another word than before, and adds up again. Who has no chunks says so of all tables when the batch begins for it: before, it
 * may be reading the sums of the batch before, and there may come no batch, or one in which it has chunks. */
#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/point.h"
#include "ps/norm.h"
#include "ps/touch.h"
#include "sync/host.h"

#define LIFE_BITS 16

static _Atomic uint64_t *ready_of(const struct shmt_store *store, uint32_t seat) {
    return store->ready + (uint64_t)seat * store->layout.ready_words;
}

/* Never 0. */
static uint64_t number_of(const struct shmt_shm_seat *p) { return shmt_shm_global_step(p) + 1; }

static void announce(struct shmt_shm_seat *p, uint32_t t) {
    const uint64_t word = number_of(p) << LIFE_BITS | (p->seat.life & ((1u << LIFE_BITS) - 1));
    store_release(&ready_of(p->store, p->seat.rank)[t], word); /* the gradient; pairs with the acquire in `all_have` */
    p->announced |= UINT64_C(1) << t;
}

void shmt_shm_has_no_chunks(struct shmt_shm_seat *p) {
    for (uint32_t t = 0; t < p->store->spec.n_tables; t++) announce(p, t);
}

void shmt_shm_reduce_take_back(const struct shmt_shm_seat *p) {
    /* relaxed, and a fence before the gradient changes; pairs with that in `try_table` */
    for (uint32_t t = 0; t < p->store->spec.n_tables; t++) store_relaxed(&ready_of(p->store, p->seat.rank)[t], 0);
    SHMT_POINT("reduce:taken-back");
    fence_seq_cst();
}

/* The sum of the words of all who take part; false: somebody's gradient of the table is not complete. A seat's word is 0 for a
 * while, or grows with its life, where it changes within a batch: if none is 0, equal sums are of equal words. */
static bool all_have(const struct shmt_shm_seat *p, uint32_t t, uint64_t *sum_out) {
    const uint64_t number = number_of(p);
    *sum_out = 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++) {
        if (!shmt_shm_takes_part(p, seat)) continue;
        const uint64_t word =
            load_acquire(&ready_of(p->store, seat)[t]); /* its gradient; pairs with the release in `announce` */
        if (word >> LIFE_BITS != number) return false;
        *sum_out += word;
    }
    return true;
}

/* ---- sums ---- */

/* What my slice of the sum is from now on. Where the map says that a line is 0, it is. */
static void put(const struct shmt_store *store, const float *sum, uint64_t at, uint64_t n) {
    float *const to = store->reduced + at;
    uint8_t *const map = store->reduced_map + at / SHMT_TOUCH_FLOATS;
    const uint64_t lines = n / SHMT_TOUCH_FLOATS;
    if (!sum && !memchr(map, 1, lines)) return;
    shmt_touch(to, n * sizeof *to, true);
    if (sum)
        memcpy(to, sum, n * sizeof *to);
    else
        memset(to, 0, n * sizeof *to);
    memset(map, sum != NULL, lines);
}

static void reduce_range(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, const struct shmt_update *u, uint64_t from,
                         uint64_t to) {
    const struct shmt_store *store = p->store;
    const bool has_norms = shmt_norm_sums(&store->spec) > 0;
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    for (uint64_t at = from, end; at < to; at = end) {
        end = shmt_min_u64((at / SHMT_SHM_BLOCK + 1) * SHMT_SHM_BLOCK, to);
        const float *grad = sum->of(p, at, end - at, scratch);
        if (has_norms) shmt_norm_measure(&store->spec, &store->layout.flat, p->weight, p->state, grad, at, end, u, store->norm);
        put(store, grad, at, end - at);
        if (grad && sum->forget) sum->forget(p, at, end);
        SHMT_POINT("reduce:block");
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    shmt_spend(SHMT_SPENT_ADDING, (double)(to - from) / (double)store->layout.flat.n * sum->adds(p));
}

/* My slice of table t and of the padding behind it. */
static void reduce_table(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, const struct shmt_update *u, uint32_t t) {
    const struct shmt_flat *flat = &p->store->layout.flat;
    const uint64_t start = flat->start[t], end = t + 1 < p->store->spec.n_tables ? flat->start[t + 1] : flat->n;
    uint64_t from, to;
    shmt_slice(end - start, p->seat.index, p->seat.n_present, &from, &to);
    if (from < to) reduce_range(p, sum, u, start + from, start + to);
}

/* Before all gradients are in: if those of table t are. False: they are not. */
static bool try_table(struct shmt_shm_seat *p, uint32_t t) {
    struct shmt_update u;
    uint64_t before, after;
    if (!all_have(p, t, &before)) return false;
    shmt_shm_update_of(p, &u);
    SHMT_POINT("reduce:table-before");
    reduce_table(p, shmt_shm_find_sum(p), &u, t);
    SHMT_POINT("reduce:table-after");
    fence_seq_cst(); /* what I have read was read before the words are looked at again; pairs with that of `take_back` */
    if (all_have(p, t, &after) && after == before) p->reduced |= UINT64_C(1) << t;
    return true;
}

/* Those of which I have said that mine is complete. Others come to them in about the same order, the last one first, so behind one that
 * they have not come to there is hardly one that they have. */
static void try_tables(struct shmt_shm_seat *p) {
    shmt_trace_to(p->seat.trace, SHMT_EVENT_AGGREGATE);
    for (uint32_t t = p->store->spec.n_tables; t-- > 0;) {
        const bool open = (p->announced & ~p->reduced) >> t & 1;
        if (open && !try_table(p, t)) break;
    }
    shmt_trace_to(p->seat.trace, SHMT_EVENT_PUSH);
}

void shmt_shm_complete(struct shmt_shm_seat *p, uint32_t t) {
    const struct shmt_store *store = p->store;
    if (!store->layout.equal || !p->stack.late || store->layout.terms > 0 || p->work.chunk + 1 != p->to) return;
    if (shmt_spec_is_linked(&store->spec)) return; /* other hosts' sums come with the meeting */
    SHMT_POINT("reduce:complete");
    announce(p, t);
    SHMT_POINT("reduce:announced");
    try_tables(p);
}

void shmt_shm_reduce(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    struct shmt_update u;
    uint64_t from, to;
    if (p->seat.trace) shmt_trace_turn(p->seat.trace, SHMT_EVENT_AGGREGATE);
    shmt_shm_update_of(p, &u);
    if (store->layout.terms > 0) {
        shmt_shm_my_slice(p, &from, &to);
        if (from < to) shmt_shm_sum_lists(p, from, to); /* the link has no room for a sum */
        reduce_range(p, shmt_shm_find_sum(p), &u, from, to);
    }
    for (uint32_t t = 0; t < store->spec.n_tables && store->layout.terms == 0; t++)
        if (!(p->reduced >> t & 1)) reduce_table(p, shmt_shm_find_sum(p), &u, t);
    if (p->seat.trace) shmt_trace_turn(p->seat.trace, SHMT_EVENT_NONE);
}

static const float *reduced(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    const struct shmt_store *store = p->store;
    (void)scratch;
    if (!memchr(store->reduced_map + at / SHMT_TOUCH_FLOATS, 1, n / SHMT_TOUCH_FLOATS)) return NULL;
    shmt_touch(store->reduced + at, n * sizeof(float), false);
    return store->reduced + at;
}

static uint32_t adds_none(const struct shmt_shm_seat *p) {
    (void)p;
    return 0;
}

const struct shmt_shm_sum SHMT_SHM_REDUCED = {.of = reduced, .adds = adds_none};
