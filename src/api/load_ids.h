/* The ids that readers have gathered, a set each, joined by as many threads. */
#ifndef SHMT_API_LOAD_IDS_H
#define SHMT_API_LOAD_IDS_H

#include "api/store_priv.h"
#include "data/ids.h"

/* All ids of set (n), in ascending order; the sets are used up. `name` of the data is for sentences. Errors: _MEMORY, _STOPPED,
 * _DATA (too many). */
int shmt_load_join_ids(struct shmtrain_store *store, struct shmt_ids *set, uint32_t n, const char *name, struct shmt_ids *out);

#endif
