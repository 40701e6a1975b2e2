/* Delay: how many updates of others come between a seat's pull and its push.
 *
 * Backends sample it, once for a work item, and count it here by size, in buckets of the seat's own (no shared word is
 * written). Sizes below 16 have a bucket each, larger ones eight for each power of two. A percentile is told as the end of
 * its bucket: never too small, and too large by less than an eighth. Beyond the last bucket's start, above 2^42, nothing is
 * told apart. Reports add the buckets of all seats. */
#pragma once

#include "ps/backend_ops.h"

/* The bucket of a delay, and the smallest and largest delay of a bucket. Pure. */
uint32_t shmt_delay_bucket(uint64_t delay);
uint64_t shmt_delay_from(uint32_t bucket);
uint64_t shmt_delay_to(uint32_t bucket);

/* By the seat's owner: one sample. */
void shmt_delay_note(struct shmt_delays *delays, uint64_t delay);

/* Sums over seats; plain numbers of whoever reads. */
struct shmt_delay_sum {
    uint64_t samples, sum, max;
    uint64_t bucket[SHMT_DELAY_BUCKETS];
};

/* Adds a seat's samples, as they are at the moment. */
void shmt_delay_add(struct shmt_delay_sum *sum, const struct shmt_delays *delays);

/* NaN without samples. */
double shmt_delay_mean(const struct shmt_delay_sum *sum);

/* The delay that a share q (0 .. 1) of the samples do not exceed: the largest of its bucket, and never more than the largest of
 * all. NaN without samples. */
double shmt_delay_quantile(const struct shmt_delay_sum *sum, double q);
