/* Which examples a seat reads next, and asking memory for them while those before are in work.
 *
 * Kernels ask ahead within an item (update/kernels_priv.h), which for items of a few examples, the chunks of a small batch, is not
 * far enough: each would wait for main memory. Which chunk comes next follows from the configuration. */
#pragma once

#include "train/job.h"

#define SHMT_AHEAD_EXAMPLES 32 /* items of more examples look ahead by themselves */

/* The examples of the item that comes next. One thread's. Start with {0}. */
struct shmt_ahead {
    uint32_t example[SHMT_AHEAD_EXAMPLES];
    uint64_t first, n; /* their places in epoch `epoch`; n 0: none are known */
    uint32_t epoch;
};

/* The examples of an item, into example_out (work->n); then looks for those of the next one, and asks for them. Errors: as
 * shmtrain_order. */
int shmt_ahead_order(struct shmt_ahead *ahead, shmtrain_session *s, const struct shmt_job *job,
                     const struct shmtrain_work *work, uint32_t *example_out);
