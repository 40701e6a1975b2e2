/* Writing a cache, and knowing again what it was made from: see cache.h. Section by section, each block's checksum on the way;
 * the header last, when all is known. */
#include "data/cache_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/replace.h"
#include "data/file.h"
#include "data/sum.h"

static int write_all(int fd, const void *from, uint64_t bytes, uint64_t off) {
    const unsigned char *at = from;
    while (bytes > 0) {
        const ssize_t n = pwrite(fd, at, shmt_min_u64(bytes, UINT64_C(1) << 30), (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        off += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

/* Who stops has to wait for no more than this is written, at the speed of a disk. */
#define SYNC_BYTES (UINT64_C(4) << 20)

/* -1 with errno: it is to be given up. */
static int look_at_stop(const struct shmt_cache_stop *stop) {
    if (!stop || !stop->asked(stop->arg)) return 0;
    errno = ECANCELED;
    return -1;
}

/* The piece that ends at `end` goes to the disk, and the one before it is waited for: no more than two are on their way, so
 * that giving up, which has to wait for these, does not wait for the whole file. */
static void sync_as_it_grows(int fd, uint64_t begin, uint64_t end) {
    const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if ((end - begin) % SYNC_BYTES != 0) return;
    (void)sync_file_range(fd, (off_t)(end - SYNC_BYTES), SYNC_BYTES, SYNC_FILE_RANGE_WRITE);
    if (end - begin > SYNC_BYTES) (void)sync_file_range(fd, (off_t)(end - 2 * SYNC_BYTES), SYNC_BYTES, how);
}

/* One section, and its blocks' checksums into hash[]. */
static int write_section(int fd, const struct shmt_cache_header *h, uint32_t part, const void *from, uint64_t *hash,
                         const struct shmt_cache_stop *stop) {
    const struct shmt_cache_section *s = &h->section[part];
    for (uint64_t at = 0; at < s->bytes; at += SHMT_CACHE_BLOCK_BYTES) {
        const uint64_t n = shmt_min_u64(SHMT_CACHE_BLOCK_BYTES, s->bytes - at);
        const unsigned char *block = (const unsigned char *)from + at;
        *hash++ = XXH3_64bits(block, n);
        if (look_at_stop(stop) < 0 || write_all(fd, block, n, s->off + at) < 0) return -1;
        sync_as_it_grows(fd, s->off, s->off + at + n);
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

static int write_contents(int fd, struct shmt_cache_header *h, const struct shmt_cache *c, uint64_t *hash,
                          const struct shmt_cache_stop *stop) {
    const void *const from[SHMT_CACHE_HASHES] = {c->start, c->id, c->value, c->label, c->column, c->listed};
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES; part++) {
        uint64_t *of = hash + shmt_cache_blocks_before(h, part);
        if (write_section(fd, h, part, from[part], of, stop) < 0) return -1;
        h->section[part].hash = XXH3_64bits(of, shmt_cache_blocks(h, part) * sizeof *of);
    }
    const struct shmt_cache_section *hashes = &h->section[SHMT_CACHE_HASHES];
    struct shmt_cache_section *note = &h->section[SHMT_CACHE_NOTE];
    if (write_all(fd, hash, hashes->bytes, hashes->off) < 0 || ftruncate(fd, (off_t)h->file_bytes) < 0) return -1;
    if (write_all(fd, c->note, note->bytes, note->off) < 0) return -1;
    if (c->note) note->hash = XXH3_64bits(c->note, note->bytes);
    h->hash = shmt_cache_header_hash(h);
    return write_all(fd, h, sizeof *h, 0) < 0 ? -1 : sync_pieces(fd, h->file_bytes, stop);
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
    if (!hash) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to write the cache");
    int rc = shmt_replace_open(&file, path, "the cache", e);
    if (rc == 0) {
        struct shmt_error why = {0};
        const int written = keep_for_us(file.fd) < 0 ? -1 : write_contents(file.fd, &header, cache, hash, stop);
        const bool stopped = written < 0 && errno == ECANCELED;
        rc = shmt_replace_close(&file, written, &why);
        if (rc < 0)
            rc = stopped ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while writing the cache")
                         : shmt_fail(e, why.status, "%s", why.text);
    }
    free(hash);
    return rc;
}

/* ---- what it was made from ---- */

#define PIECE_BYTES (UINT64_C(1) << 16)
#define N_PIECES    16 /* evenly over the file */

bool shmt_cache_origin_is(const struct shmt_cache_origin *a, const struct shmt_cache_origin *b) {
    return a->bytes == b->bytes && a->modified_s == b->modified_s && a->modified_ns == b->modified_ns && a->sample == b->sample;
}

static int add_piece(const struct shmt_file *file, uint64_t off, XXH3_state_t *state) {
    unsigned char piece[PIECE_BYTES];
    const ssize_t n = pread(file->fd, piece, sizeof piece, (off_t)off);
    if (n < 0) return -1;
    XXH3_64bits_update(state, piece, (size_t)n);
    return 0;
}

static int sample(const struct shmt_file *file, uint64_t *out, struct shmt_error *e) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to look at %s", file->name);
    XXH3_64bits_reset(state);
    const uint64_t last = file->bytes > PIECE_BYTES ? file->bytes - PIECE_BYTES : 0;
    int rc = 0;
    for (uint64_t i = 0; i < N_PIECES && rc == 0; i++)
        rc = add_piece(file, (uint64_t)((unsigned __int128)last * i / (N_PIECES - 1)), state);
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
    if (fstat(file.fd, &s) < 0) rc = shmt_fail_errno(e, "cannot look at %s", file.name);
    if (rc == 0) rc = sample(&file, &origin.sample, e);
    shmt_file_close(&file);
    if (rc < 0) return rc;
    origin.bytes = (uint64_t)s.st_size;
    origin.modified_s = s.st_mtim.tv_sec;
    origin.modified_ns = s.st_mtim.tv_nsec;
    *out = origin;
    return 0;
}
