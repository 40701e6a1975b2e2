/* Snapshots for the application (<shmtrain/snapshot.h>): a request of its thread, answered by the one that drives the run,
 * which asks the workers for a pause (backends/shm/pause.c) and copies what they have copied into memory of its own, to be
 * fetched by the application's thread, which waits for it as long as it likes and no longer. Called by run.c (while workers
 * train), calls.c (waiting) and background.c, which says when there is somebody to answer. */
#pragma once

#include <pthread.h>
#include <shmtrain/snapshot.h>
#include <stdbool.h>

#include "keeping/parameters.h"

struct shmt_run;
struct shmt_snapshot;

/* A model of a moment, made on one thread and handed over on another. */
struct shmt_taken {
    struct shmt_declared table[SHMT_MAX_TABLES];
    uint32_t n_tables;
    struct shmt_trained trained;
    uint64_t step;
};

enum shmt_request { SHMT_REQUEST_NONE, SHMT_REQUEST_ASKED, SHMT_REQUEST_ANSWERED };

/* `lock` protects what stands behind it, but `error`, which is the driver's until it has answered. */
struct shmt_snapshots {
    int wake_fd;       /* an eventfd: there is a request; -1 until the application wants some; set by its thread between runs */
    bool asked;        /* the driver's: the workers have been asked, and nothing has come yet */
    uint64_t asked_ns; /* when */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    void (*ring)(const void *arg); /* tells who polls the run that will answer that it has; NULL: nobody does */
    const void *ring_arg;
    bool open;                 /* a run in the background will answer */
    int ended_with;            /* not open: how the last run has ended; 0 also for what was loaded since */
    enum shmt_request request; /* stays, also when nobody waits any more */
    int status;                /* ANSWERED: how */
    struct shmt_taken *taken;  /* status 0: what is to be fetched */
    struct shmt_error error;
};

void shmt_snapshots_init(struct shmt_snapshots *s);
void shmt_snapshots_fini(struct shmt_snapshots *s);

/* Whether runs take some (run.h). Between runs. Errors: _SYSTEM. */
int shmt_snapshots_enable(struct shmt_run *run, bool on);

/* Around a run in the background, which will answer where the application `wants` some: before its thread begins; and at its end, on
 * that thread; `close` also where a run that
 * blocks has ended, and with 0 when the store gets parameters from elsewhere. From then on they are final, or the run has
 * failed. */
void shmt_snapshots_open(struct shmt_snapshots *s, bool wants, void (*ring)(const void *arg), const void *ring_arg);
void shmt_snapshots_close(struct shmt_snapshots *s, int status);

/* By who drives a run, whenever it looks: asks the workers, if there is a request. */
void shmt_snapshots_tick(struct shmt_snapshots *s, const struct shmt_held *held);

/* What the workers have copied, which nobody else is at: for the request, if there is one. `as`: what it is a model of; NULL: it
 * is none. */
void shmt_snapshots_serve(struct shmt_snapshots *s, struct shmt_parameters *params, const struct shmt_snapshot *snapshot,
                          const struct shmt_trained *as);

/* Milliseconds until the next look, at most `most`. */
int shmt_snapshots_due_ms(const struct shmt_snapshots *s, int most);

/* By the application's thread: a snapshot of the run that goes on, if one will answer within so many seconds, else of the
 * parameters as they are. `is_busy`: nobody has been told yet how a run has ended. Errors: as shmtrain_store_snapshot. */
int shmt_snapshots_fetch(struct shmt_snapshots *s, struct shmt_parameters *params, const struct shmt_run *run, double seconds,
                         bool is_busy, struct shmt_taken **out, struct shmt_error *e);
void shmt_taken_free(struct shmt_taken *taken); /* NULL is fine */
