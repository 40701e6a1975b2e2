/* One copy of the parameters, or one per worker of all or of some: see copies.h. */
#include "api/copies.h"

#include <stdio.h>

#include "base/checked.h"
#include "segment/budget.h"

#define UNKNOWN_CACHE (UINT64_C(1) << 20) /* bytes of a second-level cache that nobody tells of */

/* What a worker has in hand, a replica and its base with their state, may take half of the cache: the rest is for the data that
 * streams through. */
static uint64_t most_floats(const struct shmt_copies_wish *w, uint64_t cache_bytes) {
    return cache_bytes / 2 / (2 * sizeof(float) * (1 + (uint64_t)w->planes));
}

/* As many of the first rows as fit, in whole pages, one page at least being left to share beside the last row's. 0: none. */
static uint32_t hot_floats(const struct shmt_copies_wish *w, uint64_t most) {
    if (!w->by_frequency || w->unit == 0 || most / w->unit == 0) return 0;
    const uint64_t pages = shmt_min_u64(most / w->unit, UINT32_MAX / w->unit), last = (w->floats - 1) / w->unit;
    return (uint32_t)(last > 1 ? shmt_min_u64(pages, last - 1) * w->unit : 0);
}

static void say_hot(char *why, size_t bytes, uint32_t hot, const char *level) {
    char rows[24];
    if (hot < 1000000)
        snprintf(rows, sizeof rows, "%u,%03u", (unsigned)hot / 1000, (unsigned)hot % 1000);
    else
        snprintf(rows, sizeof rows, "%u,%03u,%03u", (unsigned)hot / 1000000, (unsigned)hot / 1000 % 1000, (unsigned)hot % 1000);
    snprintf(why, bytes,
             "a copy of the %s most frequent rows per worker, the rest shared: that is what half of the second-level "
             "cache (%s) holds",
             rows, level);
}

bool shmt_copies_choose(const struct shmt_copies_wish *w, uint32_t *hot_out, char *why, size_t bytes) {
    const uint64_t cache = w->cache_bytes ? w->cache_bytes : UNKNOWN_CACHE;
    const char *const what = w->planes ? "the parameters with their state" : "the parameters";
    const uint64_t most = most_floats(w, cache);
    uint64_t mine = 0;
    char size[32], level[32];
    if (bytes > 0) why[0] = '\0';
    *hot_out = 0;
    if (!w->is_linear || w->n_workers < 2) return false;
    if (!shmt_mul_u64(w->floats, sizeof(float) * (1 + (uint64_t)w->planes), &mine)) mine = UINT64_MAX;
    shmt_bytes_text(mine, size, sizeof size);
    shmt_bytes_text(cache, level, sizeof level);
    if (w->has_guests) {
        snprintf(why, bytes, "one copy: workers may come and go by name");
        return false;
    }
    if (w->floats <= most) {
        snprintf(why, bytes, "a copy per worker, merged by lines: %s (%s) fit in the second-level cache", what, size);
        return true;
    }
    *hot_out = hot_floats(w, most);
    if (*hot_out > 0)
        say_hot(why, bytes, *hot_out, level);
    else
        snprintf(why, bytes, "one copy: %s (%s), twice, are more than half of the second-level cache (%s)%s", what, size, level,
                 w->by_frequency ? "" : ", and not ordered by frequency");
    return *hot_out > 0;
}
