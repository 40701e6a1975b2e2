/* Loading data, by as many threads as there are workers: count, make memory of the exact size, fill. */
#pragma once

#include "loading/readings.h"
#include "base/show.h"
#include "configuration/call.h"
#include "configuration/options.h"
#include "data/source.h"
#include "data/row_buffer.h"
#include "segment/named.h"
#include "segment/pages.h"
#include "segment/segment.h"
#include "workers/crew.h"

struct shmt_arrays_kept;
struct shmt_readers;

/* What loading needs, and keeps between its calls. */
struct shmt_loading {
    struct shmt_call *call;
    const struct shmt_config *config;
    struct shmt_arrays_kept *arrays; /* that the application has given (arrays.h) */
    char *table_before;              /* while one trains: how the table was read whose parameters it begins with (table.h) */
    bool is_before_unmarked;         /* what table_before is of is a model of data without columns */
    struct shmt_readings passes;     /* for a trace */
};

/* Who makes files for data that guests shall find: *out becomes a descriptor, or -1, and the data stays private. `make` NULL: there is
 * none. */
struct shmt_file_maker {
    int (*make)(void *arg, enum shmt_named_part part, int *out, struct shmt_error *e);
    void *arg;
};

/* The layout that a model wants its rows in. */
enum shmt_row_layout {
    SHMT_ROWS_SPARSE,
    SHMT_ROWS_DENSE,
    SHMT_ROWS_EITHER /* dense, unless few values are other than 0 */
};

enum shmt_row_layout shmt_rows_as(enum shmtrain_rows rows);
enum shmt_row_layout shmt_rows_for(const struct shmtrain_model *model);

/* One set of examples on its way into memory that workers share. Start with {0}. */
struct shmt_load {
    const char *name;                /* as named; of several files, and of standard input, the title */
    char title[3 * SHMT_NAME_SHOWN]; /* (source.h) */
    enum shmt_row_layout rows;       /* the layout that is wanted */
    bool dense;                      /* the layout; of either, after plan */
    bool wide;                       /* each column has many parameters: fewer of them are worth a look, in sparse rows, too */
    bool has_ids;                    /* of the source (source.h) */
    bool has_labels;                 /* else they count as 0 */
    struct shmt_example_shape shape; /* of the source; of the data it is where all these columns are there */
    char *table;                     /* of a table as text: how it is read (table.h); NULL: it is none */
    struct shmt_source *source;      /* until fill closes it */
    bool unpacked, was_read, told_others, told_remark;
    bool kept;        /* its source is the cache that is kept beside `name` (cache.h) */
    bool in_place;    /* its arrays are those of a cache's file (cache.h), or of the application (arrays.h), and there is
                                     no segment */
    bool weighted;    /* asked for before plan: room for weights, which the caller fills in behind fill */
    bool has_weights; /* those of the source are in it, after fill */
    uint32_t n_parts, n_readers;    /* parts are dealt to readers, who are threads */
    struct shmt_part *part;         /* (n_parts) */
    uint64_t *took_ns;              /* (n_readers) how long each has read, in all passes */
    struct shmt_reading *reading;   /* (n_readers) when, in the last one */
    struct shmt_row_buffer *buffer; /* (n_readers) their rows, from count to fill */
    bool buffered;                  /* all rows are there */
    struct shmt_ids ids;            /* that are columns, when these are a list of its own */
    struct shmt_columns columns;
    struct shmt_totals totals;
    enum shmt_pages pages;             /* that the segment shall have */
    struct shmt_file_maker file_maker; /* with a name: of the file that guests find it by */
    enum shmt_named_part named_part;   /* which file it is */
    bool is_shared;                    /* it is in such a file */
    struct shmt_segment segment;
    uint64_t start_off, id_off, value_off, dense_off, label_off, weight_off, bytes; /* of the segment's contents */
    struct shmtrain_data data;           /* complete after fill; its classes are known after plan */
    float *weight;                       /* (n_examples) what data.weight points to; NULL: not weighted */
    float classes[SHMTRAIN_MAX_CLASSES]; /* what data.classes points to */
};

/* Opens the source, by the options. `table`: how a table is read if the name is one's (table.h); NULL: find it out. `rows`: the
 * layout that the data will have. */
int shmt_load_open(struct shmt_load *load, struct shmt_loading *loading, const char *name, unsigned how, const char *table,
                   uint32_t n_readers, enum shmt_row_layout rows);

/* The memory that data will take in the layout, by what the beginnings of its files tell. */
uint64_t shmt_rows_guess_bytes(const struct shmt_source *source, enum shmt_row_layout rows);

/* First pass; `columns` NULL: all. Sets totals. Unpacks the source before, where that is needed. What is found is kept, where
 * there is memory for it, so that the second pass, and another count, need not read again. */
int shmt_load_count(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_columns *columns);

/* The columns of data that has been counted, and counts for them: a range of ids from `base` (0 or 1) on; where such a table
 * would be too large or mostly empty, and in the dense layout where few of them occur, the ids that do (load->ids); with
 * hash_bits (0: not), their hashes. Errors: those of count; _USAGE: there are no ids to hash. */
int shmt_load_own_columns(struct shmt_load *load, struct shmt_loading *loading, uint32_t base, uint32_t hash_bits,
                          struct shmt_columns *out);

/* The columns of a model as this source counts them. Elements without ids are counted from where the model's features begin:
 * element 0 is its first feature. Errors: _USAGE: there are no ids, and the model's columns are no range of them. */
int shmt_load_columns(const struct shmt_load *load, const struct shmt_columns *model, struct shmt_columns *out,
                      struct shmt_error *e);

/* What follows from the totals, and the columns that the data will have: sizes, and data without its arrays. */
void shmt_load_plan(struct shmt_load *load, const struct shmt_columns *columns);

/* Second pass: makes the segment, placed for those who will read it (load_place.h), and fills it. Closes the source: what
 * it has unpacked is not needed any more. */
int shmt_load_fill(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew,
                   const struct shmt_readers *readers);

/* Gives each column of sparse data another number: place[column], (n_features), by all workers. What `data` describes stays as
 * it is, and so does the order of the elements within an example, which do not ascend any more. */
int shmt_load_renumber(struct shmt_load *load, struct shmt_loading *loading, const uint32_t *place);

/* Gives back what count has kept, so that fill reads again. False: nothing was kept, or it cannot be read again. {0} is fine. */
bool shmt_load_drop_buffers(struct shmt_load *load);

/* Memory of ours that the data takes, when it is known whether it is taken in place. */
uint64_t shmt_load_own_bytes(const struct shmt_load *load);

void shmt_load_close(struct shmt_load *load); /* {0} is fine */
