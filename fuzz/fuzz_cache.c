/* Caches. An input is the header's beginning and then what is in the sections; the target puts them where they belong. It also
 * makes right, as far as the first byte says, what a fuzzer would hardly hit: where sections lie, and the checksums. So it gets
 * behind them, where whoever writes a cache on purpose stands, too. */
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/checked.h"
#include "data/cache_priv.h"
#include "fuzz.h"
#include "sources.h"

#define MOST_BYTES ((uint64_t)32 * SHMT_CACHE_PAGE_BYTES) /* of a file */

enum { LAYS_OUT = 1, SIGNS_BLOCKS = 2, SIGNS_HEADER = 4, NARROW = 8, FOREIGN = 16, WITH_VALUES = 32 };

union contents {
    struct shmt_cache_header header;
    uint8_t bytes[MOST_BYTES];
};

/* The part of a section that the file has. */
static uint64_t bytes_there(const struct shmt_cache_header *h, uint32_t part) {
    const struct shmt_cache_section *s = &h->section[part];
    return s->off < MOST_BYTES ? shmt_min_u64(s->bytes, MOST_BYTES - s->off) : 0;
}

static void put_sections(union contents *c, struct fuzz_input *in) {
    const struct shmt_cache_header h = c->header; /* a section may lie on it */
    for (uint32_t part = 0; part < SHMT_CACHE_PARTS; part++) {
        const uint64_t n = shmt_min_u64(bytes_there(&h, part), in->left);
        if (n > 0) memcpy(c->bytes + h.section[part].off, in->at, n);
        in->at += n;
        in->left -= n;
    }
}

/* Sections are smaller than a block here. */
static void sign_blocks(union contents *c) {
    struct shmt_cache_header *h = &c->header;
    uint64_t at = h->section[SHMT_CACHE_HASHES].off;
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES; part++) {
        const uint64_t n = bytes_there(h, part), hash = n > 0 ? XXH3_64bits(c->bytes + h->section[part].off, n) : 0;
        h->section[part].hash = XXH3_64bits(&hash, n > 0 ? sizeof hash : 0);
        if (n == 0 || at > MOST_BYTES - sizeof hash) continue;
        memcpy(c->bytes + at, &hash, sizeof hash);
        at += sizeof hash;
    }
    const uint64_t n = bytes_there(h, SHMT_CACHE_NOTE);
    if (n > 0) h->section[SHMT_CACHE_NOTE].hash = XXH3_64bits(c->bytes + h->section[SHMT_CACHE_NOTE].off, n);
}

static void take_header(union contents *c, uint64_t from, uint64_t to, struct fuzz_input *in) {
    const uint64_t n = shmt_min_u64(in->left, to - from);
    if (n > 0) memcpy(c->bytes + from, in->at, n);
    in->at += n;
    in->left -= n;
}

static uint64_t make(union contents *c, uint8_t how, struct fuzz_input *in) {
    const uint64_t note = offsetof(struct shmt_cache_header, section[SHMT_CACHE_NOTE]);
    memset(c, 0, sizeof *c);
    take_header(c, 0, note, in);
    if (c->header.flags & SHMT_CACHE_IS_TABLE) take_header(c, note, offsetof(struct shmt_cache_header, nothing), in);
    memcpy(c->header.magic, SHMT_CACHE_MAGIC, sizeof c->header.magic);
    if (how & LAYS_OUT) (void)shmt_cache_lay_out(&c->header, (how & WITH_VALUES) != 0);
    put_sections(c, in);
    if (how & SIGNS_BLOCKS) sign_blocks(c);
    if (how & SIGNS_HEADER) c->header.hash = shmt_cache_header_hash(&c->header);
    return shmt_min_u64(c->header.file_bytes, MOST_BYTES);
}

/* What runs take without a copy, when it was counted without an error. */
static void check_arrays(const struct shmt_cache *c) {
    for (uint64_t i = 0; i < c->n_examples; i++) FUZZ_CHECK(c->start[i] <= c->start[i + 1]);
    for (uint64_t j = 0; j < c->n_nonzeros; j++) FUZZ_CHECK(c->id[j] < c->n_columns);
    for (uint64_t p = 0; c->column && p < c->n_columns; p++) FUZZ_CHECK(c->column[p] < c->n_columns);
}

static void read_cache(struct shmt_source *source, uint8_t how) {
    static struct shmt_part part;
    static const struct shmt_columns ALL = SHMT_ALL_COLUMNS;
    const struct shmt_cache *cache = shmt_cache_of(source);
    struct shmt_error e = {0};
    if (shmt_source_unpack(source, &e) == 0 && shmt_source_count(source, &ALL, 0, 1, NULL, &part) == 0) check_arrays(cache);
    /* Nobody checks in which order ids stand within an example, nor that none is there twice. */
    fuzz_read_source(source, 1 + (how >> 6), how & NARROW ? FUZZ_COLUMNS_RANGE : FUZZ_COLUMNS_FOUND, 1 + (how >> 6), true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file own, foreign; /* the one is mapped, the other, which anybody may write, is read */
    static union contents contents;
    struct fuzz_input in = {bytes, n};
    struct shmt_source *source;
    struct shmt_error e = {0};
    const uint8_t how = fuzz_u8(&in);
    struct fuzz_file *file = how & FOREIGN ? &foreign : &own;
    const uint64_t file_bytes = make(&contents, how, &in);
    fuzz_file_write(file, contents.bytes, file_bytes);
    FUZZ_CHECK(file == &own || fchmod(foreign.fd, 0666) == 0);
    const int status = shmt_source_open(file->path, 1, 0, &source, &e);
    if (status != 0)
        fuzz_check_error(status, &e);
    else if (shmt_cache_of(source))
        read_cache(source, how);
    else
        shmt_source_close(source);
    return 0;
}
