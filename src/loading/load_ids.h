/* The ids that readers have gathered, a set each, joined by as many threads. */
#pragma once

#include "configuration/call.h"
#include "data/ids.h"

/* All ids of set (n), in ascending order; the sets are used up. `name` of the data is for sentences. Errors: _MEMORY, _STOPPED,
 * _DATA (too many). */
int shmt_load_join_ids(struct shmt_call *call, struct shmt_ids *set, uint32_t n, const char *name, struct shmt_ids *out);
