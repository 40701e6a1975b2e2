/* Joining sets of ids: see ids_join.h.
 *
 * Each set is sorted, all of them are cut at the same values, and each part merges its piece of every set into a stretch of one
 * array that has room for all of them, twice or not. */
#include "data/ids_join.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"

#define RADIX_BITS  16 /* sorted by so many bits at a time */
#define RADIX_SLOTS ((uint64_t)1 << RADIX_BITS)
#define LOOK_IDS    ((uint64_t)1 << 16) /* after how many a stop is looked for */

/* A part's, in the array of all. */
struct shmt_ids_stretch {
    uint64_t low;      /* values from here on, up to where the next part begins */
    uint64_t first, n; /* where its distinct ids begin, and how many there are */
};

static int refuse_memory(const struct shmt_ids_join *join, struct shmt_error *e) {
    return shmt_no_memory(e, "to number the ids of %s: free some, or hash the ids, as in --hash-bits 24", join->name);
}

static int refuse_many(const struct shmt_ids_join *join, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has more than %u different ids: hash the ids, as in --hash-bits 24", join->name,
                     SHMT_IDS_MAX);
}

static bool is_stopped(const struct shmt_ids_join *join) { return join->stop && load_relaxed(join->stop) != 0; }

static int stopped(struct shmt_error *e) { return shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while numbering ids"); }

/* ---- sorting ---- */

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

int shmt_ids_join_sort(struct shmt_ids_join *join, uint32_t s, struct shmt_error *e) {
    struct shmt_ids *set = &join->set[s];
    if (set->failed) return set->n == SHMT_IDS_MAX ? refuse_many(join, e) : refuse_memory(join, e);
    free(set->slot);
    set->slot = NULL;
    set->slot_bits = 0;
    uint64_t *at = malloc(RADIX_SLOTS * sizeof *at), *other = malloc(((uint64_t)set->n + 1) * sizeof *other);
    bool ended = false;
    for (uint32_t shift = 0; at && other && shift < 64 && !ended; shift += RADIX_BITS) {
        ended = is_stopped(join);
        if (ended || !sort_by(set->id, other, set->n, shift, at)) continue;
        uint64_t *const sorted = other;
        other = set->id;
        set->id = sorted;
        set->room = set->n + (uint64_t)1;
    }
    const bool well = at && other;
    free(at);
    free(other);
    return !well ? refuse_memory(join, e) : ended ? stopped(e) : 0;
}

/* ---- cutting ---- */

/* How many of a sorted set are below a value. */
static uint64_t count_below(const struct shmt_ids *set, uint64_t value) {
    uint64_t low = 0, high = set->n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (set->id[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct shmt_ids *largest_of(const struct shmt_ids_join *join) {
    const struct shmt_ids *largest = &join->set[0];
    for (uint32_t s = 1; s < join->n_sets; s++)
        if (join->set[s].n > largest->n) largest = &join->set[s];
    return largest;
}

/* At equal shares of the largest set: the others are of the same data. */
int shmt_ids_join_cut(struct shmt_ids_join *join, struct shmt_error *e) {
    const struct shmt_ids *by = largest_of(join);
    uint64_t all = 0;
    for (uint32_t s = 0; s < join->n_sets; s++) all += join->set[s].n;
    join->id = malloc((all + 1) * sizeof *join->id);
    join->part = calloc(join->n_parts, sizeof *join->part);
    if (!join->id || !join->part) return refuse_memory(join, e);
    for (uint32_t p = 0; p < join->n_parts; p++) {
        struct shmt_ids_stretch *part = &join->part[p];
        part->low = p == 0 || by->n == 0 ? 0 : by->id[(uint64_t)by->n * p / join->n_parts];
        for (uint32_t s = 0; s < join->n_sets; s++) part->first += count_below(&join->set[s], part->low);
    }
    return 0;
}

/* ---- merging ---- */

/* Where a part is in each set. */
struct heads {
    uint32_t n;
    struct head {
        const uint64_t *next, *end;
    } head[];
};

static struct heads *make_heads(const struct shmt_ids_join *join, uint32_t p) {
    const struct shmt_ids_stretch *part = &join->part[p];
    const bool is_last = p + 1 == join->n_parts;
    struct heads *heads = malloc(sizeof *heads + join->n_sets * sizeof heads->head[0]);
    if (!heads) return NULL;
    heads->n = 0;
    for (uint32_t s = 0; s < join->n_sets; s++) {
        const struct shmt_ids *set = &join->set[s];
        const uint64_t from = count_below(set, part->low), to = is_last ? set->n : count_below(set, part[1].low);
        if (from < to) heads->head[heads->n++] = (struct head){set->id + from, set->id + to};
    }
    return heads;
}

/* The least id that any head has; all heads that have it go on. */
static uint64_t take_least(struct heads *heads) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < heads->n; i++) least = shmt_min_u64(least, *heads->head[i].next);
    for (uint32_t i = heads->n; i-- > 0;) {
        struct head *head = &heads->head[i];
        head->next += *head->next == least;
        if (head->next == head->end) *head = heads->head[--heads->n]; /* which has gone on */
    }
    return least;
}

int shmt_ids_join_merge(struct shmt_ids_join *join, uint32_t p, struct shmt_error *e) {
    struct heads *heads = make_heads(join, p);
    uint64_t *const to = join->id + join->part[p].first;
    uint64_t n = 0;
    if (!heads) return refuse_memory(join, e);
    while (heads->n > 0 && (n % LOOK_IDS > 0 || !is_stopped(join))) to[n++] = take_least(heads);
    const bool ended = heads->n > 0;
    free(heads);
    join->part[p].n = n;
    return ended ? stopped(e) : 0;
}

int shmt_ids_join_close(struct shmt_ids_join *join, struct shmt_error *e) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < join->n_parts; p++) {
        const struct shmt_ids_stretch *part = &join->part[p];
        if (part->n > 0) memmove(join->id + n, join->id + part->first, part->n * sizeof *join->id);
        n += part->n;
    }
    if (n > SHMT_IDS_MAX) return refuse_many(join, e);
    uint64_t *smaller = realloc(join->id, (n + 1) * sizeof *join->id);
    if (smaller) join->id = smaller;
    if (!shmt_ids_own(&join->out, join->id, (uint32_t)n)) return refuse_memory(join, e);
    join->id = NULL;
    return 0;
}

