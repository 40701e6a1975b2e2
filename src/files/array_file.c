/* Files of one array: see array_file.h. */
#include "files/array_file_priv.h"

#include "base/checked.h"
#include "base/io.h"

#include <stdio.h>
#include <string.h>

/* ---- sizes ---- */

int shmt_array_refuse_end(const struct shmt_array_file *file, uint64_t have, uint64_t need, struct shmt_error *e) {
    if (have < need)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s ends after byte %llu, but its header says %llu bytes: get it again",
                         file->file.name, file->state, (unsigned long long)have, (unsigned long long)need);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s has more than the %llu bytes that its header says: get it again",
                     file->file.name, file->state, (unsigned long long)need);
}

/* Where its header says dimension d; NumPy's is text, and where it begins. */
static uint64_t byte_of_dim(const struct shmt_array_file *file, uint32_t d) {
    return file->format == SHMT_ARRAY_IDX ? 5 + 4 * (uint64_t)d : 11;
}

/* Elements of an example, from the dimensions. */
static int measure_example(struct shmt_array_file *file, uint64_t *n_out, struct shmt_error *e) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < file->n_dims; d++) {
        if (file->dim[d] == 0)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte %llu: dimension %u of %u is 0, so there is no data",
                             file->file.name, file->state, (unsigned long long)byte_of_dim(file, d), d + 1, file->n_dims);
        if (d > 0 && (!shmt_mul_u64(n, file->dim[d], &n) || n >= UINT32_MAX))
            return shmt_fail(e, SHMTRAIN_E_DATA,
                             "%s%s, byte %llu: its examples have too many values; at most 4294967294 features are possible",
                             file->file.name, file->state, (unsigned long long)byte_of_dim(file, d));
    }
    *n_out = n;
    return 0;
}

static int measure(struct shmt_array_file *file, struct shmt_error *e) {
    struct shmt_elements *s = &file->elements;
    uint64_t need;
    const int rc = measure_example(file, &s->n_each, e);
    if (rc < 0) return rc;
    s->stride = s->n_each * s->bytes;
    if (!shmt_mul_u64(file->dim[0], s->stride, &file->bytes) || !shmt_add_u64(file->bytes, file->header_bytes, &need))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte %llu: %llu examples of %llu values do not fit into any memory",
                         file->file.name, file->state, (unsigned long long)byte_of_dim(file, 0),
                         (unsigned long long)file->dim[0], (unsigned long long)s->n_each);
    s->shape = shmt_example_shape_of(file->dim, file->n_dims, &s->channels_last);
    if (file->packed || file->file.bytes == need) return 0;
    return shmt_array_refuse_end(file, file->file.bytes, need, e);
}

/* ---- opening ---- */

static const unsigned char NPY_MAGIC[] = {0x93, 'N', 'U', 'M'};

/* No text begins with two zero bytes, so a file that does was meant to be an IDX file. */
static bool is_idx(const unsigned char *magic) { return magic[0] == 0 && magic[1] == 0; }
static bool is_npy(const unsigned char *magic) { return memcmp(magic, NPY_MAGIC, sizeof NPY_MAGIC) == 0; }

/* 1: it is an array, whose header was read. */
static int read_beginning(struct shmt_array_file *file, struct shmt_unpack *stream, struct shmt_error *e) {
    unsigned char magic[SHMT_ARRAY_MAGIC];
    if (shmt_unpack_read(stream, magic, sizeof magic, NULL) != SHMT_ARRAY_MAGIC) return 0;
    if (!is_idx(magic) && !is_npy(magic)) return 0;
    int rc = is_idx(magic) ? shmt_idx_header_read(file, magic, stream, e) : shmt_npy_header_read(file, stream, e);
    if (rc == 0) rc = measure(file, e);
    return rc < 0 ? rc : 1;
}

