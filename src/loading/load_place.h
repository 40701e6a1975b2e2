/* Where loaded data shall lie: the examples that the workers of a NUMA node read first, on that node. Pure planning, for the
 * loader and for whoever shows a plan. */
#pragma once

#include "loading/load.h"
#include "ps/spec.h"

/* Who reads the data. */
struct shmt_readers {
    const struct shmt_placement *placement;
    const struct shmt_spec *spec;  /* of the run that trains on it; NULL: everybody reads all of it */
    const uint32_t *train_example; /* (spec->n_examples) ascending: which of the examples it trains on; NULL: all */
};

/* Examples from .. to - 1 of the source. */
struct shmt_stretch {
    uint64_t from, to;
    int32_t node; /* index into placement->node; -1: over all nodes in turn; -2: wherever the system puts them */
};

/* The data in stretches, without gaps: (n) into *out, to be freed. Errors: _MEMORY. */
int shmt_load_stretches(const struct shmt_load *load, const struct shmt_readers *readers, struct shmt_stretch **out,
                        uint32_t *n_out, struct shmt_error *e);

/* The bytes of the segment that a stretch has; of sparse data by estimate, before it is filled. */
uint64_t shmt_load_stretch_bytes(const struct shmt_load *load, const struct shmt_stretch *stretch);

/* The same as ranges of the segment: (n) into *out, to be freed. */
int shmt_load_ranges(const struct shmt_load *load, const struct shmt_readers *readers, struct shmt_memory_range **out,
                     uint32_t *n_out, struct shmt_error *e);
