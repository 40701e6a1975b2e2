/* Where examples come from: a file, or a generator. Read in two passes, both in parallel.
 *
 * The caller cuts the work into parts and runs them in any processes, in any order: first `count` for every part, then, when
 * the sums are known and memory of the exact size is there, `fill` for every part. The result does not depend on how many
 * parts there are, to the last bit of every sum. A source writes into memory of its caller and holds no pointer into it.
 * Opening happens before workers are forked; they use the opened source as it was (read-only), so count and fill are safe in
 * several processes or threads at once. Some sources must be unpacked first, in one process or thread, into memory that all
 * of them see.
 *
 * Data that was counted before the number of columns was known, and has ids beyond it (validation data usually), is counted
 * once more with these columns: what count found under some columns is exactly what fill writes under the same. */
#ifndef SHMT_DATA_SOURCE_H
#define SHMT_DATA_SOURCE_H

#include <shmtrain/data.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "data/labels.h"
#include "data/sum.h"

struct shmt_source;

/* Which ids are columns: id `base` is column 0, and there are n_features of them. Other ids belong to no column of the training
 * data: they are left out, but min_id and max_id know them. */
struct shmt_columns {
    uint32_t base, n_features;
};

/* Every id that a table can hold, as it is written. */
#define SHMT_ALL_COLUMNS ((struct shmt_columns){0, UINT32_MAX})

/* What one part found: plain words, so that it can lie in shared memory. A nonzero is a value other than 0 in a column; a value
 * that is written as 0 counts for min_id and max_id only. */
struct shmt_part {
    uint64_t n_examples, n_nonzeros;
    uint64_t min_id, max_id;     /* as written in the source, left out or not; min_id > max_id: none */
    float label_low, label_high; /* the smallest and the largest; meaningless without an example */
    uint32_t all_ones;           /* every nonzero in this part is 1 */
    uint32_t has_best_loss;      /* a generator that knows the model behind its labels: best_loss is meant */
    struct shmt_sum square;      /* sum of squared nonzeros */
    struct shmt_sum best_loss;   /* summed logistic loss of that model; written by fill */
    struct shmt_labels labels;
    struct shmt_error error;
};

/* The sums over parts 0..n-1 and what follows from them. */
struct shmt_totals {
    uint64_t n_examples, n_nonzeros, min_id, max_id;
    float label_low, label_high;
    bool all_ones;
    double mean_square; /* mean over the examples of the sum of squared nonzeros */
    struct shmt_labels labels;
};

/* Memory to fill, of the exact size, in one of two layouts. Sparse: start (n_examples + 1), id and value (n_nonzeros), label
 * (n_examples); value may be NULL when all nonzeros are 1. Dense: `dense` (n_examples, columns.n_features) and label
 * (n_examples); the others are NULL. `columns` as they were when counting. */
struct shmt_arrays {
    uint64_t *start;
    uint32_t *id;
    float *value, *dense, *label;
    struct shmt_columns columns;
};

enum {
    SHMT_SOURCE_HELD_OUT = 1,
    SHMT_SOURCE_UNLABELLED = 2 /* nobody needs labels: IDX examples are read alone, and their labels are 0 */
};

/* Opens what `name` names: "builtin:sparse[:key=value,...]", "builtin:dense[:...]", "builtin:line[:...]", a path to LIBSVM
 * text in a regular file, or one to an IDX file of examples, packed or not; its labels are found by its name ("images"
 * replaced by "labels"), or named, too: "IMAGES,LABELS". `seed` is used by generators only. `how`, HELD_OUT: a generator
 * gives examples of the same planted model that the training set does not contain (their number: key `valid`); a reader
 * refuses it. *out belongs to the caller, who closes it. Errors: SHMTRAIN_E_USAGE (unknown generator or key, with the keys; a
 * directory, a pipe), _DATA (empty or compressed file; IDX: a bad header, no labels), _SYSTEM (cannot be read), _MEMORY. */
int shmt_source_open(const char *name, uint64_t seed, unsigned how, struct shmt_source **out, struct shmt_error *e);
void shmt_source_close(struct shmt_source *source); /* NULL is fine */

bool shmt_source_is_generator(const struct shmt_source *source);

/* Whether its features have ids. IDX examples have none: their elements are counted, from 0 where nobody says otherwise. */
bool shmt_source_has_ids(const struct shmt_source *source);

/* Whether this file is one that the source reads: a generator reads none, IDX examples two. */
bool shmt_source_reads(const struct shmt_source *source, const struct stat *file);

/* A guess, before counting, of the bytes that the arrays will need in the sparse or the dense layout: from the file's size and
 * its beginning, or from the keys; and of the bytes that the source itself takes when it is unpacked, until it is closed. */
uint64_t shmt_source_guess_bytes(const struct shmt_source *source, bool dense);

/* Must the source be unpacked before it is counted? */
bool shmt_source_is_packed(const struct shmt_source *source);

/* Unpacks it, once; nothing to do for sources that are not packed. Its memory was set aside by open, and is used from here on.
 * May take seconds. Errors: SHMTRAIN_E_DATA (damaged, truncated, too long), _SYSTEM, _MEMORY. */
int shmt_source_unpack(const struct shmt_source *source, struct shmt_error *e);

/* Counts part `part` of `n_parts`, ids outside `columns` left out. A bad line goes into out->error, as "FILE:LINE:COLUMN: what
 * was expected, what was found"; the status is also returned. The first bad line of the file is the one in the lowest-numbered
 * part that has an error. Takes at most a few MiB of scratch memory, and the length of the longest line. */
int shmt_source_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_part *out);

/* Adds up the parts of `source`; the error of the lowest failing part is passed on. Also refuses what no table can hold: more
 * than 2^32 - 1 examples, or no example at all. */
int shmt_parts_total(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, struct shmt_totals *out,
                     struct shmt_error *e);

/* Writes part `part`: its examples stand behind those of the parts before it. parts[] is the result of all the counts; of it,
 * only parts[part].best_loss is written, and nothing that other parts write is read. Within an example, columns ascend and are
 * distinct (a reader has refused others while counting). start[n_examples] is written by the last part; dense rows are written
 * whole. A file that is not any more what was counted is SHMTRAIN_E_DATA, and never a write outside the arrays. */
int shmt_source_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *parts,
                     const struct shmt_arrays *into, struct shmt_error *e);

/* After all parts are filled: the mean logistic loss of the model that made the data; NaN where nobody knows. */
double shmt_parts_best_loss(const struct shmt_part *parts, uint32_t n_parts);

/* The place of an opaque position, for a person: "FILE:LINE", or "builtin:sparse example 17". Writes at most `bytes` with the
 * final 0. Reads the file up to there, so it is for messages only. */
void shmt_source_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes);

#endif
