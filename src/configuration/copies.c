/* One copy of the parameters, or one per worker of all or of some: see copies.h. */
#include "configuration/copies.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "segment/budget.h"

#define UNKNOWN_CACHE (UINT64_C(1) << 20) /* bytes of a second-level cache that nobody tells of */

/* What a worker has in hand, a replica and its base with their state, may take half of its cache: the rest is for the data
 * that streams through. */
static uint64_t most_floats(const struct shmt_copies_wish *w, uint64_t cache_bytes) {
    return cache_bytes / 2 / (2 * sizeof(float) * (1 + (uint64_t)w->planes));
}

/* As many of the first rows as fit, in whole pages, one page at least being left to share beside the last row's. 0: none. */
static uint32_t hot_floats(const struct shmt_copies_wish *w, uint64_t most) {
    if (!w->by_frequency || w->unit == 0 || most / w->unit == 0) return 0;
    const uint64_t pages = shmt_min_u64(most / w->unit, UINT32_MAX / w->unit), last = (w->floats - 1) / w->unit;
    return (uint32_t)(last > 1 ? shmt_min_u64(pages, last - 1) * w->unit : 0);
}

/* The cache of one worker: "1.0 MiB", or "2.0 MiB for 4 workers". */
static void level_text(const struct shmt_copies_wish *w, uint64_t cache, char *out, size_t bytes) {
    char level[32];
    shmt_bytes_text(cache, level, sizeof level);
    if (w->n_sharers > 1)
        snprintf(out, bytes, "%s for %u workers", level, (unsigned)w->n_sharers);
    else
        snprintf(out, bytes, "%s", level);
}

static void say_hot(char *why, size_t bytes, uint32_t hot, const char *whose, const char *level) {
    char rows[24];
    if (hot < 1000000)
        snprintf(rows, sizeof rows, "%u,%03u", (unsigned)hot / 1000, (unsigned)hot % 1000);
    else
        snprintf(rows, sizeof rows, "%u,%03u,%03u", (unsigned)hot / 1000000, (unsigned)hot / 1000 % 1000, (unsigned)hot % 1000);
    snprintf(why, bytes,
             "a copy of the %s most frequent rows per worker, the rest shared: that is what half of %sthe second-level "
             "cache (%s) holds",
             rows, whose, level);
}

/* Threads of one worker write into one copy, whose lines travel between them. */
static void say_threads(const struct shmt_copies_wish *w, char *why, size_t bytes) {
    const size_t used = strlen(why);
    if (w->n_threads < 2 || used >= bytes) return;
    snprintf(why + used, bytes - used, "; the %u threads of a worker share its copy, -w %llu -t 1 gives each its own",
             (unsigned)w->n_threads, (unsigned long long)w->n_workers * w->n_threads);
}

static void say_fit(const struct shmt_copies_wish *w, const char *what, const char *whose, const char *level, char *why,
                    size_t bytes) {
    if (w->n_sharers > 1)
        snprintf(why, bytes, "a copy per worker, merged by lines: %s fit in %sthe second-level cache (%s)", what, whose, level);
    else
        snprintf(why, bytes, "a copy per worker, merged by lines: %s fit in the second-level cache", what);
}

/* Of two workers or more. */
static bool choose(const struct shmt_copies_wish *w, uint32_t *hot_out, char *why, size_t bytes) {
    const uint64_t cache = w->cache_bytes ? w->cache_bytes : UNKNOWN_CACHE, n_sharers = shmt_max_u64(1, w->n_sharers);
    const uint64_t most = most_floats(w, cache / n_sharers);
    const char *const whose = n_sharers > 1 ? "a worker's part of " : "";
    uint64_t mine = 0;
    char size[32], level[64], what[80];
    if (!shmt_mul_u64(w->floats, sizeof(float) * (1 + (uint64_t)w->planes), &mine)) mine = UINT64_MAX;
    shmt_bytes_text(mine, size, sizeof size);
    snprintf(what, sizeof what, "the parameters%s (%s)", w->planes ? " with their state" : "", size);
    level_text(w, cache, level, sizeof level);
    if (w->floats <= most) {
        say_fit(w, what, whose, level, why, bytes);
        return true;
    }
    *hot_out = hot_floats(w, most);
    if (*hot_out > 0)
        say_hot(why, bytes, *hot_out, whose, level);
    else
        snprintf(why, bytes, "one copy: %s, stored twice, exceed half of %sthe second-level cache (%s)%s", what, whose, level,
                 w->by_frequency ? "" : ", and rows are not ordered by frequency");
    return *hot_out > 0;
}

/* A worker of several threads has one copy for them, where as many workers would have more. */
static void say_alone(const struct shmt_copies_wish *w, char *why, size_t bytes) {
    uint32_t hot = 0;
    if (w->n_threads < 2 || w->has_guests || !choose(w, &hot, why, bytes)) {
        if (bytes > 0) why[0] = '\0';
        return;
    }
    snprintf(why, bytes, "one copy: the %u threads of the worker share it, -w %u -t 1 gives each its own",
             (unsigned)w->n_threads, (unsigned)w->n_threads);
}

bool shmt_copies_choose(const struct shmt_copies_wish *w, uint32_t *hot_out, char *why, size_t bytes) {
    if (bytes > 0) why[0] = '\0';
    *hot_out = 0;
    if (!w->is_linear) return false;
    if (w->n_workers < 2) {
        say_alone(w, why, bytes);
        return false;
    }
    if (w->has_guests) {
        snprintf(why, bytes, "one copy: guests may join and leave");
        return false;
    }
    if (w->may_lose) {
        snprintf(why, bytes, "one copy: the others continue if a worker dies");
        return false;
    }
    const bool copies = choose(w, hot_out, why, bytes);
    if (copies) say_threads(w, why, bytes);
    return copies;
}
