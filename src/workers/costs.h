/* What a run has cost, worker by worker: time, delays, gradients that came too late; from the counters of the seats, for its
 * report. By whoever made the run, and by those who look at it by name. */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>

struct shmt_run;

/* What the last report points to; {0} is fine. */
struct shmt_costs {
    double *load_seconds; /* (n_loaded) what each reader's parts of the data have taken */
    uint32_t n_loaded;
    bool of_others; /* it is a run that somebody else has made: what its workers have read is unknown */
    struct shmtrain_worker_report *worker;
    struct shmtrain_delays *bucket;
};

/* Nothing is known of a run any more: another one begins. The report must not be used after this. */
void shmt_costs_forget(struct shmt_run *run);

/* Reader i has read for ns[i] more; (n). Without memory nobody knows. */
void shmt_costs_loaded(struct shmt_run *run, const uint64_t *ns, uint32_t n);

/* Fills the report's part about it, when the workers have ended; its train_seconds are known. A counter that still grows, as a
 * dead guest has left it, counts up to now_ns (monotonic). Without memory the lists stay empty. */
void shmt_costs_take(struct shmt_run *run, uint64_t now_ns);
