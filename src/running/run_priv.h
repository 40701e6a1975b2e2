/* What runs of both kinds have in common: for run.c, which has it, and train.c. */
#pragma once

#include "workers/run.h"

struct shmt_rows; /* rows.h */

/* Makes the backend's store, moves the parameters into it, runs all workers, and completes the report. The job's model, data or
 * worker function are set. `rows` is freed as soon as it is in the store; NULL: nothing is known. */
int shmt_run_job(struct shmt_run *run, const struct shmt_crew *crew, struct shmt_rows *rows);

/* Refuses what does not fit into memory: the spec's need beside `data_bytes` that are needed, too. */
int shmt_check_memory(struct shmt_call *call, const struct shmt_backend *backend, const struct shmt_spec *spec,
                      uint64_t data_bytes);

/* What every run begins with: an empty report, the backend chosen; parameters of an earlier run are kept. */
int shmt_run_begin(struct shmt_run *run);

/* Room for the figures of its epochs, when it is known how many it may have (fit.h). Errors: _MEMORY. */
int shmt_run_make_epochs(struct shmt_run *run, const struct shmtrain_model *model);
