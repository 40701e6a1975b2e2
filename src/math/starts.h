/* What tables of parameters begin with (enum shmtrain_start): pure functions of a seed and a place, with the same bits on every
 * machine. */
#pragma once

#include <shmtrain/table.h>
#include <stdint.h>

/* n numbers of table t into value; fan_in and fan_out as in struct shmtrain_shape, above 0 where the start needs them. */
void shmt_start_fill(enum shmtrain_start start, uint64_t fan_in, uint64_t fan_out, uint64_t seed, uint32_t t, float *value,
                     uint64_t n);
