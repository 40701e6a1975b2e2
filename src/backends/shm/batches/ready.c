/* Whose gradient of which table is complete, before all of a batch is: for those who sum or send a table while earlier layers are still
 * being computed (reduce.c, far.c). Called by batches.c and by these.
 *
 * Who has completed a table in its last chunk of the batch says so by a word: step and life. Its gradient rests from then on, until all
 * have met behind their sums; unless it dies: its next life takes the words back before it clears anything, and who has read meanwhile
 * finds another word than before, and reads again. Who has no chunks says so of all tables when the batch begins for it: before, it
 * may be reading the sums of the batch before, and there may come no batch, or one in which it has chunks.
 *
 * Where there are other hosts, the link waits for these words before it waits for the meeting. So there a worker also says it of what it
 * has not pushed whole, behind its last chunk, and who completes a large table, or all, as the last one wakes the link. */
#include "backends/shm/batches/batches_priv.h"
#include "base/point.h"

#define LIFE_BITS 16

static _Atomic uint64_t *ready_of(const struct shmt_store *store, uint32_t seat) {
    return store->ready + (uint64_t)seat * store->layout.ready_words;
}

/* Never 0. */
static uint64_t number_of(const struct shmt_shm_seat *p) { return shmt_shm_global_step(p) + 1; }

static void say(struct shmt_shm_seat *p, uint32_t t) {
    const uint64_t word = number_of(p) << LIFE_BITS | (p->seat.life & ((1u << LIFE_BITS) - 1));
    store_release(&ready_of(p->store, p->seat.rank)[t], word); /* the gradient; pairs with the acquire in `shmt_shm_all_have` */
    p->announced |= UINT64_C(1) << t;
}

/* Of those who complete a table at a time at least one finds that all have. */
static bool completes_any(const struct shmt_shm_seat *p, uint64_t tables) {
    uint64_t sum;
    fence_seq_cst(); /* my word is said before those of others are looked at; pairs with itself in another worker */
    for (uint32_t t = 0; t < p->store->spec.n_tables; t++)
        if (tables >> t & 1 && shmt_shm_all_have(p, t, &sum)) return true;
    return false;
}

/* A wake-up takes a processor from somebody who computes, so tables that are no part of a bucket worth naming wake nobody: the link finds
 * them with the next one, or when it looks by itself. */
static bool is_worth_a_wake(const struct shmt_store *store, uint64_t tables) {
    for (uint32_t t = 0; t < store->spec.n_tables; t++) {
        const uint64_t floats = shmt_table_floats(&store->spec.table[t]);
        const bool large = 2 * floats >= SHMT_FAR_BUCKET * SHMT_FAR_BLOCK || 8 * floats >= store->layout.flat.n;
        if ((tables >> t & 1) && large) return true;
    }
    return false;
}

static void wake_link(const struct shmt_shm_seat *p, uint64_t tables) {
    const struct shmt_store *store = p->store;
    const bool has_all = (uint32_t)__builtin_popcountll(p->announced) == store->spec.n_tables;
    if (!store->layout.tells || (!has_all && !is_worth_a_wake(store, tables))) return;
    if (completes_any(p, tables)) shmt_gates_notify(&p->meeting);
}

void shmt_shm_announce(struct shmt_shm_seat *p, uint32_t t) {
    say(p, t);
    wake_link(p, UINT64_C(1) << t);
}

void shmt_shm_announce_rest(struct shmt_shm_seat *p) {
    const uint64_t before = p->announced;
    for (uint32_t t = 0; t < p->store->spec.n_tables; t++)
        if (!(p->announced >> t & 1)) say(p, t);
    wake_link(p, p->announced & ~before);
}

void shmt_shm_take_back_ready(const struct shmt_shm_seat *p) {
    /* relaxed, and a fence before the gradient changes; pairs with those of who has read it (try_table, shmt_shm_holds) */
    for (uint32_t t = 0; t < p->store->spec.n_tables; t++) store_relaxed(&ready_of(p->store, p->seat.rank)[t], 0);
    SHMT_POINT("reduce:taken-back");
    fence_seq_cst();
}

/* The sum of the words of all who take part. A seat's word is 0 for a while, or grows with its life, where it changes within a batch:
 * if none is 0, equal sums are of equal words. */
bool shmt_shm_all_have(const struct shmt_shm_seat *p, uint32_t t, uint64_t *sum_out) {
    const uint64_t number = number_of(p);
    *sum_out = 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++) {
        if (!shmt_shm_takes_part(p, seat)) continue;
        const uint64_t word = load_acquire(&ready_of(p->store, seat)[t]); /* its gradient; pairs with the release in `say` */
        if (word >> LIFE_BITS != number) return false;
        *sum_out += word;
    }
    return true;
}

/* ---- the link ---- */

struct wanted {
    const struct shmt_shm_seat *link;
    uint64_t below; /* blocks */
    struct shmt_far_ready found;
};

/* Tables are completed in about this order, the last one first. A block that two of them share needs both. Of lives the last table tells
 * for all: none of a seat's words counts any more before the first of its sums changes. */
static int is_ready(void *arg, uint32_t *for_whom_out) {
    struct wanted *w = arg;
    const struct shmt_store *store = w->link->store;
    uint32_t t = store->spec.n_tables;
    uint64_t at = store->layout.flat.n, sum, last = 0;
    for (; t-- > 0 && shmt_shm_all_have(w->link, t, &sum); at = store->layout.flat.start[t])
        if (last == 0) last = sum;
    w->found = (struct shmt_far_ready){.from = shmt_ceil_div(at, SHMT_FAR_BLOCK), .stamp = last};
    *for_whom_out = UINT32_MAX;
    return w->found.from < w->below;
}

int shmt_shm_wait_for_ready(struct shmt_shm_seat *link, uint64_t below, struct shmt_far_ready *out) {
    struct wanted w = {.link = link, .below = below};
    struct shmt_gates gates = link->meeting;
    if (!link->store->layout.tells) return 0;
    gates.watch.spin_ns = 0; /* workers compute meanwhile */
    link->wait_ns = &link->slot->counters.wait_clock_ns;
    if (shmt_gates_wait_until(&gates, is_ready, &w)) return SHMTRAIN_E_STOPPED;
    *out = w.found;
    return 1;
}

bool shmt_shm_holds(const struct shmt_shm_seat *link, uint64_t stamp) {
    uint64_t now;
    fence_seq_cst(); /* what I have read was read before the words are looked at again; pairs with that of `take_back_ready` */
    return shmt_shm_all_have(link, link->store->spec.n_tables - 1, &now) && now == stamp;
}
