/* A session: one worker's handle, which turns the public calls into spans, kernels and backend entries.
 *
 * It is entered and left by whoever runs workers; the calls that worker code makes are declared in <shmtrain/session.h>. */
#pragma once

#include <shmtrain/session.h>
#include <stdbool.h>

#include "coll/member.h"
#include "ps/backend_ops.h"
#include "ps/hooks.h"
#include "ps/pull_cache.h"
#include "ps/slow.h"
#include "update/race.h"
#include "update/kernels.h"

/* Called in every worker when an epoch is over and all have met: parameters are quiet until it has returned in all of them. A
 * negative status ends the run. */
typedef int shmt_epoch_end(shmtrain_session *s, void *arg, uint32_t epoch);

struct shmt_binding {
    bool bound, pushed;
    bool hooked;       /* pushed by the hook before_step */
    const float *lent; /* the buffer that was lent for this item; NULL: none */
    int live;
    struct shmt_span span;
};

/* Rings after every N steps that a seat has done (`every`). In `sync` a step is a batch, which the seat with the first chunk
 * counts for all. Private to the seat. */
struct shmt_bell {
    uint64_t every, done;
    void (*ring)(void *arg);
    void *arg;
};

struct shmtrain_session {
    const struct shmt_backend *backend;
    struct shmt_store *store;
    struct shmt_seat *seat;
    const struct shmt_spec *spec;
    const struct shmt_kernels *with_values, *all_ones;
    const struct shmt_kernels *of_statistics; /* for dense pushes: plain steps */
    struct shmt_binding table[SHMT_MAX_TABLES];
    struct shmtrain_work work;
    bool in_work;                       /* between next and clock */
    float delay;                        /* staleness-aware: of this item's gradient, at least 1; 0: not pushed yet */
    bool over;                          /* next has returned 0 */
    const char *inside;                 /* the function that runs and must take no work: a hook, a model's; NULL: none does */
    bool in_step;                       /* it is a model's step, which may lend */
    const struct shmt_binding *counted; /* live modes: the table whose pushes of this item count as updates; NULL: none yet */
    struct shmt_update update;          /* what this step is made with */
    struct shmt_slow *slow;             /* of whoever has entered; NULL: the worker is not slowed down */
    struct shmt_race race;              /* of a run that widens the race */
    struct shmt_pull_cache *cache;      /* what the items read; NULL: the parameters themselves */
    struct shmt_bell *bell;             /* likewise; NULL: nobody listens */
    const struct shmt_hooks *hooks;     /* the application's, likewise; NULL: none */
    uint32_t epoch;
    uint32_t begun;            /* with hooks: the epoch that before_epoch was called for, plus 1 */
    shmt_epoch_end *epoch_end; /* NULL: nothing happens */
    void *epoch_end_arg;
    void (*copy)(shmtrain_session *s, void *arg); /* my part of what belongs to a snapshot besides; NULL: nothing does */
    void *copy_arg;
    void (*kept)(void *arg); /* by the chief, when a snapshot is there to be read; NULL: nobody is told */
    void *kept_arg;
    double loss;            /* what was reported for the item in hand */
    void *workspace;        /* the model's, of whoever has entered; NULL: none */
    struct shmt_coll *coll; /* collectives; NULL: none was called yet */
    struct shmt_error error;
};

/* `spec` must outlive the session. Error sentences of a failing call are found in s->error. */
int shmt_session_enter(struct shmtrain_session *s, const struct shmt_backend *backend, struct shmt_store *store,
                       const struct shmt_spec *spec, uint32_t rank, uint32_t life, struct shmt_error *e);
void shmt_session_leave(struct shmtrain_session *s);

/* A guest's first step: waits until it is let in. Afterwards the session is over where the run has ended meanwhile. */
int shmt_session_admit(struct shmtrain_session *s);

/* I begin a stage that shmt_session_meet will end: what of it is left to do for this life. */
enum shmt_task shmt_session_stage(struct shmtrain_session *s, enum shmt_run_stage stage);

/* The status with which the run may end, from what a function of the application has returned. _STOPPED only if a session call
 * has returned it: else the others would wait for ever for a worker that leaves although nothing was stopped. Never _AGAIN.
 * `whose`: "a worker". */
int shmt_session_judge(shmtrain_session *s, const char *whose, int rc);

/* The same for a function that runs within the work of another one (`inside` has named it until now): 0, or the status of its
 * failure, even if it has not passed that on. _USAGE: it has returned a positive number. */
int shmt_session_take_result(shmtrain_session *s, const char *whose, int rc);

/* Refuses `call` while a function runs that must take no work. */
int shmt_session_check_inside(shmtrain_session *s, const char *call);

/* Ends an epoch, or the part of one before a pause: no seat has work any more. 1: the run goes on, 0: it is over. shmtrain_next
 * calls it; others only where they take no work by shmtrain_next. */
int shmt_session_end_leg(struct shmtrain_session *s);

/* All meet, outside the epoch's end too; may wait, and the wait does not count as one of training. */
int shmt_session_meet(shmtrain_session *s);
