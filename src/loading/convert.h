/* Loading data in order to keep it, or to look at it, without training: see convert.c. */
#pragma once

#include <shmtrain/data_info.h>

#include "loading/load.h"

/* Makes a cache of `name` at `path`. Errors: as training on it; what goes wrong with writing is in *failed, and 0 is returned. */
int shmt_convert(struct shmt_loading *loading, const struct shmt_crew *crew, const char *name, const char *path,
                 struct shmt_error *failed);

/* What shmtrain_store_convert does between enter and leave. */
int shmt_convert_file(struct shmt_loading *loading, const char *data, const char *path);

/* data_info.c. What shmtrain_store_data_info_sized does between enter and leave. */
int shmt_data_info(struct shmt_loading *loading, const char *data, struct shmtrain_data_info *out);
