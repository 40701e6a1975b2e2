/* Headers of IDX files: see array_file.h. */
#include "files/array_file_priv.h"

#include <stddef.h>

enum { UBYTE = 8, BYTE = 9, SHORT = 11, INT = 12, FLOAT = 13, DOUBLE = 14 };

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
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

static uint32_t kind_of_type(uint32_t type) {
    return type == UBYTE ? SHMT_ELEMENT_UNSIGNED : type >= FLOAT ? SHMT_ELEMENT_FLOAT : SHMT_ELEMENT_SIGNED;
}

int shmt_idx_header_read(struct shmt_array_file *file, const unsigned char *magic, struct shmt_unpack *stream,
                         struct shmt_error *e) {
    unsigned char dims[4 * SHMT_ARRAY_MAX_DIMS];
    const char *name = file->file.name, *state = file->state;
    const uint32_t type = magic[2];
    file->format = SHMT_ARRAY_IDX;
    file->n_dims = magic[3];
    file->elements = (struct shmt_elements){.kind = kind_of_type(type), .bytes = bytes_of_type(type), .big_endian = true};
    file->header_bytes = 4 + 4 * (uint64_t)file->n_dims;
    if (file->elements.bytes == 0)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s%s, byte 3: expected the type of an IDX file (8, 9, 11, 12, 13 or 14), found %u", name, state,
                         type);
    if (file->n_dims == 0 || file->n_dims > SHMT_ARRAY_MAX_DIMS)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s%s, byte 4: expected the number of dimensions of an IDX file (1 to %d), found %u", name, state,
                         SHMT_ARRAY_MAX_DIMS, file->n_dims);
    const int64_t n = shmt_unpack_read(stream, dims, 4 * (uint64_t)file->n_dims, e);
    if (n < 0) return (int)n;
    if (n < 4 * (int64_t)file->n_dims) return shmt_array_refuse_end(file, 4 + (uint64_t)n, file->header_bytes, e);
    for (uint32_t d = 0; d < file->n_dims; d++) file->dim[d] = big_endian(dims + 4 * (size_t)d);
    return 0;
}
