/* Measuring delay: how many updates of others came between a seat's pull and its push. Called around each piece by shm.c; what
 * counts as an update that was not seen, an engine says.
 *
 * Others' counters are read, which costs a line from each: with many seats only every so many pieces are sampled, so that it
 * stays a small part of the work. */
#include "ps/delay.h"

#include "backends/shm/shm_priv.h"

#define LINES_PER_PIECE 8 /* of others, on average */

static bool is_sampled(const struct shmt_shm_seat *p) {
    const uint32_t every = 1 + (p->seat.n_present - 1) / LINES_PER_PIECE;
    return !p->store->spec.unmeasured && p->engine->missed && p->piece % every == 0;
}

void shmt_shm_pull_begins(struct shmt_shm_seat *p) {
    if (is_sampled(p)) p->engine->pull(p);
}

void shmt_shm_push_ends(struct shmt_shm_seat *p) {
    if (is_sampled(p)) shmt_delay_note(&p->slot->counters.delays, p->engine->missed(p));
}

/* relaxed: numbers for a measurement, nothing is read on their strength */
static uint64_t others_updates(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    uint64_t sum = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        if (seat != p->seat.rank) sum += load_relaxed(&store->slot[seat].counters.updates);
    return sum;
}

void shmt_shm_pull_live(struct shmt_shm_seat *p) { p->others = others_updates(p); }
uint64_t shmt_shm_missed_live(const struct shmt_shm_seat *p) { return others_updates(p) - p->others; }
