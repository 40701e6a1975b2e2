/* What tests/test_seeds.c sees of a run from outside, and what must be true of it whatever the schedule: of what a worker pulls, of what
 * it is told, of the rounds that are closed, of the parameters at the end of each epoch, and of the counters.
 *
 * The arithmetic. Rate 1, sgd. A piece of n examples has a gradient of -n in the float of table 0, so that each update adds 1
 * to it; and of -1 in its examples' own rows of table 1, so that an update of N examples adds 1 / N there, in each epoch once.
 * No two workers change one row of table 1 between two merges, so replicas bring the same however they are merged.
 *
 * Fibers go on one at a time, so nothing here needs an order. A broken promise ends the process (seeds_fail). */
#pragma once

#include "conformance.h"

enum { SEEDS_MOST_EPOCHS = 3, SEEDS_BATCH = 64, SEEDS_MOST_EXAMPLES = SEEDS_BATCH * 5, SEEDS_MOST_SEATS = 8 };

/* Adds the tables to a spec. */
void seeds_watch_tables(struct shmt_spec *spec);

/* Before the workers begin. */
void seeds_watch_begin(struct run *run);

/* The whole piece, by a worker: pulls, pushes, counts the clock. Returns as these. */
int seeds_watch_piece(shmtrain_session *s, const struct shmtrain_work *work);

/* At each point: whether a round was closed, and of whom. */
void seeds_watch_point(void);

/* By each worker, when all have met behind an epoch; of struct run. */
int seeds_watch_epoch_end(shmtrain_session *s, void *arg, uint32_t epoch);

/* When they have ended. */
void seeds_watch_end(void);
