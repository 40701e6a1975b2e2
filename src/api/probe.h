/* What the workers of a dense model will find: OpenBLAS, and OpenMP for the loops that a worker's threads share. Both are
 * loaded by workers only, so one worker looks, before data is loaded that nobody could use. */
#ifndef SHMT_API_PROBE_H
#define SHMT_API_PROBE_H

#include "api/store_priv.h"

/* For built-in models on OpenBLAS; for others it does nothing. Sets store->blas to the library's name, and the crew's number of
 * threads to 1, with a note, where there is no OpenMP. Errors: _SYSTEM, with what to install; those of shmt_drive. */
int shmt_probe_libraries(struct shmtrain_store *store, const struct shmtrain_model *model, struct shmt_crew *crew);

#endif
