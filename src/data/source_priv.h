/* What a kind of source is: the operations behind source.h. Only for this room.
 *
 * Each kind puts a struct shmt_source at the beginning of its own struct. Everything is made by open, and read-only
 * afterwards. */
#pragma once

#include "data/source.h"

/* title, flows, is_once, share_pipe (both sources have these operations): as in source.h; NULL: no. fills_buffers: whether
 * count appends its rows to a buffer, when it is given one. has_any_ids: as in source.h. count: *out is clear, nothing has to be
 * set when the part is empty; returns the status of out->error. shape: as in source.h; NULL: unknown. fill: `first` and
 * `first_nonzero` are where the part begins; the sums of parts[part] are what count found and must be found again; both layouts.
 * guess_bytes: as in source.h. reads: the same; NULL: no file. place: the same; NULL where positions are example numbers. close:
 * frees the source. */
struct shmt_source_ops {
    bool is_generator, lacks_ids, fills_buffers, has_any_ids;
    int (*count)(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                 struct shmt_row_buffer *buffer, struct shmt_part *out);
    int (*fill)(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted, uint64_t first,
                uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e);
    const char *(*title)(const struct shmt_source *source);
    bool (*flows)(const struct shmt_source *source);
    bool (*is_once)(const struct shmt_source *source);
    /* Which of several files were empty: how many, and the first one's name. NULL: none ever is. */
    uint32_t (*empty_files)(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts,
                            const char **first_out);
    bool (*share_pipe)(const struct shmt_source *a, const struct shmt_source *b);
    bool (*reads)(const struct shmt_source *source, const struct stat *file);
    uint64_t (*guess_bytes)(const struct shmt_source *source, bool dense);
    uint64_t (*read_bytes)(const struct shmt_source *source); /* that counting goes through; NULL: as guess_bytes */
    int (*unpack)(const struct shmt_source *source, struct shmt_error *e); /* NULL: nothing to unpack */
    const char *(*note)(const struct shmt_source *source);                 /* NULL: none */
    const char *(*remark)(const struct shmt_source *source);               /* NULL: none */
    const float *(*weights)(const struct shmt_source *source);             /* (n_examples); NULL: none, as its result */
    bool (*has_labels)(const struct shmt_source *source);                  /* NULL: it has */
    struct shmt_example_shape (*shape)(const struct shmt_source *source);
    void (*place)(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes);
    void (*close)(struct shmt_source *source);
};

struct shmt_source {
    const struct shmt_source_ops *ops;
    const char *name; /* for sentences; lives as long as the source */
};

/* A part in which nothing was found yet, of which `buffer` (NULL: none) will have the rows; and its end. */
void shmt_part_begin_count(struct shmt_part *part, const struct shmt_row_buffer *buffer);
void shmt_part_end_count(struct shmt_part *part, const struct shmt_row_buffer *buffer);

/* One key of a generator's name: a whole number, or any number from 0 to SHMT_KEY_MOST, a noise of which labels stay floats. */
#define SHMT_KEY_MOST 1000000
#define SHMT_SEED_MAX INT64_MAX /* of key `seed`, which counts more than the option of this name */
struct shmt_key {
    const char *name;
    uint64_t low, high; /* the whole numbers that are accepted */
    uint64_t *whole;    /* where to: this or `real` */
    double *real;
};

/* Reads "key=value,key=value" (NULL or empty: nothing) into what the keys point to. `generator` is for the sentences. */
int shmt_keys_read(const char *generator, const char *text, const struct shmt_key *keys, uint32_t n_keys, struct shmt_error *e);

/* Adds one example to what a part found; all sums but n_nonzeros and the ids. */
void shmt_part_add_label(struct shmt_part *part, float label, uint64_t at);

/* Examples, and nonzeros, of the parts before `part`. */
void shmt_parts_before(const struct shmt_part *parts, uint32_t part, uint64_t *first_out, uint64_t *first_nonzero_out);

/* Writes one example of n nonzeros into either layout; `nonzero` is where it begins in the sparse one. */
void shmt_arrays_put(const struct shmt_arrays *into, uint64_t example, uint64_t nonzero, const uint32_t *id, const float *value,
                     uint64_t n);

/* The bytes of so many examples in the dense layout; UINT64_MAX for more than that. */
uint64_t shmt_dense_bytes(double n_examples, uint64_t n_features);

/* The example numbers of a generator's part: [first, end) of n. */
static inline uint64_t shmt_part_begin(uint64_t n, uint32_t part, uint32_t n_parts) {
    return (uint64_t)((unsigned __int128)n * part / n_parts);
}

/* The kinds. `keys` is what stands behind "builtin:NAME:", or NULL. */
int shmt_libsvm_open(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e);
int shmt_csv_open(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e);
int shmt_array_source_open(const char *name, unsigned how, struct shmt_source **out,
                           struct shmt_error *e);                                      /* 1: these are no array files */
int shmt_cifar_open(const char *name, struct shmt_source **out, struct shmt_error *e); /* 1: these are no files of CIFAR-10 */
bool shmt_cifar_is(const char *path);
int shmt_sparse_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e);
int shmt_dense_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e);
int shmt_digits_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e);
int shmt_line_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e);
