/* Caches: loaded data in a file that maps straight into memory. docs/cache-format.md says what stands where.
 *
 * A cache is read like any other source (source.h): counting it checks it, by all workers, and filling copies it, its
 * columns as they were given. Who wants no copy takes its arrays as they lie in memory, once it was counted: shmt_cache_of.
 * Its writer and the question whether it is newer than its text are used by loading/cache.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/guard.h"
#include "files/example_shape.h"

struct shmt_source;

/* What a cache was made from, to be known again. All 0: nothing that can change (generated data). */
struct shmt_cache_origin {
    uint64_t bytes;
    int64_t modified_s, modified_ns;
    uint64_t sample; /* XXH3 of pieces of the file, the first and the last ones among them */
};

/* What a cache holds. Ids are places where `column` is not NULL: the feature of place p is column[p], and the most frequent
 * one's place is 0; else they are columns. */
struct shmt_cache {
    uint64_t n_examples, n_nonzeros;
    uint32_t n_columns, base;
    bool lacks_ids;                  /* of the source (source.h) */
    uint64_t min_id, max_id;         /* as in struct shmt_totals */
    double best_loss;                /* NaN: nobody knows */
    struct shmt_example_shape shape; /* of n_columns values, with base 0; all 0: nobody knows */
    const uint64_t *start;           /* (n_examples + 1) */
    const uint32_t *id;              /* (n_nonzeros) within an example in the order of the columns */
    const float *value;              /* (n_nonzeros); NULL: all are 1 */
    const float *label;              /* (n_examples) */
    const uint32_t *column;          /* (n_columns); NULL: columns are as given */
    const uint64_t *listed;          /* (n_columns) the ids of the columns, ascending; NULL: id = column + base */
    const char *note;                /* of a table: how it was read (shmt_source_note), never empty; NULL: it was none */
    struct shmt_cache_origin origin;
};

/* What the source holds, valid until it is closed; NULL: it is no cache. The arrays may be read when all parts were counted
 * without an error: until then nobody has looked at what is in them. */
const struct shmt_cache *shmt_cache_of(const struct shmt_source *source);

/* What guards a cache that is mapped (base/guard.h), to be asked as long as its arrays are used; of nothing where it is copied.
 * The name lives as long as the source. */
struct shmt_guarded shmt_cache_guard(const struct shmt_source *source);

/* Whether a regular file of this name begins as caches do. What cannot be opened is for others to complain of. */
bool shmt_cache_begins(const char *path);

/* Whether writing is to be given up; asked for each quarter of a MiB. */
struct shmt_cache_stop {
    bool (*asked)(void *arg);
    void *arg;
};

/* Writes a cache to `path`, in place of what is there when it is complete. The caller has loaded the data: nothing is checked.
 * stop NULL: it is not given up. Errors: _SYSTEM (no permission, disk full: `path` is as it was), _MEMORY, _STOPPED. */
int shmt_cache_write(const char *path, const struct shmt_cache *cache, const struct shmt_cache_stop *stop,
                     struct shmt_error *e);

/* Errors: those of shmt_file_open; _SYSTEM. */
int shmt_cache_origin_of(const char *path, struct shmt_cache_origin *out, struct shmt_error *e);
bool shmt_cache_origin_is(const struct shmt_cache_origin *a, const struct shmt_cache_origin *b);
