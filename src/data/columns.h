/* From ids, as they are written in data, to columns of a table.
 *
 * Called by all sources. Three ways: a range of ids, which is what most data has; the ids of a list, for data whose ids are large
 * or far apart (the ids that occur, each with its number); and hashing. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct shmt_ids;

/* Which ids are columns. Others are left out, but min_id and max_id of what is counted know them. */
struct shmt_columns {
    uint32_t base, n_features;  /* id `base` is column 0; the others have a base of 0 */
    uint32_t hash_bits;         /* above 0: n_features is 2^hash_bits, and an id's column is its hash */
    const struct shmt_ids *ids; /* not NULL: n_features is their number, and an id's column is its number */
};

/* Every id that a table can hold, as it is written. */
#define SHMT_ALL_COLUMNS ((struct shmt_columns){0, UINT32_MAX, 0, NULL})

#define SHMT_HASH_BITS_MAX 31

/* Whether a table with a row for each of `n_ids` ids would be mostly empty, for data of so many nonzeros: then those ids that
 * occur are listed. */
bool shmt_ids_are_far_apart(uint64_t n_ids, uint64_t n_nonzeros);

/* The same for dense rows, of which each has room for all columns: whether so little of them is other than 0 that a look at
 * which ids occur is worth its time. */
bool shmt_ids_may_be_few(uint64_t n_ids, uint64_t n_examples, uint64_t n_nonzeros);

/* ... and when it is known how many do: whether these are listed. */
bool shmt_ids_are_few(uint64_t n_listed, uint64_t n_ids);

/* The column of an id; UINT32_MAX: it has none. */
uint32_t shmt_column_of_id(const struct shmt_columns *columns, uint64_t id);

/* Whether columns are a range of ids. */
static inline bool shmt_columns_are_range(const struct shmt_columns *columns) {
    return columns->hash_bits == 0 && !columns->ids;
}

/* The columns of one example, whose n ids ascend: into column_out (n), ascending and distinct. value_inout moves with them, those
 * without a column are left out, and values of ids that are hashed to the same column are added. Returns how many there are. */
uint64_t shmt_columns_place(const struct shmt_columns *columns, const uint64_t *id, uint64_t n, uint32_t *column_out,
                            float *value_inout);
