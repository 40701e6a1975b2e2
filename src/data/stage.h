/* Rows as they are read, kept until it is known how much memory all rows of a source take, and what their columns are. Then they
 * are copied to where they stay, so that text is parsed once.
 *
 * Each reading thread has a stage of its own, to which the parts that it counts append their rows, one part after the other;
 * struct shmt_part says where a part's rows stand in which stage. Ids are kept as they are written: in 32 bits as long as all
 * fit. Values are not kept as long as all are 1. A stage that would become larger than it may, or that the system gives no
 * memory, gives up: then the source has to be read again.
 *
 * Called by sources (append), and by whoever runs count and fill. One thread at a time appends; any number may read then. */
#ifndef SHMT_DATA_STAGE_H
#define SHMT_DATA_STAGE_H

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
struct shmt_stage {
    uint32_t number;     /* of the stage, for parts */
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
void shmt_stage_add(struct shmt_stage *stage, float label, const uint64_t *id, const float *value, uint64_t n);

/* Gives its memory back, but for its set of ids. No row is in it afterwards. */
void shmt_stage_free(struct shmt_stage *stage);

/* Adds the ids of part's rows to a set, which may have failed then. */
void shmt_stage_gather(const struct shmt_stage *stage, const struct shmt_part *part, struct shmt_ids *into);

/* What count would find in a part that is staged for `columns`. Labels, ids and examples stay as they are. Errors: _MEMORY. */
int shmt_stage_recount(const struct shmt_stage *stage, const struct shmt_columns *columns, struct shmt_part *part,
                       struct shmt_error *e);

/* Writes the rows of part `part` of n_parts, as shmt_source_fill does, from the stages that have them. Errors: _MEMORY. */
int shmt_stage_fill(const struct shmt_stage *stages, const struct shmt_part *parts, uint32_t part, uint32_t n_parts,
                    const struct shmt_arrays *into, struct shmt_error *e);

#endif
