/* Merging the copies of many hosts, where all meet to merge (merge.h, "together"): each host says what its own copies come to, its part,
 * and every host merges the parts of all. Works on any memory.
 *
 * m is the master's word, the same on all hosts; r a copy's. Of a host's copies c have changed the word: its bits are not m's.
 *
 *     part      c = 1                 r
 *               c > 1   mean, average sum of these r
 *                       sum           sum of these (r - m)
 *     merged    nobody has changed it m
 *               one copy of all has   r
 *               mean, average         sum of the parts / sum of their c
 *               sum                   m + sum of the changes
 *
 * So a copy counts as much as any other, however many its host has, and the parameters are those that one host with all copies would
 * have, but for the rounding of the sums: parts are added up in the order of ranks, copies in theirs. Where each host has one copy these
 * are the same sums, and so the same bits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "update/merge.h"

#define SHMT_PART_FLOATS 256
#define SHMT_MOST_COPIES 255 /* of a host: c is a byte */

struct shmt_merge_part {
    float value[SHMT_PART_FLOATS];
    uint8_t count[SHMT_PART_FLOATS]; /* c; of 0 the value has no meaning */
};

/* What the n_replicas <= SHMT_MOST_COPIES copies of n words come to, in out->value[first ..]; count is 0 there before. Who writes them
 * rests. false: none has changed any, and nothing is written. */
bool shmt_merge_part_take(struct shmt_merging how, const float *master, float *const *replica, uint32_t n_replicas, uint64_t n,
                          uint64_t first, struct shmt_merge_part *out);

/* What the parts of all hosts, in the order of ranks, make of n words of the master, whose values are in part->value[first ..]. A host
 * that has changed none of them may be left out. */
void shmt_merge_parts(struct shmt_merging how, const float *master, const struct shmt_merge_part *part, uint32_t n_parts,
                      uint64_t n, uint64_t first, float *restrict out);
