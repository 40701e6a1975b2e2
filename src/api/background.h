/* A run on a thread of the library's own, for applications with an event loop. Called by the few functions of the handle that
 * an application may use meanwhile; the public ones are in background.c: start, start_training, fd, step. */
#ifndef SHMT_API_BACKGROUND_H
#define SHMT_API_BACKGROUND_H

#include <shmtrain/store.h>
#include <stdbool.h>

struct shmt_background;

/* What the application has heard of the run, as of its last step. */
const struct shmtrain_report *shmt_background_report(const struct shmt_background *b);

/* Whether its thread is in this process: not in one that the application has forked meanwhile. */
bool shmt_background_is_here(const struct shmt_background *b);

/* The newest progress; valid until the next call, or step. */
const struct shmtrain_progress *shmt_background_look(struct shmt_background *b);

/* Its descriptor becomes readable. Any thread. */
void shmt_background_poke(const struct shmt_background *b);

/* From now on these are told; on the application's thread. */
void shmt_background_listen(struct shmt_background *b, const struct shmtrain_listener *listener);

/* Stops the run, waits for its end, and frees it; nobody is told anything more. False in a process that the application has
 * forked meanwhile: there is no such thread, and the store is in nobody knows what state. */
bool shmt_background_end(struct shmt_background *b);

#endif
