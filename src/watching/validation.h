/* Validation of own worker functions (<shmtrain/validation.h>), as runs have it. Called by run.c. */
#pragma once

#include "workers/run.h"

/* What shmtrain_store_validate does. */
int shmt_validation_take(struct shmt_run *run, const struct shmtrain_validation *validation);

/* The job of a run of an own worker function, with its validation, which the report names. */
void shmt_validation_begin(struct shmt_run *run, shmtrain_worker *worker, void *arg);

void shmt_validation_forget(struct shmt_run *run);
