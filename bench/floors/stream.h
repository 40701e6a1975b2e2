/* Floors of memory, in one thread: loops that read, write or jump, and do nothing else. */
#pragma once

#include <shmtrain/data.h>
#include <stdint.h>

/* The thread's own time: programs that take the core in between do not count. For work that waits for nobody. */
uint64_t shmt_thread_ns(void);

/* The thread's time for reading these bytes once, by the best of several loops that only read. Up to two ranges. */
struct shmt_ranges {
    const void *at[2];
    uint64_t bytes[2];
};
double shmt_stream_ns(const struct shmt_ranges *b);

/* For writing them once, by the better of two loops. */
double shmt_write_ns(void *at, uint64_t bytes);

/* For one read of a line at random, of n that do not wait for one another. `bytes` at least 64. */
double shmt_random_ns(const void *at, uint64_t bytes, uint64_t n);

/* The floor of an epoch over sparse examples whose parameters no cache holds: reading and writing back the weight of every
 * nonzero, in this order of examples (n_examples), asking early for those to come; the best of several distances. */
double shmt_lines_ns(const struct shmtrain_data *data, const uint32_t *order, float *weight);
