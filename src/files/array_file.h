/* One array of numbers in a file, packed or not, whose first dimension counts examples: an IDX file (that of MNIST), a NumPy file
 * (.npy), or a member of a NumPy archive (.npz). Only for the source of such files (data/array_source.c).
 *
 *     IDX    0 0 TYPE N_DIMS | dim[0] ... dim[N_DIMS - 1], 32 bits each, big-endian | elements, big-endian
 *     NumPy  93 "NUMPY" MAJOR MINOR | length of the header, 16 or 32 bits | header: a Python dict | elements
 *
 * Elements lie with the last dimension fastest. Opening looks at the header; unpacking brings the elements into memory of the caller. No
 * more is unpacked than the header announces, and one byte, so that a small file cannot fill the memory. Each format has a file of its
 * own (idx_header.c, npy_header.c), which reads headers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "files/elements.h"
#include "files/file.h"

#define SHMT_ARRAY_MAX_DIMS 8
#define SHMT_ARRAY_MEMBER   64 /* bytes of a member's name, with the final 0 */

enum shmt_array_format { SHMT_ARRAY_IDX, SHMT_ARRAY_NPY };

struct shmt_array_file {
    struct shmt_file file;
    char member[SHMT_ARRAY_MEMBER]; /* of an archive, without its ending; "": the file itself */
    char state[SHMT_ARRAY_MEMBER +
               8];   /* " (unpacked)", " (x_train)", behind the file's name where positions are in that; or "" */
    bool packed;     /* its size is known when it is unpacked */
    uint32_t format; /* enum shmt_array_format */
    uint32_t n_dims;
    uint64_t dim[SHMT_ARRAY_MAX_DIMS], header_bytes;
    struct shmt_elements elements; /* `first` is 0: behind the header */
    uint64_t bytes;                /* of all elements */
};

/* 1: it is open. 0: this is no such file, or none that can be opened: nothing is open, and *e is not set. Below 0: it begins
 * like one, but cannot be read: SHMTRAIN_E_DATA (type, dimensions, sizes; truncated, or too long, as far as that is known
 * without unpacking), _SYSTEM. */
int shmt_array_file_open(const char *path, struct shmt_array_file *out, struct shmt_error *e);
void shmt_array_file_close(struct shmt_array_file *file);

/* Whether a regular file of this name is a zip archive, as .npz files are. */
bool shmt_array_file_is_archive(const char *path);

/* As shmt_array_file_open, of a member of an archive; 0: it has none of this name (without ".npy"). */
int shmt_array_file_open_member(const char *path, const char *member, struct shmt_array_file *out, struct shmt_error *e);

/* Writes all elements into `into` (bytes). SHMTRAIN_E_DATA: truncated, too long, damaged, or not any more what was opened. */
int shmt_array_file_unpack(const struct shmt_array_file *file, unsigned char *into, struct shmt_error *e);
