/* Examples of builtin:sparse, which have the shape of RCV1, and of builtin:dense (10 classes), in shared memory: as the loader
 * of the library lays them out. */
#pragma once

#include <shmtrain/data.h>

#include "bench/floors/stream.h"

/* `bytes` of ids and values, 8 per nonzero, `nonzeros` per example on average. The memory stays until the process ends. */
void shmt_make_examples(uint64_t bytes, uint64_t features, uint64_t nonzeros, struct shmtrain_data *out);

/* `bytes` of rows of `features` floats. */
void shmt_make_dense(uint64_t bytes, uint64_t features, struct shmtrain_data *out);

/* Examples first .. first + n - 1 as data of their own, without a copy. */
struct shmtrain_data shmt_part_of_examples(const struct shmtrain_data *data, uint64_t first, uint64_t n);

/* What an epoch has to read: ids and values. */
struct shmt_ranges shmt_ranges_of_examples(const struct shmtrain_data *data);
