/* Tables: what a model's parameters are, and how a flat array of them is shared out. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A matrix of floats (rows, width), row-major. Plain memory: it may lie in a shared segment. */
struct shmt_table_spec {
    char name[32]; /* ends in 0; for messages and saved models */
    uint64_t rows;
    uint32_t width;
    uint32_t reserved;
};

/* How its parameters are changed, as enum shmtrain_role and struct shmtrain_shape say. All zeros: trained, as the run says. */
struct shmt_tuning {
    uint32_t role;
    float rate;  /* trained: factor of the run's rate, 0 is 1; statistic: the share, above 0 */
    float decay; /* factor of L1, L2 and weight decay, 0 is 1 */
    uint32_t reserved;
};

#define SHMT_STATISTIC_SHARE 0.1f /* unless a model says more: what PyTorch's momentum of batch normalisation is */

/* Refuses, with SHMTRAIN_E_USAGE, roles that there are not, and factors that are no numbers or below 0. `name`: of the table. */
int shmt_tuning_check(const struct shmt_tuning *tuning, const char *name, struct shmt_error *e);

/* Refuses, with SHMTRAIN_E_USAGE: a name that is empty, has no end, or has characters other than letters, digits, '_', '-'
 * and '.'; no rows or no width; so many floats that their bytes, rounded up to whole lines, go beyond 2^63. The other
 * functions rely on it. */
int shmt_table_check(const struct shmt_table_spec *table, struct shmt_error *e);

/* rows * width. */
uint64_t shmt_table_floats(const struct shmt_table_spec *table);

/* Part `part` of n_parts (> 0) of n < 2^63 floats: *from_out .. *to_out - 1. Parts are in order, begin on lines (a multiple
 * of 32 floats, where the array begins on one), differ by at most one line, and cover the n floats exactly; where there are
 * more parts than lines some are empty. */
void shmt_slice(uint64_t n, uint32_t part, uint32_t n_parts, uint64_t *from_out, uint64_t *to_out);
