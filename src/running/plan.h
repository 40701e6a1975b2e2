/* What a run would do, without training: what train.c hands to plan.c when data is counted and the spec is made. */
#pragma once

#include "loading/load_place.h"
#include "workers/run.h"

/* A run that could begin now. Nothing of it is placed. The spec is run->spec. */
struct shmt_prepared {
    const struct shmt_crew *crew;
    const struct shmt_load *train, *valid; /* counted, with their pages; valid NULL: none, or a share of train */
    const uint32_t *train_example;         /* as in struct shmt_readers */
    uint64_t work_bytes;                   /* that preparing takes beside the segments */
};

/* Prepares training on `data` as far as that, and calls `use`. `run` is one of the caller's own, without tables, whose
 * tables are the model's afterwards. Errors: those of loading and of `use`. */
int shmt_train_prepare(struct shmt_run *run, const char *data,
                       int (*use)(struct shmt_run *run, const struct shmt_prepared *prepared, void *arg), void *arg);

/* A plan of training on `data`, or of workers and machine alone (NULL), with a run of its own that only plans. */
struct shmt_plan_kept;
int shmt_plan_make(struct shmt_run *run, const char *data, struct shmt_plan_kept **out);
const struct shmtrain_plan *shmt_plan_of(const struct shmt_plan_kept *kept);
void shmt_plan_free(struct shmt_plan_kept *kept); /* NULL is fine */
