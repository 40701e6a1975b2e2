/* Option init-from: a run begins with the parameters of a saved model or a checkpoint. */
#ifndef SHMT_API_INIT_FROM_H
#define SHMT_API_INIT_FROM_H

#include "api/trained.h"

struct shmtrain_store;

/* Into the declared tables, which have nothing in them yet but what the model begins with. `ours`: what will be trained; NULL:
 * own worker functions, whose tables must have the names and shapes of the file's. Without the option: 0. Errors: those of
 * shmtrain_store_load; _USAGE (what does not fit, with both values). */
int shmt_init_from(struct shmtrain_store *store, const struct shmt_trained *ours);

#endif
