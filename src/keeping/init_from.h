/* Option init-from: a run begins with the parameters of a saved model or a checkpoint. */
#pragma once

#include "keeping/trained.h"

struct shmt_call;
struct shmt_offered;
struct shmt_parameters;

/* Into the declared tables, which have nothing in them yet but what the model begins with. `ours`: what will be trained; NULL:
 * own worker functions, whose tables must have the names and shapes of the file's. Without a path ("": the option is
 * not given): 0. Errors: those of shmtrain_store_load; _USAGE (what does not fit, with both values). */
int shmt_init_from(struct shmt_call *call, const char *path, const struct shmt_offered *offered, struct shmt_parameters *params,
                   const struct shmt_trained *ours);
