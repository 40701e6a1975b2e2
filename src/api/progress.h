/* A run at one moment, from the counters of its seats: for shmtrain_store_look, the listener's `progress` and metrics. Works
 * for runs of this store, and for those that it observes or has joined. */
#ifndef SHMT_API_PROGRESS_H
#define SHMT_API_PROGRESS_H

#include <shmtrain/store.h>

/* Who looks keeps what it saw the last time: speeds are since then. */
struct shmt_watch;
enum { SHMT_WATCH_LISTENER, SHMT_WATCH_METRICS, SHMT_WATCH_CALLER, SHMT_N_WATCHES };

/* Tells the listener, and whoever follows the metrics, when they want to know and the last time is a tenth of a second ago. By
 * the thread that drives the run. */
void shmt_progress_tick(struct shmtrain_store *store);

/* Milliseconds until that is due, at least 1 and at most `most`: whoever waits longer would tell only when an epoch has ended,
 * and of short epochs nothing but their beginnings. */
int shmt_progress_due_ms(const struct shmtrain_store *store, int most);

void shmt_progress_forget(struct shmtrain_store *store); /* frees what was kept */

#endif
