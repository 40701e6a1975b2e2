/* The area under the ROC curve: how likely a random positive example has a higher score than a random negative one. */
#pragma once

#include <stdint.h>

/* Bytes of scratch that shmt_auc needs for n examples: 8 n. */
uint64_t shmt_auc_scratch_bytes(uint64_t n);

/* The exact area (Mann-Whitney's statistic over pairs, a tie counts one half) for n < 2^32 examples: score (n), label (n),
 * positive where label >= threshold. Depends on the order of scores only, not on that of examples, and has the same bits on
 * every machine. NaN when a score is NaN, or when one of the classes has no example. `scratch` is shmt_auc_scratch_bytes(n)
 * bytes of the caller's, aligned as uint32_t; its contents are lost. Radix sort: time proportional to n. */
double shmt_auc(const float *score, const float *label, float threshold, uint64_t n, void *scratch);
