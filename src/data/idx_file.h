/* One file in IDX format (that of MNIST), packed or not:
 *
 *     0 0 TYPE N_DIMS | dim[0] ... dim[N_DIMS - 1], 32 bits each | elements, the last dimension fastest; all big-endian
 *
 * TYPE is 8 (unsigned byte), 9 (signed byte), 11 (16 bits), 12 (32 bits), 13 (float) or 14 (double). The first dimension counts
 * examples. Only for the IDX source. Opening looks at the header; unpacking brings the elements into memory of the caller. No
 * more is unpacked than the header announces, and one byte, so that a small file cannot fill the memory. */
#ifndef SHMT_DATA_IDX_FILE_H
#define SHMT_DATA_IDX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/file.h"

#define SHMT_IDX_MAX_DIMS 8

struct shmt_idx_file {
    struct shmt_file file;
    bool packed;
    uint32_t type, n_dims, dim[SHMT_IDX_MAX_DIMS];
    uint32_t element_bytes, header_bytes;
    uint64_t n_each; /* elements of an example */
    uint64_t bytes;  /* of all elements */
};

/* 1: it is open. 0: this is no IDX file, or none that can be opened: nothing is open, and *e is not set. Below 0: it begins
 * like one, but cannot be read: SHMTRAIN_E_DATA (type, dimensions, sizes; truncated, or too long, as far as that is known
 * without unpacking), _SYSTEM. */
int shmt_idx_file_open(const char *path, struct shmt_idx_file *out, struct shmt_error *e);
void shmt_idx_file_close(struct shmt_idx_file *file);

/* Writes all elements into `into` (bytes). SHMTRAIN_E_DATA: truncated, too long, damaged, or not any more what was opened. */
int shmt_idx_file_unpack(const struct shmt_idx_file *file, unsigned char *into, struct shmt_error *e);

/* The number of an example of the elements: (n_each) into out. `unit`: unsigned bytes become 0 .. 1. */
void shmt_idx_file_example(const struct shmt_idx_file *file, const unsigned char *elements, uint64_t example, bool unit,
                           float *out);

/* " (unpacked)" where positions are not those in the file itself. */
const char *shmt_idx_file_state(const struct shmt_idx_file *file);

#endif
