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
 * parameters and of the optimizer's state in its memory. Errors: _USAGE (a run is going on). */
SHMTRAIN_API int shmtrain_store_will_snapshot(struct shmtrain_store *store, int on);

/* Copies what the run of `store` has learned into `into`, another store of the application's: its tables and model become
 * these, as by shmtrain_store_load, and its options stay. All parameters are of one moment: those of exactly *step_out steps
 * of the run (batches in `sync`, else items, of all workers together), after which the run has gone on. So *step_out is how
 * old `into` is, next to shmtrain_steps.step or a later snapshot's. NULL: it is not asked for.
 *
 * While a run in the background goes on (shmtrain_store_start, _start_training), from the thread that has it, also in a
 * listener. Waits until the run trains, and its workers have come to a point between two steps: usually some milliseconds,
 * at most about 0.2 s longer than the longest step. The workers rest while the copy is made; they do not wait for whoever
 * uses it. A run that writes checkpoints writes one of the snapshot, too. When the run has ended well, or none goes on: the
 * parameters as they are.
 *
 * Errors: _USAGE (option backend is not `shm`; `store` was not told that it will snapshot; `into` is the same store, or a
 * run of it goes on; a call that blocks goes on; `store` has joined another program's run; a forked child's call), _MEMORY,
 * and what the run has failed with. `into` is as it was then. */
SHMTRAIN_API int shmtrain_store_snapshot(struct shmtrain_store *store, struct shmtrain_store *into, uint64_t *step_out);

#ifdef __cplusplus
}
#endif
#endif