int shmt_ids_join_number(struct shmt_ids_join *join, uint32_t p, struct shmt_error *e) {
    const struct shmt_ids *ids = &join->out;
    const uint64_t end = (uint64_t)ids->n * (p + (uint64_t)1) / join->n_parts;
    for (uint64_t i = (uint64_t)ids->n * p / join->n_parts; i < end; i++) {
        if (i % LOOK_IDS == 0 && is_stopped(join)) return stopped(e);
        shmt_ids_put(ids, (uint32_t)i);
    }
    return 0;
}

void shmt_ids_join_end(struct shmt_ids_join *join) {
    free(join->id);
    free(join->part);
    join->id = NULL;
    join->part = NULL;
}

int shmt_ids_join(struct shmt_ids *sets, uint32_t n_sets, const char *name, struct shmt_ids *out, struct shmt_error *e) {
    struct shmt_ids_join join = {.set = sets, .n_sets = n_sets, .n_parts = 1, .name = name};
    int rc = 0;
    *out = (struct shmt_ids){0};
    for (uint32_t s = 0; rc == 0 && s < n_sets; s++) rc = shmt_ids_join_sort(&join, s, e);
    if (rc == 0) rc = shmt_ids_join_cut(&join, e);
    if (rc == 0) rc = shmt_ids_join_merge(&join, 0, e);
    if (rc == 0) rc = shmt_ids_join_close(&join, e);
    if (rc == 0) rc = shmt_ids_join_number(&join, 0, e);
    shmt_ids_join_end(&join);
    if (rc == 0)
        *out = join.out;
    else
        shmt_ids_free(&join.out);
    return rc;
}
