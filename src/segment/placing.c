/* Ranges of a segment and NUMA nodes: asking for huge pages there, giving policies, and seeing what became of them. Called by
 * segment.c around the placing of pages. Nothing here fails: what the machine refuses is said in a line of the log. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "segment/budget.h"
#include "segment/segment_priv.h"

/* A node, and what is wished and found there. */
struct tally {
    struct shmt_node node;
    uint64_t wished_bytes, missing_bytes; /* of whole pages */
    uint64_t extra_bytes;                 /* that were wished elsewhere */
};

/* All nodes, nothing wished yet; NULL without a topology, or memory. */
static struct tally *tallies(const struct shmt_topo *topo, uint32_t *n_out) {
    const uint32_t n = topo ? shmt_topo_all_nodes(topo) : 0;
    struct tally *tally = n > 0 ? calloc(n, sizeof *tally) : NULL;
    for (uint32_t i = 0; tally && i < n; i++) shmt_topo_node(topo, i, &tally[i].node);
    *n_out = n;
    return tally;
}

static int is_in(const struct shmt_memory_range *range, uint32_t node) {
    for (uint32_t i = 0; i < range->n_nodes; i++)
        if (range->node[i] == node) return 1;
    return 0;
}

/* What of `bytes` should be on a node of the range: interleaved the same on each; bound, all on the first one. */
static uint64_t share(const struct shmt_memory_range *range, uint64_t bytes, uint32_t node) {
    if (range->policy == SHMT_MEMORY_INTERLEAVE) return is_in(range, node) ? bytes / range->n_nodes : 0;
    return range->node[0] == node ? bytes : 0;
}

static int counts(const struct shmt_memory_range *range) {
    return range->policy != SHMT_MEMORY_DEFAULT && range->n_nodes > 0 && range->bytes > 0;
}

/* ---- huge pages ---- */

int shmt_placing_has_huge(const struct shmt_segment_wish *wish, uint64_t bytes) {
    uint32_t n;
    struct tally *tally = tallies(wish->topo, &n);
    if (!tally) return 1; /* the kernel will tell */
    uint64_t free_pages = 0;
    int enough = 1;
    for (uint32_t i = 0; i < n && enough; i++) {
        const struct shmt_node *node = &tally[i].node;
        uint64_t wished = 0;
        for (uint32_t r = 0; r < wish->n_ranges; r++)
            if (counts(&wish->range[r])) wished += share(&wish->range[r], wish->range[r].bytes, node->node);
        const uint64_t pages = shmt_ceil_div(wished, SHMT_HUGE_BYTES);
        if (node->usable) free_pages += node->huge_free;
        if (pages <= node->huge_free) continue;
        enough = 0;
        shmt_log(wish->log,
                 "node %" PRIu32 " has %" PRIu64 " free huge pages of 2 MiB and the %s would take %" PRIu64
                 " there: it gets ordinary pages",
                 node->node, node->huge_free, wish->name, pages);
    }
    const uint64_t pages = shmt_ceil_div(bytes, SHMT_HUGE_BYTES);
    if (enough && pages > free_pages) {
        enough = 0;
        shmt_log(wish->log,
                 "the machine has %" PRIu64 " free huge pages of 2 MiB and the %s would take %" PRIu64
                 ": it gets ordinary pages (vm.nr_hugepages reserves huge ones)",
                 free_pages, wish->name, pages);
    }
    free(tally);
    return enough;
}

/* ---- before ---- */

/* The range in the mapping, rounded outwards to whole pages; 0 bytes when it does not lie inside. */
static uint64_t pages_of(const struct shmt_segment *segment, const struct shmt_memory_range *range, uint64_t *first_out) {
    const unsigned char *at = shmt_segment_at(segment, range->off, range->bytes);
    if (!at) return 0;
    const uint64_t from = (uint64_t)(at - segment->base), mask = segment->page_bytes - 1;
    *first_out = from & ~mask;
    return shmt_min_u64((from + range->bytes + mask) & ~mask, segment->bytes) - *first_out;
}

