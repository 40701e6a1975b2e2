/* One copy of the parameters, or one per worker: see copies.h. */
#include "api/copies.h"

#include <stdio.h>

#include "base/checked.h"
#include "segment/budget.h"

#define UNKNOWN_CACHE (UINT64_C(1) << 20) /* bytes of a second-level cache that nobody tells of */

/* What a worker has in hand, a replica and its base with their state, may take half of the cache: the rest is for the data that
 * streams through. */
static bool fits(const struct shmt_copies_wish *w, uint64_t cache_bytes) {
    uint64_t bytes;
    return shmt_mul_u64(w->floats, 2 * sizeof(float) * (1 + (uint64_t)w->planes), &bytes) && bytes <= cache_bytes / 2;
}

bool shmt_copies_choose(const struct shmt_copies_wish *w, char *why, size_t bytes) {
    const uint64_t cache = w->cache_bytes ? w->cache_bytes : UNKNOWN_CACHE;
    const char *const what = w->planes ? "the parameters with their state" : "the parameters";
    uint64_t mine = 0;
    char size[32], level[32];
    if (bytes > 0) why[0] = '\0';
    if (!w->is_linear || w->n_workers < 2) return false;
    if (!shmt_mul_u64(w->floats, sizeof(float) * (1 + (uint64_t)w->planes), &mine)) mine = UINT64_MAX;
    shmt_bytes_text(mine, size, sizeof size);
    shmt_bytes_text(cache, level, sizeof level);
    if (w->has_guests) {
        snprintf(why, bytes, "one copy: workers may come and go by name");
    } else if (!fits(w, cache)) {
        snprintf(why, bytes, "one copy: %s (%s), twice, are more than half of the second-level cache (%s)", what, size, level);
    } else {
        snprintf(why, bytes, "a copy per worker, merged by lines: %s (%s) fit in the second-level cache", what, size);
        return true;
    }
    return false;
}
