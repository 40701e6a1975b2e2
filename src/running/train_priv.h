/* What one call of shmtrain_store_train holds, and its first steps: only for train.c, which calls the steps of train_data.c and
 * train_memory.c in this order. */
#pragma once
#include "loading/load.h"
#include "loading/rows.h"
#include "loading/split.h"
#include "workers/run.h"

/* Everything that one call of shmtrain_store_train holds. */
struct shmt_training {
    struct shmt_run *run;
    const char *source; /* the data, as named */
    struct shmt_crew crew;
    const struct shmtrain_model *model;
    struct shmt_load train, valid;
    bool has_valid;                  /* a second source */
    double share;                    /* > 0: validation is this share of the training data */
    struct shmt_split split;         /* of the two, when share > 0 */
    uint64_t nonzeros[2];            /* of the two, as they came */
    struct shmtrain_data unweighted; /* the training data, as it is validated on when share > 0 */
    struct shmt_rows rows;
};

/* Opens training and validation data, or what is to be which share of the first. */
int shmt_train_open_data(struct shmt_training *s);

/* Before anything is read: a file that cannot fit is refused at once. */
int shmt_train_check_guess(struct shmt_training *s);

/* Counts both sets, and finds the columns that they share: those of the training data. */
int shmt_train_count_data(struct shmt_training *s);

/* Whether the model fits the data; what it needs to know of the labels is in the job's settings then. */
int shmt_train_check_model(struct shmt_training *s);

/* Decides where data lies and on which pages, when all sizes are known. */
int shmt_train_choose_memory(struct shmt_training *s);

/* What the run works with beside the segments; UINT64_MAX: more than any memory. */
uint64_t shmt_train_work_bytes(const struct shmt_training *s);

/* Whether all of it fits, beside the segments what the run works with. Errors: _MEMORY, with figures. */
int shmt_train_check_need(struct shmt_training *s);

/* The same; but what is kept of the data until it has its place is no reason to refuse a run: it is given up, and read again. */
int shmt_train_check_memory(struct shmt_training *s);
