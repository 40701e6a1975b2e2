/* Checking what a cache holds: see cache_check.h. */
#include "data/cache_check.h"

#include <math.h>
#include <stdio.h>
#include <xxhash.h>

#include "data/cache_loops.h"
#include "base/checked.h"
#include "base/cpu.h"

int shmt_cache_damaged(const char *name, const char *what, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged (%s): remove it, or convert the data again", name, what);
}

/* ---- the header ---- */

static bool has_a_shape_or_none(const struct shmt_cache_header *h) {
    const struct shmt_example_shape shape = {h->channels, h->height, h->width};
    if ((h->channels | h->height | h->width) == 0) return true;
    return h->base == 0 && !(h->flags & SHMT_CACHE_LISTED_IDS) && shmt_example_shape_has(&shape, h->n_columns);
}

static const char *look_at_numbers(const struct shmt_cache_header *h) {
    const bool none = h->min_id > h->max_id;
    const bool listed = (h->flags & SHMT_CACHE_LISTED_IDS) != 0;
    const bool table = (h->flags & SHMT_CACHE_IS_TABLE) != 0;
    if (h->flags & ~(SHMT_CACHE_BY_FREQUENCY | SHMT_CACHE_LACKS_IDS | SHMT_CACHE_LISTED_IDS | SHMT_CACHE_IS_TABLE))
        return "its flags";
    if ((listed || table) && (h->flags & SHMT_CACHE_LACKS_IDS)) return "its flags";
    if (table != (h->section[SHMT_CACHE_NOTE].bytes > 0)) return "its flags";
    if (h->n_examples < 1 || h->n_examples > UINT32_MAX) return "its number of examples";
    if (h->n_columns == 0 && h->n_nonzeros > 0) return "its number of nonzeros";
    if (h->base > 1 || (h->base > 0 && ((h->flags & SHMT_CACHE_LACKS_IDS) || listed))) return "its first id";
    if (none ? h->n_columns != 0 : h->min_id < h->base || (!listed && h->max_id >= UINT32_MAX)) return "its range of ids";
    if (!none && !listed && h->max_id - h->base + 1 != h->n_columns) return "its number of columns";
    if (isinf(h->best_loss) || h->best_loss < 0) return "its best loss";
    if (!has_a_shape_or_none(h)) return "the shape of its examples";
    return NULL;
}

/* The same numbers, laid out here. */
static const char *look_at_sections(const struct shmt_cache_header *h, uint64_t file_bytes) {
    struct shmt_cache_header again = *h;
    if (!shmt_cache_lay_out(&again, h->section[SHMT_CACHE_VALUE].bytes != 0)) return "its sizes";
    if (again.file_bytes != h->file_bytes) return "its size";
    for (uint32_t i = 0; i < SHMT_CACHE_PARTS; i++)
        if (again.section[i].off != h->section[i].off || again.section[i].bytes != h->section[i].bytes) return "its sections";
    const struct shmt_cache_section *note = &h->section[SHMT_CACHE_NOTE];
    if (h->section[SHMT_CACHE_HASHES].hash != 0 || (note->bytes == 0 && note->hash != 0)) return "its checksums";
    return file_bytes > h->file_bytes ? "extra bytes after its end" : NULL;
}

int shmt_cache_check_header(const char *name, const struct shmt_cache_header *h, uint64_t file_bytes, struct shmt_error *e) {
    if (h->version != SHMT_CACHE_VERSION)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s is a cache of format %u, but this program reads format %u: convert the data again", name,
                         h->version, SHMT_CACHE_VERSION);
    if (h->hash != shmt_cache_header_hash(h)) return shmt_cache_damaged(name, "the checksum of its header is wrong", e);
    const char *what = look_at_numbers(h);
    if (!what) what = look_at_sections(h, file_bytes);
    if (what) return shmt_cache_damaged(name, what, e);
    if (file_bytes < h->file_bytes)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is cut short (%llu of %llu bytes): convert the data again", name,
                         (unsigned long long)file_bytes, (unsigned long long)h->file_bytes);
    return 0;
}

