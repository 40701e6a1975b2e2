/* Files in IDX format: see idx_file.h. */
#include "data/idx_file.h"

#include "base/checked.h"
#include "data/lines.h"
#include "data/unpack.h"

#include <string.h>

enum { UBYTE = 8, BYTE = 9, SHORT = 11, INT = 12, FLOAT = 13, DOUBLE = 14 };

const char *shmt_idx_file_state(const struct shmt_idx_file *file) { return file->packed ? " (unpacked)" : ""; }

static uint64_t big_endian(const unsigned char *p, uint32_t bytes) {
    uint64_t x = 0;
    for (uint32_t i = 0; i < bytes; i++) x = x << 8 | p[i];
    return x;
}

static uint32_t bytes_of_type(uint32_t type) {
    switch (type) {
        case UBYTE:
        case BYTE:
            return 1;
        case SHORT:
            return 2;
        case INT:
        case FLOAT:
            return 4;
        case DOUBLE:
            return 8;
        default:
            return 0;
    }
}

/* ---- the header ---- */

static int refuse_end(const struct shmt_idx_file *file, uint64_t have, uint64_t need, struct shmt_error *e) {
    const char *state = shmt_idx_file_state(file);
    if (have < need)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s ends after byte %llu, but its header says %llu bytes: get it again",
                         file->file.name, state, (unsigned long long)have, (unsigned long long)need);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s has more than the %llu bytes that its header says: get it again",
                     file->file.name, state, (unsigned long long)need);
}

/* The sizes, from the dimensions. */
static int measure(struct shmt_idx_file *file, struct shmt_error *e) {
    const char *name = file->file.name, *state = shmt_idx_file_state(file);
    uint64_t need;
    file->n_each = 1;
    for (uint32_t d = 0; d < file->n_dims; d++) {
        if (file->dim[d] == 0)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte %u: dimension %u of %u is 0, so there is no data", name, state,
                             5 + 4 * d, d + 1, file->n_dims);
        if (d > 0 && (!shmt_mul_u64(file->n_each, file->dim[d], &file->n_each) || file->n_each >= UINT32_MAX))
            return shmt_fail(e, SHMTRAIN_E_DATA,
                             "%s%s, byte %u: its examples have too many values; at most 4294967294 features are possible", name,
                             state, 5 + 4 * d);
    }
    if (!shmt_mul_u64(file->dim[0], file->n_each, &file->bytes) ||
        !shmt_mul_u64(file->bytes, file->element_bytes, &file->bytes) || !shmt_add_u64(file->bytes, file->header_bytes, &need))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte 5: %u examples of %llu values do not fit into any memory", name, state,
                         file->dim[0], (unsigned long long)file->n_each);
    if (file->packed || file->file.bytes == need) return 0;
    return refuse_end(file, file->file.bytes, need, e);
}

/* What follows the first four bytes. */
static int read_header(struct shmt_idx_file *file, const unsigned char magic[4], struct shmt_unpack *stream,
                       struct shmt_error *e) {
    unsigned char dims[4 * SHMT_IDX_MAX_DIMS];
    const char *name = file->file.name, *state = shmt_idx_file_state(file);
    file->type = magic[2];
    file->n_dims = magic[3];
    file->element_bytes = bytes_of_type(file->type);
    file->header_bytes = 4 + 4 * file->n_dims;
    if (file->element_bytes == 0)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s%s, byte 3: expected the type of an IDX file (8, 9, 11, 12, 13 or 14), found %u", name, state,
                         file->type);
    if (file->n_dims == 0 || file->n_dims > SHMT_IDX_MAX_DIMS)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s%s, byte 4: expected the number of dimensions of an IDX file (1 to %d), found %u", name, state,
                         SHMT_IDX_MAX_DIMS, file->n_dims);
    const int64_t n = shmt_unpack_read(stream, dims, 4 * (uint64_t)file->n_dims, e);
    if (n < 0) return (int)n;
    if (n < 4 * (int64_t)file->n_dims) return refuse_end(file, 4 + (uint64_t)n, file->header_bytes, e);
    for (uint32_t d = 0; d < file->n_dims; d++) file->dim[d] = (uint32_t)big_endian(dims + 4 * (size_t)d, 4);
    return measure(file, e);
}

