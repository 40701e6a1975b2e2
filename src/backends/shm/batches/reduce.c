/* Equal copies, `allreduce`: the sum of all gradients, which every seat then updates a copy of its own with. Each adds up its slice
 * (reduce-scatter), to where all read it (all-gather by reading). Slices are of each table, so that a table's sum may be made as soon
 * as its gradients are complete, while those of earlier layers are still being computed; what is left is done behind the meeting "all
 * gradients are in". Nobody waits for a table. Called by batches.c and update.c. Who has which table, and what a death means for those who
 * have read it: ready.c. Many hosts: the sums of others come with that meeting, so no table is summed before. */
#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/point.h"
#include "ps/norm.h"
#include "ps/touch.h"
#include "sync/host.h"

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
    if (!shmt_shm_all_have(p, t, &before)) return false;
    shmt_shm_update_of(p, &u);
    SHMT_POINT("reduce:table-before");
    reduce_table(p, shmt_shm_find_sum(p), &u, t);
    SHMT_POINT("reduce:table-after");
    fence_seq_cst(); /* what I have read was read before the words are looked at again; pairs with that of `take_back_ready` */
    if (shmt_shm_all_have(p, t, &after) && after == before) p->reduced |= UINT64_C(1) << t;
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
    const bool sums = store->layout.equal && !shmt_spec_is_linked(&store->spec) && p->stack.late && store->layout.terms == 0;
    if (p->work.chunk + 1 != p->to || (!sums && !store->layout.tells)) return;
    SHMT_POINT("reduce:complete");
    shmt_shm_announce(p, t);
    SHMT_POINT("reduce:announced");
    if (sums) try_tables(p);
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
