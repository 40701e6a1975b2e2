/* Sets of feature ids: see ids.h. */
#include "data/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/random.h"

#define FIRST_BITS 10 /* 1,024 slots */

/* ---- slots ---- */

static uint64_t first_slot(const struct shmt_ids *ids, uint64_t id) { return shmt_mix64(id) >> (64 - ids->slot_bits); }

/* Where the id is, or could be. At least a quarter of the slots are free, so the search ends. */
static uint64_t find_slot(const struct shmt_ids *ids, uint64_t id) {
    const uint64_t mask = ((uint64_t)1 << ids->slot_bits) - 1;
    uint64_t s = first_slot(ids, id);
    while (ids->slot[s] != 0 && ids->id[ids->slot[s] - 1] != id) s = (s + 1) & mask;
    return s;
}

/* Room for `n` ids, three quarters of the slots at most. */
static bool make_slots(struct shmt_ids *ids, uint64_t n) {
    uint32_t bits = ids->slot_bits > 0 ? ids->slot_bits : FIRST_BITS;
    while (((uint64_t)3 << bits) / 4 < n) bits++;
    if (bits == ids->slot_bits) return true;
    uint32_t *slot = calloc((uint64_t)1 << bits, sizeof *slot);
    if (!slot) return false;
    free(ids->slot);
    ids->slot = slot;
    ids->slot_bits = bits;
    for (uint32_t i = 0; i < ids->n; i++) ids->slot[find_slot(ids, ids->id[i])] = i + 1;
    return true;
}

static bool make_room(struct shmt_ids *ids, uint64_t n) {
    if (n > SHMT_IDS_MAX) return false;
    if (n > ids->room) {
        const uint64_t room = n < 2 * ids->room ? 2 * ids->room : n < 1024 ? 1024 : n;
        uint64_t *id = realloc(ids->id, room * sizeof *id);
        if (!id) return false;
        ids->id = id;
        ids->room = room;
    }
    return make_slots(ids, n);
}

/* ---- one id ---- */

void shmt_ids_add(struct shmt_ids *ids, uint64_t id) {
    if (ids->failed) return;
    if (!make_room(ids, (uint64_t)ids->n + 1)) {
        ids->failed = true;
        return;
    }
    uint32_t *slot = &ids->slot[find_slot(ids, id)];
    if (*slot != 0) return;
    ids->id[ids->n++] = id;
    *slot = ids->n;
}

uint32_t shmt_ids_find(const struct shmt_ids *ids, uint64_t id) {
    if (ids->n == 0) return UINT32_MAX;
    const uint32_t found = ids->slot[find_slot(ids, id)];
    return found > 0 ? found - 1 : UINT32_MAX;
}

/* ---- all of them ---- */

bool shmt_ids_own(struct shmt_ids *ids, uint64_t *id, uint32_t n) {
    *ids = (struct shmt_ids){0};
    if (!make_slots(ids, n)) return false;
    ids->id = id;
    ids->n = n;
    ids->room = n;
    return true;
}

void shmt_ids_put(const struct shmt_ids *ids, uint32_t number) {
    const uint64_t mask = ((uint64_t)1 << ids->slot_bits) - 1;
    for (uint64_t s = first_slot(ids, ids->id[number]);; s = (s + 1) & mask) {
        uint32_t found = 0;
        do { /* relaxed: who looks ids up is told by the end of those who put them */
            if (swap_relaxed((_Atomic uint32_t *)&ids->slot[s], &found, number + 1)) return;
        } while (found == 0);
    }
}

int shmt_ids_take(const uint64_t *id, uint64_t n, struct shmt_ids *out, struct shmt_error *e) {
    *out = (struct shmt_ids){0};
    for (uint64_t i = 1; i < n; i++)
        if (id[i] <= id[i - 1]) return shmt_fail(e, SHMTRAIN_E_DATA, "its ids are not in ascending order");
    if (n > SHMT_IDS_MAX || !make_room(out, n > 0 ? n : 1)) {
        shmt_ids_free(out);
        return shmt_no_memory(e, "for %llu ids", (unsigned long long)n);
    }
    if (n > 0) memcpy(out->id, id, n * sizeof *id);
    for (uint32_t i = 0; i < n; i++) {
        out->n = i + 1;
        out->slot[find_slot(out, id[i])] = i + 1;
    }
    return 0;
}

void shmt_ids_free(struct shmt_ids *ids) {
    free(ids->id);
    free(ids->slot);
    *ids = (struct shmt_ids){0};
}
