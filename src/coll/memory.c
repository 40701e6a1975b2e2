/* Sizes and first words of the memory of collectives: see memory.h. */
#include "coll/memory.h"

#include <shmtrain/collective.h>

#include "base/checked.h"

#define HALF_BYTES (128u << 10) /* stays in a core's second cache with what is copied from and to it */
#define ALL_BYTES  (UINT64_C(32) << 20)
#define PAGE       4096u

/* Many workers get less each, but as much as holds an element for every one of them. */
uint32_t shmt_coll_half_bytes(uint32_t n) {
    if (n > SHMTRAIN_COLLECTIVE_WORKERS) return 0;
    const uint64_t share = shmt_max_u64(ALL_BYTES / n, n * UINT64_C(16));
    return (uint32_t)(shmt_ceil_div(shmt_min_u64(share, HALF_BYTES), PAGE) * PAGE);
}

uint64_t shmt_coll_words_bytes(const struct shmt_coll_room *room, uint32_t n) {
    if (room->half_bytes == 0) return 0;
    return n * (sizeof(struct shmt_coll_presence) + SHMT_COLL_SLOTS * sizeof(struct shmt_gate));
}

uint64_t shmt_coll_exchange_bytes(const struct shmt_coll_room *room) {
    return room->half_bytes == 0 ? 0 : UINT64_C(2) * room->half_bytes + room->lend_bytes;
}

void shmt_coll_begin(unsigned char *words, uint32_t n) {
    /* relaxed: no worker exists yet; the fork, or the start of a thread, publishes them */
    for (uint32_t i = 0; i < n; i++) store_relaxed(&shmt_coll_presence(words, i)->present, 1);
}

void shmt_coll_leave(unsigned char *words, uint32_t n, uint32_t rank, bool comes_back) {
    bool leaves = !comes_back;
    for (uint32_t slot = 0; slot < SHMT_COLL_SLOTS && !leaves; slot++) {
        const struct shmt_gate *gate = &shmt_coll_gates(words, n, slot)[rank];
        leaves = load_relaxed(&gate->clock) != 0 || load_relaxed(&gate->phase) != 0; /* relaxed: the owner is gone */
    }
    /* release: all that it has laid out is there; pairs with the acquire of the gates' member words */
    if (leaves) store_release(&shmt_coll_presence(words, rank)->present, 0);
}
