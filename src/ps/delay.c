/* Counting delays by size: see delay.h. */
#include "ps/delay.h"

#include <math.h>

#include "base/checked.h"

#define SINGLE 8 /* delays below have a bucket each */
#define PARTS  8 /* of each power of two from there on: a bucket is at most an eighth as wide as its smallest delay is large */

uint32_t shmt_delay_bucket(uint64_t delay) {
    if (delay < SINGLE) return (uint32_t)delay;
    const uint32_t power = 63 - (uint32_t)__builtin_clzll(delay);
    const uint32_t part = (uint32_t)(delay >> (power - 3)) & (PARTS - 1);
    const uint32_t bucket = SINGLE + (power - 3) * PARTS + part;
    return bucket < SHMT_DELAY_BUCKETS ? bucket : SHMT_DELAY_BUCKETS - 1;
}

uint64_t shmt_delay_from(uint32_t bucket) {
    if (bucket < SINGLE) return bucket;
    const uint32_t power = 3 + (bucket - SINGLE) / PARTS, part = (bucket - SINGLE) % PARTS;
    return ((uint64_t)PARTS + part) << (power - 3);
}

uint64_t shmt_delay_to(uint32_t bucket) {
    return bucket + 1 < SHMT_DELAY_BUCKETS ? shmt_delay_from(bucket + 1) - 1 : UINT64_MAX;
}

void shmt_delay_note(struct shmt_delays *delays, uint64_t delay) {
    _Atomic uint32_t *bucket = &delays->bucket[shmt_delay_bucket(delay)];
    /* relaxed, all: one writer, read for display and, when the team has ended, for the report */
    store_relaxed(bucket, load_relaxed(bucket) + 1);
    bump_relaxed(&delays->samples, 1);
    bump_relaxed(&delays->sum, delay);
    if (delay > load_relaxed(&delays->max)) store_relaxed(&delays->max, delay);
}

void shmt_delay_add(struct shmt_delay_sum *sum, const struct shmt_delays *delays) {
    /* relaxed: see shmt_delay_note. Samples are counted from the buckets, so that a quantile always has one. */
    for (uint32_t i = 0; i < SHMT_DELAY_BUCKETS; i++) {
        const uint32_t n = load_relaxed(&delays->bucket[i]);
        sum->bucket[i] += n;
        sum->samples += n;
    }
    sum->sum += load_relaxed(&delays->sum);
    sum->max = shmt_max_u64(sum->max, load_relaxed(&delays->max));
}

double shmt_delay_mean(const struct shmt_delay_sum *sum) {
    return sum->samples > 0 ? (double)sum->sum / (double)sum->samples : NAN;
}

double shmt_delay_quantile(const struct shmt_delay_sum *sum, double q) {
    uint64_t below = 0;
    for (uint32_t i = 0; i < SHMT_DELAY_BUCKETS; i++) {
        below += sum->bucket[i];
        if (sum->bucket[i] > 0 && (double)below >= q * (double)sum->samples)
            return (double)shmt_min_u64(shmt_delay_to(i), sum->max);
    }
    return NAN;
}
