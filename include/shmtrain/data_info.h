/* What data is like, before anybody trains on it: sizes, labels, how often features occur, and what may be a mistake. */
#ifndef SHMTRAIN_DATA_INFO_H
#define SHMTRAIN_DATA_INFO_H

#include <shmtrain/data.h>
#include <shmtrain/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_INFO_TOPS       4  /* the 10, 100, 1000 and 10000 most frequent features */
#define SHMTRAIN_INFO_OCTAVES    32 /* of the numbers of examples that a feature occurs in */
#define SHMTRAIN_INFO_MOST_FOUND 5  /* features that are listed by their ids */

#define SHMTRAIN_INFO_COLUMNS 64 /* of a table, that are listed */
#define SHMTRAIN_INFO_NAME    49 /* bytes of a column's name, with the final 0; longer ones are cut off */

/* A column of a table (CSV). */
enum shmtrain_column_kind {
    SHMTRAIN_COLUMN_IGNORED,
    SHMTRAIN_COLUMN_LABEL,
    SHMTRAIN_COLUMN_NUMBERS,
    SHMTRAIN_COLUMN_CATEGORIES
};

struct shmtrain_column {
    char name[SHMTRAIN_INFO_NAME]; /* printable; "": it has none */
    uint32_t kind;                 /* enum shmtrain_column_kind */
    uint32_t feature;              /* its number, from 1 on, which is the id of NUMBERS; 0: it is none */
    uint32_t missing; /* of NUMBERS: examples in which it is missing; 0 in tables' caches that do not tell it from 0 */
    uint32_t reserved;
};

struct shmtrain_data_info {
    uint32_t size; /* of what was filled */
    uint32_t reserved;
    uint64_t examples, nonzeros;
    uint64_t skipped;                                /* bad lines that were left out (option skip-bad-lines) */
    uint64_t features;                               /* columns: ids from the first to the last */
    uint64_t first_id, last_id;                      /* as written; meaningless without features */
    uint64_t occurring;                              /* features with a nonzero */
    uint64_t row_least, row_median, row_most, empty; /* nonzeros of an example; examples without any */

    uint32_t n_labels;                 /* SHMTRAIN_MAX_CLASSES + 1: more than SHMTRAIN_MAX_CLASSES, and label[] is not filled */
    float label[SHMTRAIN_MAX_CLASSES]; /* (n_labels) ascending */
    uint64_t label_examples[SHMTRAIN_MAX_CLASSES]; /* (n_labels) */
    float label_low, label_high;
    double label_mean;

    uint32_t all_ones;           /* every nonzero is 1 */
    float value_low, value_high; /* of the nonzeros; 0 without any */
    double value_mean;
    double mean_square; /* mean over the examples of the sum of squared values */
    double best_loss;   /* of the model that made the data; NaN: nobody knows */

    double top_share[SHMTRAIN_INFO_TOPS];            /* of the nonzeros, in the 10, 100, ... most frequent features */
    uint64_t octave[SHMTRAIN_INFO_OCTAVES];          /* features that occur in 2^k .. 2^(k+1) - 1 examples */
    uint64_t top_id[SHMTRAIN_INFO_MOST_FOUND];       /* the most frequent features, as written; ties: the lower id */
    uint64_t top_examples[SHMTRAIN_INFO_MOST_FOUND]; /* 0 behind the last */

    uint64_t duplicates; /* examples with the features, values and label of an earlier one, by a hash of 64 bits */
    uint64_t once;       /* features that occur in one example */
    uint64_t constant;   /* features with the same value in every example, of several examples */
    uint64_t constant_id;
    double
        scale; /* the largest value of any feature by that of the one with the smallest, in absolute terms; 1 without values */
    uint64_t large_id, small_id; /* whose they are */

    uint32_t n_columns; /* of a table; 0: it is none */
    struct shmtrain_column column[SHMTRAIN_INFO_COLUMNS];
    double counted_from[SHMTRAIN_INFO_COLUMNS]; /* a whole number that is taken off the column's numbers, and 0 for most */
    uint8_t marks_there
        [SHMTRAIN_INFO_COLUMNS]; /* 1: the column's mark (SHMTRAIN_ID_MARK) is on numbers that are there; 0: on missing ones */

    uint32_t channels, height, width; /* the shape of an example (<shmtrain/data.h>); all 0: nobody knows */
};

/* As lines of text, and as one line of JSON; `name` is what the data is called. To be freed; NULL: no memory. */
SHMTRAIN_API char *shmtrain_data_info_text(const char *name, const struct shmtrain_data_info *info);
SHMTRAIN_API char *shmtrain_data_info_json(const char *name, const struct shmtrain_data_info *info);

#ifdef __cplusplus
}
#endif
#endif
