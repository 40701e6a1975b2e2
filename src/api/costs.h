/* What a run has cost, worker by worker: time, delays, gradients that came too late; from the counters of the seats, for its
 * report. By whoever made the run, and by those who look at it by name. */
#ifndef SHMT_API_COSTS_H
#define SHMT_API_COSTS_H

#include <shmtrain/report.h>

struct shmtrain_store;

/* What the last report points to; {0} is fine. Part of the store. */
struct shmt_costs {
    double *load_seconds; /* (n_loaded) what each reader's parts of the data have taken */
    uint32_t n_loaded;
    struct shmtrain_worker_report *worker;
    struct shmtrain_delays *bucket;
};

/* Nothing is known of a run any more: another one begins. The report must not be used after this. */
void shmt_costs_forget(struct shmtrain_store *store);

/* Reader i has read for ns[i] more; (n). Without memory nobody knows. */
void shmt_costs_loaded(struct shmtrain_store *store, const uint64_t *ns, uint32_t n);

/* Fills the report's part about it, when the workers have ended; its train_seconds are known. A counter that still grows, as a
 * dead guest has left it, counts up to now_ns (monotonic). Without memory the lists stay empty. */
void shmt_costs_take(struct shmtrain_store *store, uint64_t now_ns);

#endif
