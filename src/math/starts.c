/* Filling tables: see starts.h. */
#include "math/starts.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

#define START_PURPOSE 0x7374617274730000u /* "starts" */

/* 24 random bits make one of 2^24 numbers, as many below 0 as above; in double all is exact but for the product. */
static void fill_uniform(double bound, uint64_t seed, uint32_t t, float *value, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bits = shmt_hash64(seed, START_PURPOSE, t, i) >> 40;
        value[i] = (float)(((double)(2 * bits + 1) * 0x1p-24 - 1) * bound);
    }
}

void shmt_start_fill(enum shmtrain_start start, uint64_t fan_in, uint64_t fan_out, uint64_t seed, uint32_t t, float *value,
                     uint64_t n) {
    switch (start) {
        case SHMTRAIN_ZEROS:
            memset(value, 0, n * sizeof *value);
            break;
        case SHMTRAIN_ONES:
            for (uint64_t i = 0; i < n; i++) value[i] = 1;
            break;
        case SHMTRAIN_HE:
            fill_uniform(sqrt(6 / (double)fan_in), seed, t, value, n);
            break;
        case SHMTRAIN_GLOROT:
            fill_uniform(sqrt(6 / ((double)fan_in + (double)fan_out)), seed, t, value, n);
            break;
    }
}
