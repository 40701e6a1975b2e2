/* All of some data in memory, without training on it: to be kept, to be looked at, or for worker functions of the application. */
#pragma once

#include <shmtrain/model.h>

#include "loading/load.h"

/* Which columns and rows are wanted. */
struct shmt_reading_wish {
    const char *name;
    enum shmt_row_layout rows;
    const struct shmt_load *like; /* its columns; it stays until the data is closed. NULL: all, as given */
};

/* Loads it into `out` (to be closed, after an error, too). Errors: as training on it. */
int shmt_read_load(struct shmt_loading *loading, const struct shmt_crew *crew, const struct shmt_reading_wish *wish,
                   struct shmt_load *out);

/* What shmtrain_store_read_data does between enter and leave. */
int shmt_read_data(struct shmt_loading *loading, const char *data, enum shmtrain_rows rows, const struct shmtrain_data *like,
                   const struct shmtrain_data **out);
