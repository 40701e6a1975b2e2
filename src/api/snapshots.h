/* Snapshots for the application (<shmtrain/snapshot.h>): a request of its thread, answered by the one that drives the run,
 * which asks the workers for a pause (backends/shm/pause.c) and copies what they have copied. Called by run.c (tick, while
 * workers train) and background.c, which says when there is somebody to answer. */
#ifndef SHMT_API_SNAPSHOTS_H
#define SHMT_API_SNAPSHOTS_H

#include <pthread.h>
#include <shmtrain/snapshot.h>
#include <stdbool.h>

#include "base/error.h"

/* `lock` protects all but `wanted`, which the application's thread sets between runs, and `asked`, which is the driver's. */
struct shmt_snapshots {
    bool wanted; /* runs take some */
    bool asked;  /* the workers have been asked, and nothing has come yet */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool open;                   /* a run in the background will answer */
    int ended_with;              /* not open: how the last one has ended */
    struct shmtrain_store *into; /* the request; NULL: there is none */
    int status;                  /* the answer */
    uint64_t step;
    struct shmt_error error;
};

void shmt_snapshots_init(struct shmt_snapshots *s);
void shmt_snapshots_fini(struct shmt_snapshots *s);

/* Around a run in the background: before its thread begins, and at its end, on that thread, which answers what is still
 * asked. */
void shmt_snapshots_open(struct shmtrain_store *store);
void shmt_snapshots_close(struct shmtrain_store *store, int status);

/* By who drives a run, ten times a second at least. */
void shmt_snapshots_tick(struct shmtrain_store *store);

/* Milliseconds until the next look, at most `most`. */
int shmt_snapshots_due_ms(const struct shmtrain_store *store, int most);

#endif
