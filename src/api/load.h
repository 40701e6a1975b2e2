/* Loading data with all workers: count, make memory of the exact size, fill. */
#ifndef SHMT_API_LOAD_H
#define SHMT_API_LOAD_H

#include "api/store_priv.h"
#include "data/source.h"
#include "segment/pages.h"
#include "segment/segment.h"

struct shmt_readers;

/* One set of examples on its way into shared memory. Start with {0}. */
struct shmt_load {
    const char *name;
    bool dense;                 /* the layout */
    bool has_ids;               /* of the source (source.h) */
    struct shmt_source *source; /* until fill closes it */
    bool unpacked;
    bool weighted;                /* asked for before plan: room for weights, which the caller fills in behind fill */
    struct shmt_part *part;       /* (n_parts) shared with the workers that count and fill */
    uint64_t *took_ns;            /* (n_parts) likewise: how long each has read, in all passes */
    struct shmt_reading *reading; /* (n_parts) likewise: when, in the last one */
    uint32_t n_parts;
    struct shmt_columns columns;
    struct shmt_totals totals;
    enum shmt_pages pages;       /* that the segment shall have */
    enum shmt_named_part shared; /* with a name: the file that guests find it by; SHMT_NAMED_STORE: none */
    struct shmt_segment segment;
    uint64_t start_off, id_off, value_off, dense_off, label_off, weight_off, bytes; /* of the segment's contents */
    struct shmtrain_data data;           /* complete after fill; its classes are known after plan */
    float *weight;                       /* (n_examples) what data.weight points to; NULL: not weighted */
    float classes[SHMTRAIN_MAX_CLASSES]; /* what data.classes points to */
};

/* Opens the source, by shmt_source_open, and makes the parts. `dense`: the layout that the data will have. */
int shmt_load_open(struct shmt_load *load, struct shmtrain_store *store, const char *name, unsigned how, uint32_t n_parts,
                   bool dense);

/* First pass; `columns` NULL: all. Sets totals. Unpacks the source before, where that is needed. */
int shmt_load_count(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                    const struct shmt_columns *columns);

/* The columns of a model as this source counts them. Elements without ids are counted from where the model's features begin:
 * element 0 is its first feature. */
struct shmt_columns shmt_load_columns(const struct shmt_load *load, const struct shmt_columns *model);

/* What follows from the totals, and the columns that the data will have: sizes, and data without its arrays. */
void shmt_load_plan(struct shmt_load *load, const struct shmt_columns *columns);

/* Second pass: makes the segment, placed for those who will read it (load_place.h), and fills it. Closes the source: what
 * it has unpacked is not needed any more. */
int shmt_load_fill(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                   const struct shmt_readers *readers);

/* Gives each column of sparse data another number: place[column], (n_features), by all workers. What `data` describes stays as
 * it is, and so does the order of the elements within an example, which do not ascend any more. */
int shmt_load_renumber(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                       const uint32_t *place);

void shmt_load_close(struct shmt_load *load); /* {0} is fine */

#endif
