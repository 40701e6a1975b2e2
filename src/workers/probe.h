/* What the workers of a dense model will find: OpenBLAS, and OpenMP for the loops that a worker's threads share. Both are
 * loaded by workers only, so one worker looks, before data is loaded that nobody could use. */
#pragma once

#include "workers/run.h"

/* What a worker finds; in memory that it shares with who asks. */
struct shmt_found_libraries {
    char blas[64]; /* OpenBLAS by name; "": none */
    uint32_t wants_threads, shared, openmp;
};

/* The body of a worker that looks; `arg` is a struct shmt_found_libraries. Errors: _SYSTEM, with what to install. */
int shmt_probe_look(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e);

/* For built-in models on OpenBLAS; for others it does nothing. Sets run->blas to the library's name, and the crew's number of
 * threads to 1, with a note, where there is no OpenMP. Errors: _SYSTEM, with what to install; those of shmt_drive. */
int shmt_probe_libraries(struct shmt_run *run, const struct shmtrain_model *model, struct shmt_crew *crew);
