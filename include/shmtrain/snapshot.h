/* Snapshots: a model as it is in the middle of a run, to predict with, evaluate or save while workers train on. */
#ifndef SHMTRAIN_SNAPSHOT_H
#define SHMTRAIN_SNAPSHOT_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* Whether runs from now on can be asked for snapshots (`on` 1 or 0; at first 0). A run that can has room for one: a copy of its
 * parameters and of the optimizer's state in its memory. Errors: _USAGE (a run is going on), _SYSTEM (no file descriptor is
 * left). */
SHMTRAIN_API int shmtrain_store_will_snapshot(struct shmtrain_store *store, int on);

/* Copies what the run of `store` has learned into `into`, another store of the application's: its tables and model become
 * these, as by shmtrain_store_load, and its options stay. A model of the application's that `into` does not know is offered to
 * it; the model's texts must outlive `into`, too. All parameters are of one moment: those of exactly *step_out steps of the run
 * (batches in `sync`, epochs of an exact fit, else items, of all workers together), after which the run has gone on. So
 * *step_out is how old `into` is, next to shmtrain_steps.step or a later snapshot's. NULL: it is not asked for.
 *
 * While a run in the background goes on (shmtrain_store_start, _start_training), from the thread that has it, also in a
 * listener. Waits for at most `seconds` (0: not at all; INFINITY: for as long as it takes), then it is _AGAIN: what has been
 * asked for comes all the same, shmtrain_store_fd is readable then, and the next call fetches it. How long it takes: until the
 * data is loaded, the worker that is slowest at the moment has come to the end of its step (a worker that is stopped does not,
 * until somebody lets it go on), and a checkpoint that is being written is there. Over several hosts (option hosts) it comes
 * at the end of an epoch that another one follows, and each host asks for its own. The workers rest while the run's memory is
 * copied; they do not wait for whoever uses the copy. Who waits in this call hears nothing from listeners meanwhile, such as
 * the note that a worker stands still. A run that writes checkpoints writes none of such a snapshot, unless one is due.
 *
 * When the run has ended well, or none goes on: the parameters as they are, at once; *step_out is 0 where they are not what a
 * run of `store` has left, as after shmtrain_store_load.
 *
 * Errors: _AGAIN (see above), _USAGE (option backend is not `shm`; `store` was not told that it will snapshot; `into` is the
 * same store, or a run of it goes on, or it offers another model of the same name; `seconds`; a call that blocks goes on;
 * `store` has joined another program's run, or has no parameters; a forked child's call), _MEMORY, and what the last run has
 * failed with, until another one begins or a model is loaded. `into` is as it was then. */
SHMTRAIN_API int shmtrain_store_snapshot(struct shmtrain_store *store, struct shmtrain_store *into, double seconds,
                                         uint64_t *step_out);

#ifdef __cplusplus
}
#endif
#endif
