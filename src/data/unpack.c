/* Unpacking files: see unpack.h. */
#include "data/unpack.h"

#include "base/checked.h"
#include "data/lines.h"

#include <archive.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES (1 << 16)

struct shmt_unpack {
    const struct shmt_file *file;
    struct archive *archive;
    uint64_t at;      /* how far the file was read */
    uint64_t out;     /* how many bytes came out */
    bool is_gzip;     /* then the checksum is kept */
    bool cannot_read; /* the file, not its contents */
    uint32_t crc;
    uint32_t table[256]; /* of the checksum */
    unsigned char buffer[READ_BYTES];
};

/* ---- the checksum of gzip (RFC 1952, section 8) ---- */

static void make_table(uint32_t table[256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (uint32_t k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
}

static void add_to_checksum(struct shmt_unpack *stream, const unsigned char *bytes, uint64_t n) {
    uint32_t c = ~stream->crc;
    for (uint64_t i = 0; i < n; i++) c = stream->table[(c ^ bytes[i]) & 0xff] ^ (c >> 8);
    stream->crc = ~c;
}

static uint32_t little_endian(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- the stream ---- */

static la_ssize_t read_more(struct archive *archive, void *arg, const void **out) {
    struct shmt_unpack *stream = arg;
    const int64_t n = shmt_lines_read(stream->file->fd, (char *)stream->buffer, READ_BYTES, stream->at);
    if (n < 0) {
        stream->cannot_read = true;
        archive_set_error(archive, errno, "%s", strerror(errno));
        return -1;
    }
    stream->at += (uint64_t)n;
    *out = stream->buffer;
    return n;
}

static int refuse(const struct shmt_unpack *stream, struct shmt_error *e) {
    const char *why = archive_error_string(stream->archive), *name = stream->file->name;
    if (archive_errno(stream->archive) == ENOMEM) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to unpack %s", name);
    if (stream->cannot_read) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot read %s: %s", name, why);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: unpacking it failed behind byte %llu (%.100s); get it again", name,
                     (unsigned long long)stream->out, why ? why : "no reason given");
}

/* Filters that this libarchive would run a program for are reported as a warning, and then not asked for by such files. */
static void support_filters(struct archive *archive) {
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_bzip2(archive);
    (void)archive_read_support_filter_xz(archive);
    (void)archive_read_support_filter_zstd(archive);
    (void)archive_read_support_filter_lz4(archive);
    (void)archive_read_support_filter_compress(archive);
    (void)archive_read_support_format_raw(archive);
}

int shmt_unpack_open(const struct shmt_file *file, struct shmt_unpack **out, struct shmt_error *e) {
    struct archive_entry *entry;
    unsigned char magic[2];
    struct shmt_unpack *stream = calloc(1, sizeof *stream);
    struct archive *archive = archive_read_new();
    if (!stream || !archive) {
        free(stream);
        if (archive) archive_read_free(archive);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to unpack %s", file->name);
    }
    stream->file = file;
    stream->archive = archive;
    stream->is_gzip = shmt_lines_read(file->fd, (char *)magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    make_table(stream->table);
    support_filters(archive);
    if (archive_read_open(archive, stream, NULL, read_more, NULL) != ARCHIVE_OK ||
        archive_read_next_header(archive, &entry) != ARCHIVE_OK) {
        const int status = refuse(stream, e);
        shmt_unpack_close(stream);
        return status;
    }
    *out = stream;
    return 0;
}

void shmt_unpack_close(struct shmt_unpack *stream) {
    if (!stream) return;
    archive_read_free(stream->archive);
    free(stream);
}

int64_t shmt_unpack_read(struct shmt_unpack *stream, void *into, uint64_t bytes, struct shmt_error *e) {
    uint64_t have = 0;
    while (have < bytes) {
        const uint64_t want = shmt_min_u64(bytes - have, (uint64_t)1 << 24);
        const la_ssize_t n = archive_read_data(stream->archive, (unsigned char *)into + have, want);
        if (n < 0) return refuse(stream, e);
        if (n == 0) break;
        if (stream->is_gzip) add_to_checksum(stream, (unsigned char *)into + have, (uint64_t)n);
        have += (uint64_t)n;
        stream->out += (uint64_t)n;
    }
    return (int64_t)have;
}

/* The last eight bytes of gzip data are the checksum and the length (modulo 2^32) of its last member. They tell something when
 * there is one member only, which is when the length is that of all. */
int shmt_unpack_finish(struct shmt_unpack *stream, struct shmt_error *e) {
    unsigned char trailer[8];
    if (!stream->is_gzip || stream->file->bytes < sizeof trailer) return 0;
    const int64_t n = shmt_lines_read(stream->file->fd, (char *)trailer, sizeof trailer, stream->file->bytes - sizeof trailer);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", stream->file->name);
    if (n < (int64_t)sizeof trailer || little_endian(trailer + 4) != (uint32_t)stream->out) return 0;
    if (little_endian(trailer) == stream->crc) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: its checksum is not that of its contents; get it again",
                     stream->file->name);
}
