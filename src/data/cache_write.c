/* Writing a cache, and knowing again what it was made from: see cache.h. From begin to end, each block's checksum on the way;
 * the header, which is zeros until then, last, when all is known. */
#include "data/cache_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/sum.h"
#include "base/checked.h"
#include "base/io.h"
#include "base/replace.h"
#include "files/file.h"

/* Who stops has to wait for no more than this is written, at the speed of a disk. */
#define SYNC_BYTES (UINT64_C(4) << 20)

/* -1 with errno: it is to be given up. */
static int look_at_stop(const struct shmt_cache_stop *stop) {
    if (!stop || !stop->asked(stop->arg)) return 0;
    errno = ECANCELED;
    return -1;
}

/* What ends at `end`, a multiple of SYNC_BYTES, goes to the disk, and what is before it is waited for: no more than two are
 * on their way, so that giving up, which has to wait for these, does not wait for the whole file. */
static void sync_as_it_grows(int fd, uint64_t end) {
    const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    (void)sync_file_range(fd, (off_t)(end - SYNC_BYTES), SYNC_BYTES, SYNC_FILE_RANGE_WRITE);
    if (end > SYNC_BYTES) (void)sync_file_range(fd, (off_t)(end - 2 * SYNC_BYTES), SYNC_BYTES, how);
}

/* ---- whole huge pages ---- */

/* The file is written by pieces as large as a huge page, each where one may lie: then the page cache has it in huge pages, if
 * the file system knows them, and whoever maps it takes one fault for each of these, not 32 or more (docs/performance.md). */
#define PIECE_BYTES (UINT64_C(2) << 20)
_Static_assert(SYNC_BYTES % PIECE_BYTES == 0, "pieces are synced as they were written");

struct pieces {
    int fd;
    unsigned char *piece; /* (PIECE_BYTES) */
    uint64_t end;         /* of what has come; what of it is behind the last multiple of PIECE_BYTES was not written yet */
};

static int flush_piece(struct pieces *p) {
    const uint64_t n = p->end % PIECE_BYTES;
    return n > 0 ? shmt_io_write_at(p->fd, p->piece, n, p->end - n) : 0;
}

/* `from` NULL: zeros. */
static int add_bytes(struct pieces *p, const unsigned char *from, uint64_t bytes) {
    while (bytes > 0) {
        const uint64_t at = p->end % PIECE_BYTES, n = shmt_min_u64(bytes, PIECE_BYTES - at);
        if (from) memcpy(p->piece + at, from, n);
        if (from) from += n;
        if (!from) memset(p->piece + at, 0, n);
        p->end += n;
        bytes -= n;
        if (p->end % PIECE_BYTES != 0) continue;
        if (shmt_io_write_at(p->fd, p->piece, PIECE_BYTES, p->end - PIECE_BYTES) < 0) return -1;
        if (p->end % SYNC_BYTES == 0) sync_as_it_grows(p->fd, p->end);
    }
    return 0;
}

/* One section, and its blocks' checksums into hash[]; NULL: it is none of those that have any. */
static int write_section(struct pieces *p, const struct shmt_cache_section *s, const void *from, uint64_t *hash,
                         const struct shmt_cache_stop *stop) {
    if (s->bytes > 0 && add_bytes(p, NULL, s->off - p->end) < 0) return -1;
    for (uint64_t at = 0; at < s->bytes; at += SHMT_CACHE_BLOCK_BYTES) {
        const uint64_t n = shmt_min_u64(SHMT_CACHE_BLOCK_BYTES, s->bytes - at);
        const unsigned char *block = (const unsigned char *)from + at;
        if (hash) *hash++ = XXH3_64bits(block, n);
        if (look_at_stop(stop) < 0 || add_bytes(p, block, n) < 0) return -1;
    }
    return 0;
}

/* What of it is not on the disk yet, in pieces between which it can be given up. A file that has no such thing (a pipe)
 * has nothing to wait for. */
