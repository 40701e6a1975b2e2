/* A run on a thread of the library's own, for applications with an event loop. Called by the
 * functions of the handle that an application may use meanwhile (calls.c). */
#pragma once

#include <shmtrain/store.h>
#include <stdbool.h>

struct shmt_background;
struct shmt_run;

/* Starts the store's run on a thread of its own: of `worker`, or, where `data` is not NULL, training on it. Errors: _MEMORY, _SYSTEM. */
int shmt_background_start(struct shmtrain_store *store, struct shmt_run *run, shmtrain_worker *worker, void *arg,
                          const char *data, struct shmt_background **out);

/* Readable when there is something to step for. */
int shmt_background_fd(const struct shmt_background *b);

/* What the application has heard of the run, as of its last step. */
const struct shmtrain_report *shmt_background_report(const struct shmt_background *b);

/* Whether its thread is in this process: not in one that the application has forked meanwhile. */
bool shmt_background_is_here(const struct shmt_background *b);

/* The newest progress; valid until the next call, or step. */
const struct shmtrain_progress *shmt_background_look(struct shmt_background *b);

/* From now on these are told; on the application's thread. */
void shmt_background_listen(struct shmt_background *b, const struct shmtrain_listener *listener);

/* Tells what has happened. False: the run has ended, and so has this; *status_out: how. True: it goes on, and that is 1. */
bool shmt_background_step(struct shmt_background *b, int *status_out);

/* Waits for the end of a run that has been told to stop, and frees it; nobody is told anything more. */
void shmt_background_end(struct shmt_background *b);
