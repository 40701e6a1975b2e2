/* Model files: safetensors, which any language reads in a few lines.
 *
 *     8 bytes: length of the header, little-endian | header: JSON | data
 *
 * The header names each tensor's dtype, shape and data_offsets (from the end of the header), and has "__metadata__", strings
 * only. Format: https://github.com/huggingface/safetensors. Padded with spaces so that the data begins at a multiple of 8. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum shmt_dtype { SHMT_DTYPE_F32, SHMT_DTYPE_F64, SHMT_DTYPE_U32, SHMT_DTYPE_U64, SHMT_N_DTYPES };

const char *shmt_dtype_name(enum shmt_dtype dtype); /* "F32", as the format has it */
uint64_t shmt_dtype_bytes(enum shmt_dtype dtype);

struct shmt_tensor {
    const char *name;
    uint64_t rows, width;
    const void *data; /* (rows, width) */
    enum shmt_dtype dtype;
    const uint32_t *place; /* (rows) row r of the file is row place[r] of data; NULL: row r */
};

#define SHMT_MODEL_IDS        "feature_id"      /* the tensor of u64 in which models keep the ids of their features */
#define SHMT_MODEL_FORMAT     "shmtrain.format" /* the note that says that there must be a seal */
#define SHMT_MODEL_FORMAT_NOW "2"
#define SHMT_MODEL_SEAL       "shmtrain.xxh64" /* the note that is the seal */
#define SHMT_SEAL_CHARS       16               /* of its value: hexadecimal digits */

/* Bytes of the largest header that is read, and so of the largest to write. Ours take some 20 KiB, and up to 60 bytes for each
 * column of a table, and its name; JSON takes many times as much memory once it is parsed. */
#define SHMT_MODEL_MOST_HEADER ((uint64_t)64 << 20)

struct shmt_note {
    const char *key, *value;
};

/* Writes the file atomically: into a temporary one beside it, fsync, rename, fsync of the folder. On an error `path` is as it
 * was and the temporary file is gone. Every file is sealed, by two notes more: SHMT_MODEL_FORMAT, and XXH64 (seed 0) of all from
 * byte 8 on, in which this note's own digits count as zeros. Errors: _SYSTEM (no folder, no permission, disk full), _MEMORY. */
int shmt_model_file_write(const char *path, const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note,
                          uint32_t n_notes, struct shmt_error *e);

/* The same for a file that is `what` in sentences ("the checkpoint") and has a name of our own: whatever stands there but a
 * folder is replaced (shmt_replace_open_own). */
int shmt_model_file_write_own(const char *path, const char *what, const struct shmt_tensor *tensor, uint32_t n_tensors,
                              const struct shmt_note *note, uint32_t n_notes, struct shmt_error *e);