static int sync_pieces(int fd, uint64_t bytes, const struct shmt_cache_stop *stop) {
    const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int rc = 0;
    for (uint64_t at = 0; at < bytes && rc == 0; at += SYNC_BYTES) {
        rc = look_at_stop(stop);
        if (rc == 0 && sync_file_range(fd, (off_t)at, SYNC_BYTES, how) < 0 && errno != EIO && errno != ENOSPC) return 0;
    }
    return rc;
}

static int write_contents(struct pieces *p, struct shmt_cache_header *h, const struct shmt_cache *c, uint64_t *hash,
                          const struct shmt_cache_stop *stop) {
    const void *const from[SHMT_CACHE_HASHES] = {c->start, c->id, c->value, c->label, c->column, c->listed};
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES; part++) {
        uint64_t *of = hash + shmt_cache_blocks_before(h, part);
        if (write_section(p, &h->section[part], from[part], of, stop) < 0) return -1;
        h->section[part].hash = XXH3_64bits(of, shmt_cache_blocks(h, part) * sizeof *of);
    }
    struct shmt_cache_section *note = &h->section[SHMT_CACHE_NOTE];
    if (write_section(p, &h->section[SHMT_CACHE_HASHES], hash, NULL, stop) < 0) return -1;
    if (write_section(p, note, c->note, NULL, stop) < 0) return -1;
    if (add_bytes(p, NULL, h->file_bytes - p->end) < 0 || flush_piece(p) < 0) return -1;
    if (c->note) note->hash = XXH3_64bits(c->note, note->bytes);
    h->hash = shmt_cache_header_hash(h);
    return shmt_io_write_at(p->fd, h, sizeof *h, 0) < 0 ? -1 : sync_pieces(p->fd, h->file_bytes, stop);
}

/* As readers add them up, to the last bit. Given up early, it is of no use. */
static struct shmt_sum sum_squares(const struct shmt_cache *c, const struct shmt_cache_stop *stop) {
    enum { LOOK = 1 << 14 }; /* examples */
    struct shmt_sum sum = {0, 0};
    for (uint64_t i = 0; i < c->n_examples; i++) {
        if (i % LOOK == 0 && look_at_stop(stop) < 0) break;
        double square = c->value ? 0 : (double)(c->start[i + 1] - c->start[i]);
        for (uint64_t j = c->start[i]; c->value && j < c->start[i + 1]; j++) square += (double)c->value[j] * c->value[j];
        shmt_sum_add(&sum, square);
    }
    return sum;
}

static bool make_header(const struct shmt_cache *c, const struct shmt_cache_stop *stop, struct shmt_cache_header *out) {
    const struct shmt_sum square = sum_squares(c, stop);
    *out = (struct shmt_cache_header){.version = SHMT_CACHE_VERSION,
                                      .n_examples = c->n_examples,
                                      .n_nonzeros = c->n_nonzeros,
                                      .n_columns = c->n_columns,
                                      .base = c->base,
                                      .min_id = c->min_id,
                                      .max_id = c->max_id,
                                      .square_whole = square.whole,
                                      .square_fraction = square.fraction,
                                      .best_loss = c->best_loss,
                                      .channels = c->shape.channels,
                                      .height = c->shape.height,
                                      .width = c->shape.width,
                                      .origin_bytes = c->origin.bytes,
                                      .origin_modified_s = c->origin.modified_s,
                                      .origin_modified_ns = c->origin.modified_ns,
                                      .origin_sample = c->origin.sample};
    memcpy(out->magic, SHMT_CACHE_MAGIC, sizeof out->magic);
    if (c->column) out->flags |= SHMT_CACHE_BY_FREQUENCY;
    if (c->lacks_ids) out->flags |= SHMT_CACHE_LACKS_IDS;
    if (c->listed) out->flags |= SHMT_CACHE_LISTED_IDS;
    if (c->note) out->flags |= SHMT_CACHE_IS_TABLE;
    if (c->note) out->section[SHMT_CACHE_NOTE].bytes = strlen(c->note);
    return shmt_cache_lay_out(out, c->value != NULL);
}

