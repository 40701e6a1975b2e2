/* Sets of feature ids: see ids.h. */
#include "data/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define FIRST_BITS  10 /* 1,024 slots */
#define RADIX_BITS  16 /* sorted by so many bits at a time */
#define RADIX_SLOTS ((uint64_t)1 << RADIX_BITS)

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

static uint64_t digit_of(uint64_t id, uint32_t shift) { return (id >> shift) & (RADIX_SLOTS - 1); }

/* One pass of a radix sort, by the bits from `shift` on. False: they are the same in all, and nothing was moved. */
static bool sort_by(const uint64_t *from, uint64_t *to, uint64_t n, uint32_t shift, uint64_t *at) {
    memset(at, 0, RADIX_SLOTS * sizeof *at);
    for (uint64_t i = 0; i < n; i++) at[digit_of(from[i], shift)]++;
    if (n == 0 || at[digit_of(from[0], shift)] == n) return false;
    uint64_t before = 0;
    for (uint64_t d = 0; d < RADIX_SLOTS; d++) {
        const uint64_t here = at[d];
        at[d] = before;
        before += here;
    }
    for (uint64_t i = 0; i < n; i++) to[at[digit_of(from[i], shift)]++] = from[i];
    return true;
}

/* Sorts `*id_inout`, with `*other` of the same size to work in; the result is in *id_inout, which may have changed places. */
static bool sort(uint64_t **id_inout, uint64_t **other, uint64_t n) {
    uint64_t *at = malloc(RADIX_SLOTS * sizeof *at);
    if (!at) return false;
    for (uint32_t shift = 0; shift < 64; shift += RADIX_BITS) {
        if (!sort_by(*id_inout, *other, n, shift, at)) continue;
        uint64_t *const sorted = *other;
        *other = *id_inout;
        *id_inout = sorted;
    }
    free(at);
    return true;
}

static uint64_t keep_distinct(uint64_t *id, uint64_t n) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || id[i] != id[kept - 1]) id[kept++] = id[i];
    return kept;
}

/* All ids of the sets one behind the other, sorted, each once; to be freed. */
static uint64_t *gather(const struct shmt_ids *sets, uint32_t n_sets, uint64_t *n_out) {
    uint64_t n = 0;
    for (uint32_t s = 0; s < n_sets; s++) n += sets[s].n;
    uint64_t *id = malloc((n + 1) * sizeof *id), *other = malloc((n + 1) * sizeof *other);
    uint64_t *at = id;
    for (uint32_t s = 0; id && s < n_sets; s++) {
        if (sets[s].n > 0) memcpy(at, sets[s].id, sets[s].n * sizeof *at);
        at += sets[s].n;
    }
    const bool sorted = id && other && sort(&id, &other, n);
    free(other);
    if (sorted) *n_out = keep_distinct(id, n);
    if (!sorted) free(id);
    return sorted ? id : NULL;
}

static int refuse_many(const char *name, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has more than %u different ids: hash them, as in --hash-bits 24", name,
                     SHMT_IDS_MAX);
}

static int refuse_memory(const char *name, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to number the ids of %s: free some, or hash them, as in --hash-bits 24",
                     name);
}

int shmt_ids_take(const uint64_t *id, uint64_t n, struct shmt_ids *out, struct shmt_error *e) {
    *out = (struct shmt_ids){0};
    for (uint64_t i = 1; i < n; i++)
        if (id[i] <= id[i - 1]) return shmt_fail(e, SHMTRAIN_E_DATA, "its ids do not ascend");
    if (n > SHMT_IDS_MAX || !make_room(out, n > 0 ? n : 1)) {
        shmt_ids_free(out);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for %llu ids", (unsigned long long)n);
    }
    if (n > 0) memcpy(out->id, id, n * sizeof *id);
    for (uint32_t i = 0; i < n; i++) {
        out->n = i + 1;
        out->slot[find_slot(out, id[i])] = i + 1;
    }
    return 0;
}

int shmt_ids_join(const struct shmt_ids *sets, uint32_t n_sets, const char *name, struct shmt_ids *out, struct shmt_error *e) {
    uint64_t n = 0;
    *out = (struct shmt_ids){0};
    for (uint32_t s = 0; s < n_sets; s++)
        if (sets[s].failed) return sets[s].n == SHMT_IDS_MAX ? refuse_many(name, e) : refuse_memory(name, e);
    uint64_t *id = gather(sets, n_sets, &n);
    if (!id) return refuse_memory(name, e);
    const int rc = n > SHMT_IDS_MAX ? refuse_many(name, e) : shmt_ids_take(id, n, out, e);
    free(id);
    return rc;
}

void shmt_ids_free(struct shmt_ids *ids) {
    free(ids->id);
    free(ids->slot);
    *ids = (struct shmt_ids){0};
}
