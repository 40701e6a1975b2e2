/* Calling the application's hooks from a session: see <shmtrain/hooks.h>. Whoever runs workers gives each session the hooks, or
 * NULL, which costs a branch for a step. */
#pragma once

#include <shmtrain/hooks.h>

/* Constant while workers run. */
struct shmt_hooks {
    struct shmtrain_hooks of;
    void (*ask_stop)(void *arg); /* the run (a guest: its part in it) is to end at its next consistent point; from any worker */
    void *stop_arg;
};

/* Each: 0, or a negative status whose sentence is the session's. The session has hooks; those that are NULL do nothing. */
int shmt_hooks_before_step(shmtrain_session *s);
int shmt_hooks_after_step(shmtrain_session *s, const struct shmtrain_fate *fate);
int shmt_hooks_before_epoch(shmtrain_session *s); /* whenever it is about to ask for work: calls it once for each epoch */
int shmt_hooks_after_epoch(shmtrain_session *s);