/* No text begins with two zero bytes, so a file that does was meant to be an IDX file. */
static bool is_magic(const unsigned char magic[4], int64_t n) { return n == 4 && magic[0] == 0 && magic[1] == 0; }

int shmt_idx_file_open(const char *path, struct shmt_idx_file *out, struct shmt_error *e) {
    struct shmt_unpack *stream;
    unsigned char beginning[8], magic[4];
    memset(out, 0, sizeof *out);
    if (shmt_file_open(path, &out->file, NULL) != 0) return 0;
    const int64_t n = shmt_lines_read(out->file.fd, (char *)beginning, sizeof beginning, 0);
    int found = 0;
    out->packed = n > 0 && shmt_file_unpacker(beginning, (uint64_t)n) != NULL;
    if (n > 0 && (out->packed || beginning[0] == 0) && shmt_unpack_open(&out->file, &stream, NULL) == 0) {
        if (is_magic(magic, shmt_unpack_read(stream, magic, sizeof magic, NULL))) {
            const int status = read_header(out, magic, stream, e);
            found = status == 0 ? 1 : status;
        }
        shmt_unpack_close(stream);
    }
    if (found <= 0) shmt_idx_file_close(out);
    return found;
}

void shmt_idx_file_close(struct shmt_idx_file *file) { shmt_file_close(&file->file); }

/* ---- the elements ---- */

static int unpack_from(const struct shmt_idx_file *file, struct shmt_unpack *stream, unsigned char *into,
                       struct shmt_error *e) {
    struct shmt_idx_file now = *file;
    unsigned char magic[4], more;
    int64_t n = shmt_unpack_read(stream, magic, sizeof magic, e);
    if (n < 0) return (int)n;
    const int status = is_magic(magic, n) ? read_header(&now, magic, stream, NULL) : SHMTRAIN_E_DATA;
    if (status != 0 || now.type != file->type || now.n_dims != file->n_dims || memcmp(now.dim, file->dim, sizeof now.dim) != 0)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", file->file.name);
    n = shmt_unpack_read(stream, into, file->bytes, e);
    if (n < 0) return (int)n;
    const uint64_t need = file->header_bytes + file->bytes;
    if ((uint64_t)n < file->bytes) return refuse_end(file, file->header_bytes + (uint64_t)n, need, e);
    n = shmt_unpack_read(stream, &more, 1, e);
    if (n < 0) return (int)n;
    return n > 0 ? refuse_end(file, need + 1, need, e) : shmt_unpack_finish(stream, e);
}

int shmt_idx_file_unpack(const struct shmt_idx_file *file, unsigned char *into, struct shmt_error *e) {
    struct shmt_unpack *stream;
    int status = shmt_unpack_open(&file->file, &stream, e);
    if (status != 0) return status;
    status = unpack_from(file, stream, into, e);
    shmt_unpack_close(stream);
    return status;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

void shmt_idx_file_example(const struct shmt_idx_file *file, const unsigned char *elements, uint64_t example, bool unit,
                           float *out) {
    const uint64_t n = file->n_each;
    const uint32_t bytes = file->element_bytes;
    const unsigned char *p = elements + example * n * bytes;
    switch (file->type) {
        case UBYTE:
            for (uint64_t i = 0; i < n; i++) out[i] = unit ? (float)p[i] / 255 : (float)p[i];
            return;
        case BYTE:
            for (uint64_t i = 0; i < n; i++) out[i] = (float)(int8_t)p[i];
            return;
        case SHORT:
            for (uint64_t i = 0; i < n; i++) out[i] = (float)(int16_t)big_endian(p + i * bytes, bytes);
            return;
        case INT:
            for (uint64_t i = 0; i < n; i++) out[i] = (float)(int32_t)big_endian(p + i * bytes, bytes);
            return;
        case FLOAT:
            for (uint64_t i = 0; i < n; i++) out[i] = float_of((uint32_t)big_endian(p + i * bytes, bytes));
            return;
        default: /* DOUBLE: there is no other */
            for (uint64_t i = 0; i < n; i++) out[i] = double_of(big_endian(p + i * bytes, bytes));
    }
}
