/* What is in a file of a model or a checkpoint, without loading it. */
#pragma once

#include <shmtrain/store.h>

struct shmt_call;
struct shmt_offered;

/* What shmtrain_store_inspect_sized does. */
int shmt_inspect(struct shmt_call *call, const struct shmt_offered *offered, const char *path, struct shmtrain_file_info *out,
                 uint64_t out_bytes);