int shmt_array_file_open(const char *path, struct shmt_array_file *out, struct shmt_error *e) {
    struct shmt_unpack *stream;
    unsigned char beginning[8];
    memset(out, 0, sizeof *out);
    if (shmt_file_open(path, &out->file, NULL) != 0) return 0;
    const int64_t n = shmt_io_read(out->file.fd, (char *)beginning, sizeof beginning, 0);
    int found = 0;
    out->packed = n > 0 && shmt_file_unpacker(beginning, (uint64_t)n) != NULL;
    if (out->packed) snprintf(out->state, sizeof out->state, " (unpacked)");
    if (n > 0 && (out->packed || beginning[0] == 0 || beginning[0] == NPY_MAGIC[0]) &&
        shmt_unpack_open(&out->file, &stream, NULL) == 0) {
        found = read_beginning(out, stream, e);
        shmt_unpack_close(stream);
    }
    if (found <= 0) shmt_array_file_close(out);
    return found;
}

void shmt_array_file_close(struct shmt_array_file *file) { shmt_file_close(&file->file); }

/* ---- members of archives ---- */

bool shmt_array_file_is_archive(const char *path) {
    static const unsigned char ZIP[] = {'P', 'K', 3, 4};
    unsigned char magic[sizeof ZIP];
    struct shmt_file file;
    if (shmt_file_open(path, &file, NULL) != 0) return false;
    const bool is =
        shmt_io_read(file.fd, (char *)magic, sizeof magic, 0) == (int64_t)sizeof magic && memcmp(magic, ZIP, sizeof ZIP) == 0;
    shmt_file_close(&file);
    return is;
}

static int open_stream(const struct shmt_array_file *file, struct shmt_unpack **out, struct shmt_error *e) {
    char member[SHMT_ARRAY_MEMBER + 4];
    if (!file->member[0]) return shmt_unpack_open(&file->file, out, e);
    snprintf(member, sizeof member, "%s.npy", file->member);
    return shmt_unpack_open_member(&file->file, member, out, e);
}

int shmt_array_file_open_member(const char *path, const char *member, struct shmt_array_file *out, struct shmt_error *e) {
    struct shmt_unpack *stream = NULL;
    memset(out, 0, sizeof *out);
    if (strlen(member) >= sizeof out->member) return 0;
    int found = shmt_file_open(path, &out->file, e);
    if (found < 0) return found;
    snprintf(out->member, sizeof out->member, "%s", member);
    snprintf(out->state, sizeof out->state, " (%s)", member);
    out->packed = true;
    found = open_stream(out, &stream, e);
    if (found == 0 && stream) {
        found = read_beginning(out, stream, e);
        if (found == 0)
            found = shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte 1: a NumPy array begins with \\x93NUMPY, and this does not",
                              out->file.name, out->state);
    }
    shmt_unpack_close(stream);
    if (found <= 0) shmt_array_file_close(out);
    return found;
}

/* ---- the elements ---- */

/* Whether it begins as it did when it was opened. */
static bool is_as_it_was(const struct shmt_array_file *file, struct shmt_unpack *stream) {
    struct shmt_array_file now = *file;
    return read_beginning(&now, stream, NULL) == 1 && now.elements.kind == file->elements.kind &&
           now.elements.bytes == file->elements.bytes && now.header_bytes == file->header_bytes && now.n_dims == file->n_dims &&
           memcmp(now.dim, file->dim, sizeof now.dim) == 0;
}

static int unpack_from(const struct shmt_array_file *file, struct shmt_unpack *stream, unsigned char *into,
                       struct shmt_error *e) {
    unsigned char more;
    if (!is_as_it_was(file, stream))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", file->file.name);
    int64_t n = shmt_unpack_read(stream, into, file->bytes, e);
    if (n < 0) return (int)n;
    const uint64_t need = file->header_bytes + file->bytes;
    if ((uint64_t)n < file->bytes) return shmt_array_refuse_end(file, file->header_bytes + (uint64_t)n, need, e);
    n = shmt_unpack_read(stream, &more, 1, e);
    if (n < 0) return (int)n;
    return n > 0 ? shmt_array_refuse_end(file, need + 1, need, e) : shmt_unpack_finish(stream, e);
}

int shmt_array_file_unpack(const struct shmt_array_file *file, unsigned char *into, struct shmt_error *e) {
    struct shmt_unpack *stream = NULL;
    int status = open_stream(file, &stream, e);
    if (status != 0) return status;
    if (!stream) return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", file->file.name);
    status = unpack_from(file, stream, into, e);
    shmt_unpack_close(stream);
    return status;
}