int shmt_placing_bind(const struct shmt_segment_wish *wish, const struct shmt_segment *segment) {
    for (uint32_t r = 0; wish->topo && r < wish->n_ranges; r++) {
        const struct shmt_memory_range *range = &wish->range[r];
        struct shmt_error e = {0};
        uint64_t first = 0;
        const uint64_t bytes = counts(range) ? pages_of(segment, range, &first) : 0;
        if (bytes == 0) continue;
        if (shmt_topo_bind_memory(wish->topo, segment->base + first, bytes, (enum shmt_memory_policy)range->policy, range->node,
                                  range->n_nodes, &e) == 0)
            continue;
        shmt_log(wish->log, "%s: the system decides where the %s is placed", e.text, wish->name);
        return 0;
    }
    return 1;
}

/* ---- after ---- */

/* Holds the whole pages of a range against the wish. Interleaved ones are counted with some play: a range may end in the middle
 * of a round, and in a large one samples are counted. */
static int look_at(const struct shmt_segment_wish *wish, const struct shmt_segment *segment,
                   const struct shmt_memory_range *range, struct tally *tally, uint32_t n, uint64_t *on, struct shmt_error *e) {
    const unsigned char *at = shmt_segment_at(segment, range->off, range->bytes);
    if (!at) return 0;
    /* A transparent huge page at the border of two ranges belongs to either. */
    const uint64_t page = segment->transparent ? SHMT_HUGE_BYTES : segment->page_bytes, from = (uint64_t)(at - segment->base);
    const uint64_t first = (from + page - 1) & ~(page - 1), end = (from + range->bytes) & ~(page - 1);
    if (end <= first) return 0;
    const int rc = shmt_topo_where(wish->topo, segment->base + first, end - first, segment->page_bytes, on, e);
    if (rc != 0) return rc;
    const int turns = range->policy == SHMT_MEMORY_INTERLEAVE;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t wished = share(range, end - first, tally[i].node.node);
        const uint64_t play = turns ? wished / 16 + page : 0;
        tally[i].wished_bytes += wished;
        if (on[i] + play < wished) tally[i].missing_bytes += wished - on[i];
        if (on[i] > wished + play) tally[i].extra_bytes += on[i] - wished;
    }
    return 0;
}

static uint64_t field_of(const struct tally *tally, size_t off) {
    uint64_t value;
    memcpy(&value, (const unsigned char *)tally + off, sizeof value);
    return value;
}

/* "node 1", "nodes 0, 3": those of which the field at `off` is not 0. */
static void list(const struct tally *tally, uint32_t n, size_t off, char *out, size_t room) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += field_of(&tally[i], off) != 0;
    size_t length = (size_t)snprintf(out, room, "node%s", found == 1 ? "" : "s");
    const char *before = " ";
    for (uint32_t i = 0; i < n && length + 16 < room; i++) {
        if (field_of(&tally[i], off) == 0) continue;
        length += (size_t)snprintf(out + length, room - length, "%s%" PRIu32, before, tally[i].node.node);
        before = ", ";
    }
}

static void tell(const struct shmt_segment_wish *wish, const struct tally *tally, uint32_t n) {
    uint64_t wished = 0, missing = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (tally[i].missing_bytes == 0) continue;
        wished += tally[i].wished_bytes;
        missing += tally[i].missing_bytes;
    }
    if (missing == 0) return;
    char short_of[32], of[32], on[220], there[220];
    shmt_bytes_text(missing, short_of, sizeof short_of);
    shmt_bytes_text(wished, of, sizeof of);
    list(tally, n, offsetof(struct tally, missing_bytes), on, sizeof on);
    list(tally, n, offsetof(struct tally, extra_bytes), there, sizeof there);
    shmt_log(wish->log, "%s of %s of the %s did not fit on %s and are on %s", short_of, of, wish->name, on, there);
}

void shmt_placing_look(const struct shmt_segment_wish *wish, const struct shmt_segment *segment) {
    uint32_t n;
    struct tally *tally = wish->n_ranges > 0 ? tallies(wish->topo, &n) : NULL;
    uint64_t *on = tally ? calloc(n, sizeof *on) : NULL;
    struct shmt_error e = {0};
    if (on && n > 1 && shmt_topo_is_this_machine(wish->topo)) {
        int rc = 0;
        for (uint32_t r = 0; r < wish->n_ranges && rc == 0; r++)
            if (counts(&wish->range[r])) rc = look_at(wish, segment, &wish->range[r], tally, n, on, &e);
        if (rc == 0)
            tell(wish, tally, n);
        else
            shmt_log(wish->log, "%s: it is unknown whether the %s is where it should be", e.text, wish->name);
    }
    free(on);
    free(tally);
}
