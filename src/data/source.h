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
#pragma once

#include <shmtrain/data.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "data/columns.h"
#include "data/labels.h"
#include "data/sum.h"
#include "base/error.h"
#include "files/example_shape.h"
#include "files/row.h"

struct shmt_source;
struct shmt_row_buffer;
struct shmt_csv_wish;
struct shmt_given;

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
    uint32_t buffer;             /* the number of the buffer that has its rows (row_buffer.h), where they begin, and how many */
    uint64_t buffered_example, buffered_nonzero, buffered_nonzeros;
    uint32_t file, chunk;           /* of a flow (flow.h): which this is */
    uint64_t n_skipped, skipped_at; /* bad lines that were left out; where the first is, and what is wrong with it */
    struct shmt_line_fault skipped;
    struct shmt_labels labels;
    struct shmt_error error;
};

/* The sums over parts 0..n-1 and what follows from them. */
struct shmt_totals {
    uint64_t n_examples, n_nonzeros, min_id, max_id;
    uint64_t n_skipped; /* bad lines that were left out */
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
    SHMT_SOURCE_UNLABELLED = 2,  /* nobody needs labels: IDX examples are read alone, and their labels are 0 */
    SHMT_SOURCE_ANY_LABELS = 16, /* arrays may have no labels, but where they have some, these are read */
    SHMT_SOURCE_SCORED = 4,      /* by a model that is there: what is said of a table's label is not said of the model's */
    SHMT_SOURCE_UNMARKED = 8 /* for a model of other data than tables, which knows no marks of missing numbers (csv_plan.h) */
};

/* Whether opening is to be given up; asked for each MiB of what is gone through. */
struct shmt_source_stop {
    bool (*asked)(void *arg);
    void *arg;
};

/* What is to be opened, and how. Strings stay until the source is closed. */
struct shmt_source_wish {
    const char *name;
    uint64_t seed;                   /* for generators */
    unsigned how;                    /* SHMT_SOURCE_HELD_OUT, ... */
    bool skip_bad_lines;             /* lines of text that cannot be parsed are left out, and counted */
    const char *format;              /* of text: "libsvm", "csv", "tsv"; NULL, "" or "auto": by the name */
    const struct shmt_csv_wish *csv; /* NULL: nothing (csv_wish.h) */
    const struct shmt_given *given;  /* not NULL: these arrays of the application (given.h), whatever the name */
    struct shmt_source_stop stop;    /* asked NULL: it is not given up */
};

/* Opens what `name` names: "builtin:sparse[:key=value,...]", "builtin:dense[:...]", "builtin:line[:...]", a path to LIBSVM
 * text (packed or not, regular file or pipe, "-" for standard input, or several of these with line breaks between them), or
 * one to an IDX file of examples, packed or not; its labels are found by its name ("images" replaced by "labels"), or named,
 * too: "IMAGES,LABELS". `seed` is used by generators only. `how`, HELD_OUT: a generator gives examples of the same planted
 * model that the training set does not contain (their number: key `valid`); a reader refuses it. *out belongs to the caller,
 * who closes it. Errors: SHMTRAIN_E_USAGE (unknown generator or key, with the keys; a directory), _DATA (empty file; IDX: a
 * bad header, no labels), _SYSTEM (cannot be read), _MEMORY, _STOPPED. */
int shmt_source_open_as(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e);

/* The same with nothing else to wish for. */
int shmt_source_open(const char *name, uint64_t seed, unsigned how, struct shmt_source **out, struct shmt_error *e);
void shmt_source_close(struct shmt_source *source); /* NULL is fine */

bool shmt_source_is_generator(const struct shmt_source *source);

/* What a model file keeps of how a table was read (csv_plan.h); NULL: nothing, for it is none. As long as the source. */
const char *shmt_source_note(const struct shmt_source *source);

/* What somebody should know of how it is read, to follow its name in a line; NULL: nothing. Known when the note is. */
const char *shmt_source_remark(const struct shmt_source *source);

/* A weight for each of its examples, (n_examples); NULL: it has none. Whole when all is counted; as long as the source. */
const float *shmt_source_weights(const struct shmt_source *source);

/* Whether its features have ids. IDX examples have none: their elements are counted, from 0 where nobody says otherwise. */
bool shmt_source_has_ids(const struct shmt_source *source);

/* False of arrays that have no labels, or whose labels nobody needs: they count as 0. */
bool shmt_source_has_labels(const struct shmt_source *source);

/* The shape of its examples, in whose order its elements are; all 0: it knows none. */
struct shmt_example_shape shmt_source_shape(const struct shmt_source *source);

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

/* Whether its ids are whatever somebody wrote: perhaps too large, or too far apart, for a table with a row for each. */
bool shmt_source_has_any_ids(const struct shmt_source *source);

/* The ids that are its columns, where it has a list of them (n) and ascending; NULL: it has none. To be looked at when all is
 * counted. */
const uint64_t *shmt_source_listed_ids(const struct shmt_source *source, uint64_t *n_out);

/* Whether count can append the rows to a buffer, so that nothing has to be read again. */
bool shmt_source_fills_buffers(const struct shmt_source *source);

/* Whether its parts come one after the other, and nobody knows how many: it is counted and filled by way of flow.h only. */
bool shmt_source_flows(const struct shmt_source *source);

/* Whether it can be read once only: what has come through a pipe does not come again. */
bool shmt_source_is_once(const struct shmt_source *source);

/* Whether both take from one pipe. */
bool shmt_source_share_pipe(const struct shmt_source *a, const struct shmt_source *b);

/* What it is called, where that is not the name that it was opened by: "standard input"; NULL: it is. Lives as long as the
 * source. */
const char *shmt_source_title(const struct shmt_source *source);

/* Into how many parts the work is best cut, for so many readers: small ones, which are dealt as they get ready. */
uint32_t shmt_source_parts(const struct shmt_source *source, uint32_t n_readers);

/* Counts part `part` of `n_parts`, ids outside `columns` left out. With a buffer (NULL: none), if the source fills buffers, the rows
 * are appended to it as they are written, with all their ids. A bad line goes into out->error, as "FILE:LINE:COLUMN: what
 * was expected, what was found"; the status is also returned. The first bad line of the file is the one in the lowest-numbered
 * part that has an error. Takes at most a few MiB of scratch memory, and the length of the longest line. */
int shmt_source_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out);

/* Adds up the parts of `source`; the error of the lowest failing part is passed on. Also refuses what no table can hold: more
 * than 2^32 - 1 examples, or no example at all. */
int shmt_parts_total(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, struct shmt_totals *out,
                     struct shmt_error *e);

/* Says how many bad lines were left out, and what is wrong with the first: "skipped 3 bad lines of t.svm; the first:
 * t.svm:17:5: expected ...". */
void shmt_parts_skipped(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, char *out,
                        uint64_t bytes);

/* Says which of several files were empty: "u.svm is empty, and adds nothing". False: none was. */
bool shmt_parts_empty(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, char *out,
                      uint64_t bytes);

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
