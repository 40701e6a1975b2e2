/* Parts of a merge over many hosts: see parts.h. */
#include "update/parts.h"

#include <string.h>

/* Of the words of a part, or of a merge: of those that have changed, the sum of values or of changes, one of the values, and how many. */
struct sums {
    float sum[SHMT_PART_FLOATS], last[SHMT_PART_FLOATS];
    uint32_t count[SHMT_PART_FLOATS];
};

static uint32_t bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static void add_copy(struct sums *s, bool changes, const float *m, const float *r, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        if (bits(r[i]) == bits(m[i])) continue;
        s->sum[i] += changes ? r[i] - m[i] : r[i];
        s->last[i] = r[i];
        s->count[i]++;
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
        out->value[first + i] = s.count[i] == 1 ? s.last[i] : s.sum[i];
        out->count[first + i] = (uint8_t)s.count[i];
    }
    return any;
}

static void add_part(struct sums *s, bool changes, const float *m, const struct shmt_merge_part *part, uint64_t first,
                     uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t count = part->count[first + i];
        const float value = part->value[first + i];
        if (count == 0) continue;
        s->sum[i] += changes && count == 1 ? value - m[i] : value;
        s->last[i] = value;
        s->count[i] += count;
    }
}

void shmt_merge_parts(struct shmt_merging how, const float *master, const struct shmt_merge_part *part, uint32_t n_parts,
                      uint64_t n, uint64_t first, float *out) {
    const bool changes = how.kind == SHMT_MERGING_SUM;
    struct sums s;
    memset(&s, 0, sizeof s);
    for (uint32_t k = 0; k < n_parts; k++) add_part(&s, changes, master, &part[k], first, n);
    for (uint64_t i = 0; i < n; i++) {
        const float merged = changes ? master[i] + s.sum[i] : s.sum[i] / (float)s.count[i];
        out[i] = s.count[i] == 0 ? master[i] : s.count[i] == 1 ? s.last[i] : merged;
    }
}
