/* Row buffers: rows as they are read, kept until it is known how much memory all rows of a source take, and what their columns
 * are. Then they are copied to where they stay, so that text is parsed once.
 *
 * Each reading thread has a buffer of its own, to which the parts that it counts append their rows, one part after the other;
 * struct shmt_part says where a part's rows stand in which buffer. Ids are kept as they are written: in 32 bits as long as all
 * fit. Values are not kept as long as all are 1. A buffer that would become larger than it may, or that the system gives no
 * memory, gives up: then the source has to be read again.
 *
 * Called by sources (append), and by whoever runs count and fill. One thread at a time appends; any number may read then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/ids.h"
#include "data/source.h"

/* Memory that grows without being copied. */
struct shmt_growing {
    unsigned char *base;
    uint64_t bytes; /* mapped */
};

/* Start with the number and the limit set, all else 0. */
struct shmt_row_buffer {
    uint32_t number;     /* of the buffer, for parts */
    bool given_up;       /* nothing is kept any more */
    bool has_values;     /* not all are 1 */
    bool wide;           /* ids are u64 */
    bool gathers;        /* every id goes into `ids`, too, also when rows are not kept */
    uint64_t most_bytes; /* that it may take */
    uint64_t n_examples, n_nonzeros;
    struct shmt_growing id, value, label, size; /* u32 or u64 (n_nonzeros); f32; f32 (n_examples); u32: nonzeros of a row */
    struct shmt_ids ids;
};

/* Appends a row; ids and values (n) are copied. Gives up where it cannot. */
void shmt_row_buffer_add(struct shmt_row_buffer *buffer, float label, const uint64_t *id, const float *value, uint64_t n);

/* Gives its memory back, but for its set of ids. No row is in it afterwards. */
void shmt_row_buffer_free(struct shmt_row_buffer *buffer);

/* Adds the ids of part's rows to a set, which may have failed then. */
void shmt_row_buffer_gather(const struct shmt_row_buffer *buffer, const struct shmt_part *part, struct shmt_ids *into);

/* What count would find for `columns` in a part whose rows are in the buffer. Labels, ids and examples stay as they are. Errors:
 * _MEMORY. */
int shmt_row_buffer_recount(const struct shmt_row_buffer *buffer, const struct shmt_columns *columns, struct shmt_part *part,
                            struct shmt_error *e);

/* Writes the rows of part `part` of n_parts, as shmt_source_fill does, from the buffers that have them. Errors: _MEMORY. */
int shmt_row_buffer_fill(const struct shmt_row_buffer *buffers, const struct shmt_part *parts, uint32_t part, uint32_t n_parts,
                         const struct shmt_arrays *into, struct shmt_error *e);
