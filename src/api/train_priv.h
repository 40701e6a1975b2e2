/* What one call of shmtrain_store_train holds, and its first steps: only for train.c, which calls the steps of train_data.c in
 * this order. */
#ifndef SHMT_API_TRAIN_PRIV_H
#define SHMT_API_TRAIN_PRIV_H

#include "api/load.h"
#include "api/rows.h"
#include "api/split.h"
#include "api/store_priv.h"

/* Everything that one call of shmtrain_store_train holds. */
struct shmt_training {
    struct shmtrain_store *store;
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

#endif
