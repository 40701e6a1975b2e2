/* Parts of a merge over many hosts: see parts.h. */
#include "update/parts.h"

#include <string.h>

/* Of the words of a part, or of a merge: of those that have changed, the sum of values or of changes, one of the values, and how many.
 * The loops have no branches, so that compilers make vector code of them: what does not count is masked, and adds +0, which changes no
 * sum that began with +0. */
struct sums {
    float sum[SHMT_PART_FLOATS], last[SHMT_PART_FLOATS];
    uint32_t count[SHMT_PART_FLOATS];
};

static uint32_t bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static float of_bits(uint32_t word) {
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* mask: all bits, or none. */
static uint32_t mask(bool holds) { return 0 - (uint32_t)holds; }
static float where(uint32_t mask, float x) { return of_bits(bits(x) & mask); }
static float either(uint32_t mask, float x, float y) { return of_bits((bits(x) & mask) | (bits(y) & ~mask)); }

static void add_copy(struct sums *restrict s, bool changes, const float *restrict m, const float *restrict r, uint64_t n) {
    const uint32_t changed = mask(changes);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t differs = mask(bits(r[i]) != bits(m[i]));
        s->sum[i] += where(differs, either(changed, r[i] - m[i], r[i]));
        s->last[i] = either(differs, r[i], s->last[i]);
        s->count[i] -= differs; /* 1 more */
    }
}

bool shmt_merge_part_take(struct shmt_merging how, const float *master, float *const *replica, uint32_t n_replicas, uint64_t n,
                          uint64_t first, struct shmt_merge_part *out) {
    struct sums s;
    bool any = false;
    if (how.kind == SHMT_MERGING_OWN || how.kind == SHMT_MERGING_FOLLOWS) return false;
    for (uint32_t k = 0; k < n_replicas; k++) {
        if (memcmp(replica[k], master, n * sizeof *master) == 0) continue;
        if (!any) memset(&s, 0, sizeof s);
        any = true;
        add_copy(&s, how.kind == SHMT_MERGING_SUM, master, replica[k], n);
    }
    for (uint64_t i = 0; any && i < n; i++) {
        out->value[first + i] = either(mask(s.count[i] == 1), s.last[i], s.sum[i]);
        out->count[first + i] = (uint8_t)s.count[i];
    }
    return any;
}

static void add_part(struct sums *restrict s, bool changes, const float *restrict m, const float *restrict value,
                     const uint8_t *restrict count, uint64_t n) {
    const uint32_t changed = mask(changes);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t c = count[i], has = mask(c != 0);
        s->sum[i] += where(has, either(changed & mask(c == 1), value[i] - m[i], value[i]));
        s->last[i] = either(has, value[i], s->last[i]);
        s->count[i] += c;
    }
}

void shmt_merge_parts(struct shmt_merging how, const float *master, const struct shmt_merge_part *part, uint32_t n_parts,
                      uint64_t n, uint64_t first, float *restrict out) {
    const bool changes = how.kind == SHMT_MERGING_SUM;
    const uint32_t changed = mask(changes);
    struct sums s;
    memset(&s, 0, sizeof s);
    for (uint32_t k = 0; k < n_parts; k++) add_part(&s, changes, master, part[k].value + first, part[k].count + first, n);
    for (uint64_t i = 0; i < n; i++) {
        const float mean = s.sum[i] / (float)(int32_t)(s.count[i] + (s.count[i] == 0));
        const float merged = either(mask(s.count[i] == 1), s.last[i], either(changed, master[i] + s.sum[i], mean));
        out[i] = either(mask(s.count[i] != 0), merged, master[i]);
    }
}
