/* Loading data in order to keep it, or to look at it, without training: see convert.c. */
#ifndef SHMT_API_CONVERT_H
#define SHMT_API_CONVERT_H

#include "api/load.h"

/* Loads all of `name`, its columns as given, into `out` (to be closed, after an error, too); SHMT_ALL_COLUMNS of them are in
 * out->columns. Errors: as training on it. */
int shmt_convert_load(struct shmtrain_store *store, const struct shmt_crew *crew, const char *name, struct shmt_load *out);

/* Makes a cache of `name` at `path`. Errors: as training on it; what goes wrong with writing is in *failed, and 0 is returned. */
int shmt_convert(struct shmtrain_store *store, const struct shmt_crew *crew, const char *name, const char *path,
                 struct shmt_error *failed);

#endif
