/* A run at one moment, from the counters of its seats: for shmtrain_store_look, the listener's `progress` and metrics. Works
 * for runs of this store, and for those that it observes or has joined. */
#pragma once

#include <shmtrain/store.h>
#include <stdbool.h>

/* Who looks keeps what it saw the last time: speeds are since then. */
struct shmt_run;

/* Tells the listener, and whoever follows the metrics, when they want to know and the last time is a tenth of a second ago. By
 * the thread that drives the run. */
void shmt_progress_tick(struct shmt_run *run);

/* Milliseconds until that is due, at least 1 and at most `most`: whoever waits longer would tell only when an epoch has ended,
 * and of short epochs nothing but their beginnings. */
int shmt_progress_due_ms(const struct shmt_run *run, int most);

/* For shmtrain_store_look: the run as it is, or was when it was over; valid until the next look. NULL: no memory. */
const struct shmtrain_progress *shmt_progress_look(struct shmt_run *run, bool is_over);

void shmt_progress_forget(struct shmt_run *run); /* frees what was kept */