/* ---- blocks ---- */

extern const struct shmt_cache_loops SHMT_CACHE_LOOPS_portable;
#ifdef SHMT_HAS_AVX2
extern const struct shmt_cache_loops SHMT_CACHE_LOOPS_avx2;
#endif

const struct shmt_cache_loops *shmt_cache_loops_of(unsigned cpu) {
#ifdef SHMT_HAS_AVX2
    if (cpu == SHMT_CPU_AVX2 && shmt_cpu_has(cpu)) return &SHMT_CACHE_LOOPS_avx2;
#endif
    (void)cpu;
    return &SHMT_CACHE_LOOPS_portable;
}

/* What is in a block of section `part`; NULL: nothing that cannot be. Rows are looked at as a whole (cache.c). */
static const char *look_at_block(const struct shmt_cache_loops *loops, const struct shmt_cache_header *h, uint32_t part,
                                 const void *block, uint64_t bytes) {
    const uint64_t n = bytes / sizeof(uint32_t);
    switch (part) {
        case SHMT_CACHE_ID:
            return loops->are_below(block, n, h->n_columns) ? NULL : "an id exceeds its number of columns";
        case SHMT_CACHE_COLUMN:
            return loops->are_below(block, n, h->n_columns) ? NULL : "a column exceeds its number of columns";
        case SHMT_CACHE_VALUE:
            return loops->are_finite(block, n) ? NULL : "a value is not a finite number";
        case SHMT_CACHE_LABEL:
            return loops->are_finite(block, n) ? NULL : "a label is not a finite number";
        default:
            return NULL;
    }
}

static int check_hashes(const char *name, const struct shmt_cache_header *h, const uint64_t *hash, struct shmt_error *e) {
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES; part++) {
        const uint64_t *of = hash + shmt_cache_blocks_before(h, part);
        if (XXH3_64bits(of, shmt_cache_blocks(h, part) * sizeof *of) != h->section[part].hash)
            return shmt_cache_damaged(name, "the checksum of its checksums is wrong", e);
    }
    return 0;
}

/* Block `i` of section `part`. What looks at it behind its checksum finds it in the second-level cache. */
static int check_block(const char *name, const struct shmt_cache_header *h, const unsigned char *memory, uint32_t part,
                       uint64_t i, uint64_t hash, struct shmt_error *e) {
    const struct shmt_cache_loops *loops = shmt_cache_loops_of(shmt_cpu_best());
    const struct shmt_cache_section *s = &h->section[part];
    const uint64_t at = i * SHMT_CACHE_BLOCK_BYTES, bytes = shmt_min_u64(SHMT_CACHE_BLOCK_BYTES, s->bytes - at);
    const unsigned char *block = memory + s->off + at;
    if (loops->hash(block, bytes) != hash) {
        char what[100];
        snprintf(what, sizeof what, "wrong checksum of %s, bytes %llu to %llu", shmt_cache_part_name(part),
                 (unsigned long long)(s->off + at + 1), (unsigned long long)(s->off + at + bytes));
        return shmt_cache_damaged(name, what, e);
    }
    const char *what = look_at_block(loops, h, part, block, bytes);
    return what ? shmt_cache_damaged(name, what, e) : 0;
}

int shmt_cache_check_blocks(const char *name, const struct shmt_cache_header *h, const unsigned char *memory, uint64_t from,
                            uint64_t to, struct shmt_error *e) {
    const uint64_t *hash = (const uint64_t *)(const void *)(memory + h->section[SHMT_CACHE_HASHES].off);
    int rc = check_hashes(name, h, hash, e);
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES && rc == 0; part++) {
        const uint64_t before = shmt_cache_blocks_before(h, part), end = before + shmt_cache_blocks(h, part);
        for (uint64_t b = shmt_max_u64(from, before); b < shmt_min_u64(to, end) && rc == 0; b++)
            rc = check_block(name, h, memory, part, b - before, hash[b], e);
    }
    return rc;
}
