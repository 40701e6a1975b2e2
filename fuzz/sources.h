/* For targets of sources (data/source.h): reads one as a run does, and checks what a run relies on. */
#pragma once

#include "data/source.h"

/* How its columns are chosen. */
enum fuzz_columns {
    FUZZ_COLUMNS_FOUND, /* the range of the ids that there are, or a list of them where no table has so many rows */
    FUZZ_COLUMNS_LIST,
    FUZZ_COLUMNS_HASHED, /* to 2^number columns */
    FUZZ_COLUMNS_RANGE   /* `number` of them, from 1 on */
};

/* Counts all of it in n_parts, with and without buffers, then fills it in, in both layouts where the dense one is small. All of
 * that must agree, and columns be those that were asked for. Closes the source. `any_order`: columns within an example
 * need not ascend, nor be distinct. */
void fuzz_read_source(struct shmt_source *source, uint32_t n_parts, enum fuzz_columns how, uint32_t number, bool any_order);

/* What is the same however text lies in files. */
struct fuzz_summary {
    uint64_t n_examples, n_nonzeros, min_id, max_id;
    double mean_square;
    int status; /* 0, or that of a refusal: all else is 0 then */
    int reserved;
};

/* Opens a source by name, and reads it so, with 1 part. */
void fuzz_read_file(const char *name, struct fuzz_summary *out);