/* A file that others could write would be copied when it is read (cache.c), so it is not made so, whatever the umask. */
static int keep_for_us(int fd) {
    struct stat s;
    if (fstat(fd, &s) < 0) return -1;
    return S_ISREG(s.st_mode) ? fchmod(fd, s.st_mode & 0755 & ~(mode_t)022) : 0;
}

int shmt_cache_write(const char *path, const struct shmt_cache *cache, const struct shmt_cache_stop *stop,
                     struct shmt_error *e) {
    struct shmt_cache_header header;
    struct shmt_replacement file;
    if (!make_header(cache, stop, &header)) return shmt_fail(e, SHMTRAIN_E_DATA, "the data is too large for one file");
    uint64_t *hash = malloc(header.section[SHMT_CACHE_HASHES].bytes);
    struct pieces pieces = {.piece = malloc(PIECE_BYTES)};
    int rc = hash && pieces.piece ? shmt_replace_open(&file, path, "the cache", e) : shmt_no_memory(e, "to write the cache");
    if (rc == 0) {
        struct shmt_error why = {0};
        pieces.fd = file.fd;
        const int written = keep_for_us(file.fd) < 0 ? -1 : write_contents(&pieces, &header, cache, hash, stop);
        const bool stopped = written < 0 && errno == ECANCELED;
        rc = shmt_replace_close(&file, written, &why);
        if (rc < 0)
            rc = stopped ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while writing the cache")
                         : shmt_fail(e, why.status, "%s", why.text);
    }
    free(pieces.piece);
    free(hash);
    return rc;
}

/* ---- what it was made from ---- */

#define SAMPLE_BYTES (UINT64_C(1) << 16)
#define N_SAMPLES    16 /* evenly over the file */

bool shmt_cache_origin_is(const struct shmt_cache_origin *a, const struct shmt_cache_origin *b) {
    return a->bytes == b->bytes && a->modified_s == b->modified_s && a->modified_ns == b->modified_ns && a->sample == b->sample;
}

static int add_piece(const struct shmt_file *file, uint64_t off, XXH3_state_t *state) {
    unsigned char piece[SAMPLE_BYTES];
    const ssize_t n = pread(file->fd, piece, sizeof piece, (off_t)off);
    if (n < 0) return -1;
    XXH3_64bits_update(state, piece, (size_t)n);
    return 0;
}

static int sample(const struct shmt_file *file, uint64_t *out, struct shmt_error *e) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) return shmt_no_memory(e, "to look at %s", file->name);
    XXH3_64bits_reset(state);
    const uint64_t last = file->bytes > SAMPLE_BYTES ? file->bytes - SAMPLE_BYTES : 0;
    int rc = 0;
    for (uint64_t i = 0; i < N_SAMPLES && rc == 0; i++)
        rc = add_piece(file, (uint64_t)((unsigned __int128)last * i / (N_SAMPLES - 1)), state);
    if (rc < 0) rc = shmt_fail_errno(e, "cannot read %s", file->name);
    *out = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return rc;
}

int shmt_cache_origin_of(const char *path, struct shmt_cache_origin *out, struct shmt_error *e) {
    struct shmt_file file;
    struct stat s;
    struct shmt_cache_origin origin = {0};
    int rc = shmt_file_open(path, &file, e);
    if (rc < 0) return rc;
    if (fstat(file.fd, &s) < 0) rc = shmt_fail_errno(e, "cannot read the status of %s", file.name);
    if (rc == 0) rc = sample(&file, &origin.sample, e);
    shmt_file_close(&file);
    if (rc < 0) return rc;
    origin.bytes = (uint64_t)s.st_size;
    origin.modified_s = s.st_mtim.tv_sec;
    origin.modified_ns = s.st_mtim.tv_nsec;
    *out = origin;
    return 0;
}
