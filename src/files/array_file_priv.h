/* What the files of array_file.h share. */
#pragma once

#include "files/array_file.h"
#include "files/unpack.h"

enum { SHMT_ARRAY_MAGIC = 4 }; /* bytes that tell the format */

/* What follows the first SHMT_ARRAY_MAGIC bytes, up to the elements: format, type, dimensions and header_bytes. _DATA. */
int shmt_idx_header_read(struct shmt_array_file *file, const unsigned char *magic, struct shmt_unpack *stream,
                         struct shmt_error *e);
int shmt_npy_header_read(struct shmt_array_file *file, struct shmt_unpack *stream, struct shmt_error *e);

/* The file ended, or had more, at `have` bytes of `need`: _DATA. */
int shmt_array_refuse_end(const struct shmt_array_file *file, uint64_t have, uint64_t need, struct shmt_error *e);
