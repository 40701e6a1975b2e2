/* A model in use: its state, and the workspaces of seats.
 *
 * Every process that trains or scores opens the model once, before its workers are there; they only read the state. Of `data`, only
 * the numbers count. */
#pragma once

#include <shmtrain/model.h>

#include "base/error.h"
#include "update/table.h"

struct shmt_opened {
    const struct shmtrain_model *model; /* NULL: nothing is open */
    void *state;
};

/* Errors: the model's; _USAGE: its number of tables, or the name of one, is none that there can be. */
int shmt_opened_begin(const struct shmtrain_model *model, const struct shmtrain_data *data,
                      const struct shmtrain_settings *with, struct shmt_opened *out, struct shmt_error *e);

void shmt_opened_end(struct shmt_opened *opened); /* {0} is fine */

/* Its tables, into shape_out (SHMTRAIN_MODEL_TABLES), all of which is 0 before; their number. */
uint32_t shmt_opened_tables(const struct shmt_opened *opened, const struct shmtrain_data *data,
                            const struct shmtrain_settings *with, struct shmtrain_shape *shape_out);

/* What it is made of, into layer_out (SHMTRAIN_MODEL_LAYERS); their number; 0: it has nothing to show. */
uint32_t shmt_opened_layers(const struct shmt_opened *opened, const struct shmtrain_data *data,
                            const struct shmtrain_settings *with, struct shmtrain_model_layer *layer_out);

/* Refuses, with _USAGE, roles, starts and factors that there are not, and starts that need a fan_in that is 0. */
int shmt_opened_check_shape(const struct shmtrain_shape *shape, struct shmt_error *e);

/* How such a table is changed. */
void shmt_opened_tune(const struct shmtrain_shape *shape, uint64_t *l2_rows_out, struct shmt_tuning *out);

/* Bytes of a seat's workspace for calls with at most n examples, in whole lines; 0: it wants none; UINT64_MAX: too many. */
uint64_t shmt_opened_workspace_bytes(const struct shmt_opened *opened, const struct shmtrain_data *data,
                                     const struct shmtrain_settings *with, uint64_t n);

/* A workspace of zeros into *out, for shmt_own_free; NULL where it wants none. By the thread that uses it, so that it lies near. Errors:
 * _MEMORY. */
int shmt_opened_make_workspace(const struct shmt_opened *opened, const struct shmtrain_data *data,
                               const struct shmtrain_settings *with, uint64_t n, void **out, struct shmt_error *e);
