/* Where things stand in a cache, for its reader and its writer: see cache_priv.h. */
#include "data/cache_priv.h"

#include <xxhash.h>

#include "base/checked.h"

uint64_t shmt_cache_header_hash(const struct shmt_cache_header *header) {
    struct shmt_cache_header copy = *header;
    copy.hash = 0;
    return XXH3_64bits(&copy, sizeof copy);
}

const char *shmt_cache_part_name(uint32_t part) {
    static const char *const NAMES[SHMT_CACHE_PARTS] = {
        "rows", "ids", "values", "labels", "columns", "ids of columns", "checksums", "the table's description"};
    return NAMES[part];
}

uint64_t shmt_cache_blocks(const struct shmt_cache_header *header, uint32_t part) {
    return shmt_ceil_div(header->section[part].bytes, SHMT_CACHE_BLOCK_BYTES);
}

uint64_t shmt_cache_blocks_before(const struct shmt_cache_header *header, uint32_t part) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < part; i++) n += shmt_cache_blocks(header, i);
    return n;
}

/* Adds a section of n elements behind what is there. */
static bool add(struct shmt_cache_header *h, uint32_t part, uint64_t n, uint64_t each) {
    struct shmt_cache_section *s = &h->section[part];
    s->off = h->file_bytes;
    uint64_t end;
    return shmt_mul_u64(n, each, &s->bytes) && shmt_add_u64(s->off, s->bytes, &end) &&
           shmt_round_up_u64(end, SHMT_CACHE_PAGE_BYTES, &h->file_bytes) && h->file_bytes <= INT64_MAX;
}

bool shmt_cache_lay_out(struct shmt_cache_header *h, bool with_values) {
    const bool by_frequency = (h->flags & SHMT_CACHE_BY_FREQUENCY) != 0;
    const uint64_t note = h->section[SHMT_CACHE_NOTE].bytes;
    uint64_t starts;
    h->file_bytes = sizeof *h;
    h->section[SHMT_CACHE_NOTE].off = 0;
    return shmt_add_u64(h->n_examples, 1, &starts) && add(h, SHMT_CACHE_START, starts, sizeof(uint64_t)) &&
           add(h, SHMT_CACHE_ID, h->n_nonzeros, sizeof(uint32_t)) &&
           add(h, SHMT_CACHE_VALUE, with_values ? h->n_nonzeros : 0, sizeof(float)) &&
           add(h, SHMT_CACHE_LABEL, h->n_examples, sizeof(float)) &&
           add(h, SHMT_CACHE_COLUMN, by_frequency ? h->n_columns : 0, sizeof(uint32_t)) &&
           add(h, SHMT_CACHE_LISTED, h->flags & SHMT_CACHE_LISTED_IDS ? h->n_columns : 0, sizeof(uint64_t)) &&
           add(h, SHMT_CACHE_HASHES, shmt_cache_blocks_before(h, SHMT_CACHE_HASHES), sizeof(uint64_t)) &&
           (note == 0 || add(h, SHMT_CACHE_NOTE, note, 1));
}
