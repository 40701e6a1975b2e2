/* What a run would do, without training: what train.c hands to plan.c when data is counted and the spec is made. */
#ifndef SHMT_API_PLAN_H
#define SHMT_API_PLAN_H

#include "api/load_place.h"
#include "api/store_priv.h"

/* A run that could begin now. Nothing of it is placed. The spec is store->spec. */
struct shmt_prepared {
    const struct shmt_crew *crew;
    const struct shmt_load *train, *valid; /* counted, with their pages; valid NULL: none, or a share of train */
    const uint32_t *train_example;         /* as in struct shmt_readers */
    uint64_t work_bytes;                   /* that preparing takes beside the segments */
};

/* Prepares training on `data` as far as that, and calls `use`. `store` is one of the caller's own, without tables, whose
 * tables are the model's afterwards. Errors: those of loading and of `use`. */
int shmt_train_prepare(struct shmtrain_store *store, const char *data,
                       int (*use)(struct shmtrain_store *store, const struct shmt_prepared *prepared, void *arg), void *arg);

struct shmt_plan_kept;
void shmt_plan_free(struct shmt_plan_kept *kept); /* NULL is fine */

#endif
