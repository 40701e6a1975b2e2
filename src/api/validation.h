/* Validation of own worker functions (<shmtrain/validation.h>), as runs have it. Called by run.c. */
#ifndef SHMT_API_VALIDATION_H
#define SHMT_API_VALIDATION_H

#include "api/store_priv.h"

/* The job of a run of an own worker function, with its validation, which the report names. */
void shmt_validation_begin(struct shmtrain_store *store, shmtrain_worker *worker, void *arg);

void shmt_validation_forget(struct shmtrain_store *store);

#endif
