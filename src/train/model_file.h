/* Model files: safetensors, which any language reads in a few lines.
 *
 *     8 bytes: length of the header, little-endian | header: JSON | data
 *
 * The header names each tensor's dtype, shape and data_offsets (from the end of the header), and has "__metadata__", strings
 * only. Format: https://github.com/huggingface/safetensors. Padded with spaces so that the data begins at a multiple of 8. */
#ifndef SHMT_TRAIN_MODEL_FILE_H
#define SHMT_TRAIN_MODEL_FILE_H

#include <stdint.h>

#include "base/error.h"

struct shmt_tensor {
    const char *name;
    uint64_t rows, width; /* f32, or u64 */
    const float *value;   /* (rows, width) */
    const uint64_t *id;   /* (rows, width) where it is not NULL, and value is */
};

#define SHMT_MODEL_IDS "feature_id" /* the tensor of u64 in which models keep the ids of their features */

struct shmt_note {
    const char *key, *value;
};

/* Writes the file atomically: into a temporary one beside it, fsync, rename, fsync of the folder. On an error `path` is as it
 * was and the temporary file is gone. Errors: _SYSTEM (no folder, no permission, disk full), _MEMORY. */
int shmt_model_file_write(const char *path, const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note,
                          uint32_t n_notes, struct shmt_error *e);

#endif
