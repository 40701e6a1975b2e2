/* What this machine can do at best, whatever program runs on it: memory, what processes that share nothing reach together, a
 * cache line's way between two cores, the waking of a sleeper. Each function measures once, by helpers of its own. */
#pragma once

#include <shmtrain/data.h>
#include <stdint.h>

#include "bench/floors/helpers.h"

/* How much of each. */
struct shmt_floor_sizes {
    uint64_t bytes;                 /* of memory that is read and written */
    uint64_t multiplications;       /* a chain of them, in registers */
    uint64_t jumps;                 /* lines read at random */
    uint32_t trips, wakes, matches; /* of one match; the shortest of so many matches counts */
};

struct shmt_floors; /* in shared memory */
struct shmt_floors *shmt_floors_make(const struct shmt_floor_sizes *sizes);
void shmt_floors_free(struct shmt_floors *f);

/* Nanoseconds in which n helpers, each by its own time, read or write all bytes, each an nth: the slowest of them. */
double shmt_floor_read(struct shmt_floors *f, uint32_t n);
double shmt_floor_write(struct shmt_floors *f, uint32_t n);

/* Nanoseconds for a line at random, in small pages, or in transparent huge ones; NaN where the system made none. */
double shmt_floor_random(struct shmt_floors *f);
double shmt_floor_random_huge(struct shmt_floors *f);

/* Two who share nothing, as multiples of one: one's time for its half while the other rests, and while it does the same. The
 * times of both go to *together_ns (may be NULL). */
double shmt_floor_read_factor(struct shmt_floors *f, double *together_ns);
double shmt_floor_compute_factor(struct shmt_floors *f);

/* Nanoseconds of a cache line's way to the other core and back; of waking a sleeper there, and being woken by it. */
double shmt_floor_line(struct shmt_floors *f);
double shmt_floor_wake(struct shmt_floors *f);

/* Nanoseconds of one multiplication and addition in a product of square matrices of n rows, by one thread of OpenBLAS; NaN
 * where there is none. */
double shmt_floor_sgemm(struct shmt_floors *f, uint32_t n);

/* Nanoseconds of the two products of a step of softmax over all rows of dense data, by the best of several tiles; NaN
 * likewise. */
double shmt_floor_products(struct shmt_floors *f, const struct shmtrain_data *data);
