/* Reading a model from a file. */
#pragma once

#include <shmtrain/model.h>

#include "base/error.h"

struct shmt_call;
struct shmt_model_in;
struct shmt_offered;
struct shmt_parameters;

/* The model at `path` becomes the parameters that there are; after an error they are as they were. Errors: as
 * shmtrain_store_load. */
int shmt_model_load(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered,
                    const char *path);

/* What the model in a file is made of, into layer_out (SHMTRAIN_MODEL_LAYERS); their number. 0: it has nothing to show, or is none of
 * ours, or *why says what keeps it from being shown. */
uint32_t shmt_model_describe(struct shmt_call *call, const struct shmt_offered *offered, const char *path,
                             struct shmt_model_in *in, struct shmtrain_model_layer *layer_out, struct shmt_error *why);
