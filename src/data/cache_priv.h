/* What stands where in a cache: see docs/cache-format.md, which says it for everybody. Only for this room. */
#pragma once

#include <stddef.h>

#include "data/cache.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "caches are written as the memory is");

#define SHMT_CACHE_MAGIC      "\x89SHMTC\r\n" /* no text begins so, and no copy as text leaves it as it is */
#define SHMT_CACHE_VERSION    2
#define SHMT_CACHE_PAGE_BYTES 4096 /* the header's size, and what sections begin at multiples of */
#define SHMT_CACHE_BLOCK_BYTES \
    (UINT64_C(1) << 18) /* of a section: each has a checksum of its own, so that all can be checked at once */
#define SHMT_CACHE_BY_FREQUENCY UINT32_C(1)
#define SHMT_CACHE_LACKS_IDS    UINT32_C(2)
#define SHMT_CACHE_LISTED_IDS   UINT32_C(4)
#define SHMT_CACHE_IS_TABLE     UINT32_C(8)

/* In the order in which they stand in the file. */
enum shmt_cache_part {
    SHMT_CACHE_START,
    SHMT_CACHE_ID,
    SHMT_CACHE_VALUE,
    SHMT_CACHE_LABEL,
    SHMT_CACHE_COLUMN,
    SHMT_CACHE_LISTED,
    SHMT_CACHE_HASHES, /* of the blocks of the six before it, in order */
    SHMT_CACHE_NOTE,   /* of a table: how it was read (csv_plan.h), as text without a final 0 */
    SHMT_CACHE_PARTS
};

struct shmt_cache_section {
    uint64_t off, bytes; /* 0 bytes: it is left out */
    uint64_t hash;       /* of its blocks' hashes; SHMT_CACHE_HASHES: 0, for the others' say it; SHMT_CACHE_NOTE: of its text */
};

struct shmt_cache_header {
    char magic[8];
    uint32_t version, flags;
    uint64_t hash; /* of the header, this word 0 */
    uint64_t file_bytes;
    uint64_t n_examples, n_nonzeros;
    uint32_t n_columns, base;
    uint64_t min_id, max_id;
    uint64_t square_whole, square_fraction; /* sum of squared values (sum.h) */
    double best_loss;
    uint64_t origin_bytes;
    int64_t origin_modified_s, origin_modified_ns;
    uint64_t origin_sample;
    struct shmt_cache_section section[SHMT_CACHE_PARTS];
    uint32_t channels, height, width; /* of an example; all 0: nobody knows, as in caches of earlier programs */
    unsigned char nothing[SHMT_CACHE_PAGE_BYTES - 332]; /* 0 */
};
_Static_assert(sizeof(struct shmt_cache_header) == SHMT_CACHE_PAGE_BYTES, "the header is a page");
_Static_assert(offsetof(struct shmt_cache_header, section) == 128, "version 2");
_Static_assert(offsetof(struct shmt_cache_header, channels) == 320, "version 2");

uint64_t shmt_cache_header_hash(const struct shmt_cache_header *header);

/* Sections and file_bytes, from the numbers, flags and the bytes of SHMT_CACHE_NOTE. `with_values`: not all values are 1.
 * false: no file is that large. */
bool shmt_cache_lay_out(struct shmt_cache_header *header, bool with_values);

/* Blocks of section `part`; and of all before it. */
uint64_t shmt_cache_blocks(const struct shmt_cache_header *header, uint32_t part);
uint64_t shmt_cache_blocks_before(const struct shmt_cache_header *header, uint32_t part);

const char *shmt_cache_part_name(uint32_t part); /* for sentences */

/* As the other kinds of source_priv.h. 1: this is no cache, and nothing is said. */
int shmt_cache_open(const char *path, struct shmt_source **out, struct shmt_error *e);
