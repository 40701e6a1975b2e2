/* Hooks: functions of the application that are called before and after each step and each epoch of a run, in the workers, as
 * the hooks of TensorFlow's monitored sessions are. For watching, timing, stopping and changing what worker code does without
 * touching it: a model that is built in, or one's own worker function.
 *
 * Where they run. In every worker: in its process (`spawn` processes: forked when the run begins, so what `arg` points to is
 * the worker's own copy, and what several workers or the application are to see has to lie in shared memory), on the thread
 * that has the session. Threads of a worker, and workers that are threads (`spawn` threads), call them at the same time, with
 * the same `arg`. A worker that joins by name calls the hooks of the program that has joined. For the application's own process
 * there is struct shmtrain_listener, whose `epoch`, `checkpoint` and `progress` nobody waits for.
 *
 * What they may do. Session calls that look (shmtrain_view, _pull, _dot, _rows, _rank, ...), always; before_step also those that
 * push, but not to a table whose gradient the model borrows (shmtrain_lend), as softmax does. They must not call shmtrain_next,
 * _clock, _report or _lend. They should not wait: the step, and at the end of an epoch everybody, waits for them. A worker that
 * died and was started again calls them again, with `life` in the work item.
 *
 * What they return. 0: go on. 1 (or any positive number, or SHMTRAIN_E_STOPPED): the run is to end at its next consistent
 * point, as by shmtrain_store_stop, and has ended well then. From after_epoch of rank 0 that point is this one; from any other
 * worker perhaps one that lies in the next epoch. A worker that has joined by name leaves then, and the run goes on. Any other
 * negative status: the run fails with it, as if the worker function had returned it, with the sentence of the session call that
 * failed, if one did, or of shmtrain_fail. */
#ifndef SHMTRAIN_HOOKS_H
#define SHMTRAIN_HOOKS_H

#include <shmtrain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each may be NULL; a run without hooks pays one branch for a step. */
struct shmtrain_hooks {
    uint32_t size; /* sizeof(struct shmtrain_hooks) */
    void *arg;

    /* A work item was handed out to this worker, and nothing was done for it yet. */
    int (*before_step)(void *arg, shmtrain_session *s, const struct shmtrain_work *work);

    /* It is complete: pushed, with the waiting that the mode asks for. The item is not in hand any more. */
    int (*after_step)(void *arg, shmtrain_session *s, const struct shmtrain_work *work, const struct shmtrain_fate *fate);

    /* This worker is about to ask for its first work item of epoch `epoch`, from 0. Others may be in it already. */
    int (*before_epoch)(void *arg, shmtrain_session *s, uint32_t epoch);

    /* All workers have done epoch `epoch` (or as much of it as a stop has left), and have evaluated it: the parameters are
     * quiet until this has returned in all workers. */
    int (*after_epoch)(void *arg, shmtrain_session *s, uint32_t epoch);
};

#ifdef __cplusplus
}
#endif
#endif
