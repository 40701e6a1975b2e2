/* Unpacking files: see unpack.h. */
#include "files/unpack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "files/archive.h"
#include "base/checked.h"
#include "base/io.h"

#define READ_BYTES    (1 << 16)
#define TRAILER_BYTES 8 /* of gzip: checksum and length */

struct shmt_unpack {
    struct shmt_unpack_from from;
    const struct shmt_archive_calls *call;
    struct archive *archive;
    const struct shmt_file *file; /* that the bytes come from, when nobody else gives them */
    uint64_t at;                  /* how many packed bytes have come in */
    uint64_t out;                 /* how many bytes came out */
    bool is_gzip;                 /* then the checksum is kept */
    bool at_end;                  /* all has come in */
    bool nothing;                 /* was packed */
    struct shmt_error failed;     /* what `more` has said */
    uint32_t crc;
    uint32_t table[8][256];            /* of the checksum, for eight bytes at a time */
    unsigned char tail[TRAILER_BYTES]; /* the last that have come in */
    unsigned char buffer[READ_BYTES];
};

/* ---- the checksum of gzip (RFC 1952, section 8) ---- */

static void make_table(uint32_t table[8][256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (uint32_t k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++) table[k][i] = table[0][table[k - 1][i] & 0xff] ^ (table[k - 1][i] >> 8);
}

static uint32_t little_endian(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* What a byte does to the checksum when k more follow it is table[k]; so the eight of them do not wait for one another. */
static void add_to_checksum(struct shmt_unpack *stream, const unsigned char *bytes, uint64_t n) {
    const uint32_t(*t)[256] = (const uint32_t(*)[256])stream->table;
    uint32_t c = ~stream->crc;
    for (; n >= 8; n -= 8, bytes += 8) {
        const uint32_t a = c ^ little_endian(bytes), b = little_endian(bytes + 4);
        c = t[7][a & 0xff] ^ t[6][a >> 8 & 0xff] ^ t[5][a >> 16 & 0xff] ^ t[4][a >> 24] ^ t[3][b & 0xff] ^ t[2][b >> 8 & 0xff] ^
            t[1][b >> 16 & 0xff] ^ t[0][b >> 24];
    }
    for (; n > 0; n--) c = t[0][(c ^ *bytes++) & 0xff] ^ (c >> 8);
    stream->crc = ~c;
}

/* ---- the stream ---- */

static int64_t more_of_file(void *arg, void *into, uint64_t bytes, struct shmt_error *e) {
    struct shmt_unpack *stream = arg;
    const int64_t n = shmt_io_read(stream->file->fd, into, bytes, stream->at);
    return n < 0 ? shmt_fail_errno(e, "cannot read %s", stream->from.name) : n;
}

static void keep_tail(struct shmt_unpack *stream, uint64_t n) {
    const uint64_t kept = n < TRAILER_BYTES ? TRAILER_BYTES - n : 0;
    memmove(stream->tail, stream->tail + TRAILER_BYTES - kept, kept);
    memcpy(stream->tail + kept, stream->buffer + n - (TRAILER_BYTES - kept), TRAILER_BYTES - kept);
}

/* A full buffer, but at the end: what is told from the first bytes needs more than one of them. */
static la_ssize_t read_more(struct archive *archive, void *arg, const void **out) {
    struct shmt_unpack *stream = arg;
    uint64_t have = 0;
    while (have < READ_BYTES && !stream->at_end) {
        const int64_t n = stream->from.more(stream->from.arg, stream->buffer + have, READ_BYTES - have, &stream->failed);
        if (n < 0) {
            stream->call->set_error(archive, EIO, "%s", stream->failed.text);
            return -1;
        }
        stream->at_end = n == 0;
        stream->at += (uint64_t)n;
        have += (uint64_t)n;
    }
    if (stream->at == have) stream->is_gzip = have > 2 && stream->buffer[0] == 0x1f && stream->buffer[1] == 0x8b;
    if (have > 0) keep_tail(stream, have);
    *out = stream->buffer;
    return (la_ssize_t)have;
}

static int refuse(const struct shmt_unpack *stream, struct shmt_error *e) {
    const char *why = stream->call->error_string(stream->archive), *name = stream->from.name;
    if (stream->failed.status != 0) return shmt_fail(e, stream->failed.status, "%s", stream->failed.text);
    if (stream->call->errno_of(stream->archive) == ENOMEM) return shmt_no_memory(e, "to unpack %s", name);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: unpacking failed after byte %llu (%.100s); get it again", name,
                     (unsigned long long)stream->at, why ? why : "no reason given");
}

/* Filters that this libarchive would run a program for are reported as a warning, and then not asked for by such files. */
static void support_filters(const struct shmt_archive_calls *call, struct archive *archive) {
    (void)call->filter_gzip(archive);
    (void)call->filter_bzip2(archive);
    (void)call->filter_xz(archive);
    (void)call->filter_zstd(archive);
    (void)call->filter_lz4(archive);
    (void)call->filter_compress(archive);
    (void)call->format_raw(archive);
    (void)call->format_empty(archive); /* nothing, packed */
}

/* What has an end and no entry is nothing, unless unpacking its beginning failed. */
static bool begin(struct shmt_unpack *stream) {
    struct archive_entry *entry;
    if (stream->call->read_open(stream->archive, stream, NULL, read_more, NULL) != ARCHIVE_OK) return false;
    const int rc = stream->call->read_next_header(stream->archive, &entry);
    stream->nothing = rc == ARCHIVE_EOF && stream->call->errno_of(stream->archive) == 0 && stream->failed.status == 0;
    return rc == ARCHIVE_OK || stream->nothing;
}

/* To the beginning of the member of this name; at the end of the archive there is none, and the stream has nothing. */
static bool begin_member(struct shmt_unpack *stream, const char *member) {
    struct archive_entry *entry;
    int rc = stream->call->read_open(stream->archive, stream, NULL, read_more, NULL);
    while (rc == ARCHIVE_OK && (rc = stream->call->read_next_header(stream->archive, &entry)) == ARCHIVE_OK) {
        const char *name = stream->call->entry_pathname(entry);
        if (name && strcmp(name, member) == 0) return true;
    }
    stream->nothing = rc == ARCHIVE_EOF && stream->failed.status == 0;
    return stream->nothing;
}

/* `file` NULL: the bytes come from elsewhere. `member` NULL: all of what is packed. */
static int open_stream(const struct shmt_unpack_from *from, const struct shmt_file *file, const char *member,
                       struct shmt_unpack **out, struct shmt_error *e) {
    const struct shmt_archive_calls *call = shmt_archive_load(e);
    if (!call) return SHMTRAIN_E_SYSTEM;
    struct shmt_unpack *stream = calloc(1, sizeof *stream);
    struct archive *archive = call->read_new();
    if (!stream || !archive) {
        free(stream);
        if (archive) (void)call->read_free(archive);
        return shmt_no_memory(e, "to unpack %s", from->name);
    }
    stream->call = call;
    stream->from = *from;
    stream->file = file;
    if (file) stream->from.arg = stream;
    stream->archive = archive;
    make_table(stream->table);
    if (member)
        (void)call->format_zip(archive);
    else
        support_filters(call, archive);
    if (!(member ? begin_member(stream, member) : begin(stream))) {
        const int status = refuse(stream, e);
        shmt_unpack_close(stream);
        return status;
    }
    *out = stream;
    return 0;
}

int shmt_unpack_open_from(const struct shmt_unpack_from *from, struct shmt_unpack **out, struct shmt_error *e) {
    return open_stream(from, NULL, NULL, out, e);
}

int shmt_unpack_open(const struct shmt_file *file, struct shmt_unpack **out, struct shmt_error *e) {
    return open_stream(&(struct shmt_unpack_from){.more = more_of_file, .name = file->name}, file, NULL, out, e);
}

int shmt_unpack_open_member(const struct shmt_file *file, const char *member, struct shmt_unpack **out, struct shmt_error *e) {
    struct shmt_unpack *stream = NULL;
    const struct shmt_unpack_from from = {.more = more_of_file, .name = file->name};
    const int rc = open_stream(&from, file, member, &stream, e);
    if (rc < 0 || !stream) return rc;
    const bool none = stream->nothing;
    if (none) shmt_unpack_close(stream);
    *out = none ? NULL : stream;
    return 0;
}

void shmt_unpack_close(struct shmt_unpack *stream) {
    if (!stream) return;
    (void)stream->call->read_free(stream->archive);
    free(stream);
}

int64_t shmt_unpack_read(struct shmt_unpack *stream, void *into, uint64_t bytes, struct shmt_error *e) {
    uint64_t have = 0;
    while (have < bytes && !stream->nothing) {
        const uint64_t want = shmt_min_u64(bytes - have, (uint64_t)1 << 24);
        const la_ssize_t n = stream->call->read_data(stream->archive, (unsigned char *)into + have, want);
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
    if (!stream->is_gzip || !stream->at_end || stream->at < TRAILER_BYTES) return 0;
    if (little_endian(stream->tail + 4) != (uint32_t)stream->out || little_endian(stream->tail) == stream->crc) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: its checksum does not match its contents; get it again",
                     stream->from.name);
}
