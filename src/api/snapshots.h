/* Snapshots for the application (<shmtrain/snapshot.h>): a request of its thread, answered by the one that drives the run,
 * which asks the workers for a pause (backends/shm/pause.c) and copies what they have copied into memory of its own, to be
 * fetched by the application's thread, which waits for it as long as it likes and no longer. Called by run.c (while workers
 * train), drive.c (waiting) and background.c, which says when there is somebody to answer. */
#ifndef SHMT_API_SNAPSHOTS_H
#define SHMT_API_SNAPSHOTS_H

#include <pthread.h>
#include <shmtrain/snapshot.h>
#include <stdbool.h>

#include "base/error.h"

struct shmt_snapshot;
struct shmt_taken;

enum shmt_request { SHMT_REQUEST_NONE, SHMT_REQUEST_ASKED, SHMT_REQUEST_ANSWERED };

/* `lock` protects what stands behind it, but `error`, which is the driver's until it has answered. */
struct shmt_snapshots {
    bool wanted;       /* runs take some; set by the application's thread between runs */
    int wake_fd;       /* an eventfd: there is a request; -1 until some are wanted; set likewise */
    bool asked;        /* the driver's: the workers have been asked, and nothing has come yet */
    uint64_t asked_ns; /* when */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool open;                 /* a run in the background will answer */
    int ended_with;            /* not open: how the last run has ended; 0 also for what was loaded since */
    enum shmt_request request; /* stays, also when nobody waits any more */
    int status;                /* ANSWERED: how */
    struct shmt_taken *taken;  /* status 0: what is to be fetched */
    struct shmt_error error;
};

void shmt_snapshots_init(struct shmt_snapshots *s);
void shmt_snapshots_fini(struct shmt_snapshots *s);

/* Around a run in the background: before its thread begins, and at its end, on that thread; `close` also where a run that
 * blocks has ended, and with 0 when the store gets parameters from elsewhere. From then on they are final, or the run has
 * failed. */
void shmt_snapshots_open(struct shmtrain_store *store);
void shmt_snapshots_close(struct shmtrain_store *store, int status);

/* By who drives a run, whenever it looks: asks the workers, if there is a request. */
void shmt_snapshots_tick(struct shmtrain_store *store);

/* What the workers have copied, which nobody else is at: for the request, if there is one. */
void shmt_snapshots_serve(struct shmtrain_store *store, const struct shmt_snapshot *snapshot);

/* Readable when there is a request that has not been heard; -1: there never is one. */
int shmt_snapshots_fd(const struct shmtrain_store *store);
void shmt_snapshots_hear(const struct shmtrain_store *store);

/* Milliseconds until the next look, at most `most`. */
int shmt_snapshots_due_ms(const struct shmtrain_store *store, int most);

#endif
