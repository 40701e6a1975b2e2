/* Validation of runs with own worker functions, of which the library knows no model: the application scores, and the library
 * shares the work out, adds up, reports, and ends the run by what it finds. */
#ifndef SHMTRAIN_VALIDATION_H
#define SHMTRAIN_VALIDATION_H

#include <shmtrain/session.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* Scores validation examples first .. first + n - 1 with the parameters as they are: *loss_out becomes the sum of their losses,
 * *right_out the number of right predictions (0 .. n). Both are 0 before.
 *
 * Called in the workers, like the worker function: in their processes, at the end of each epoch, while nobody changes the
 * parameters. There are up to 256 calls in an epoch: it should look at the parameters by shmtrain_view, shmtrain_dot or
 * shmtrain_rows, and not pull (copy) a large table in each. Session calls that take, end or push work are refused (_USAGE). It
 * waits for nobody. It may be called once more for the same examples, when a worker has died. Returns 0, or a negative status,
 * with which the run fails; SHMTRAIN_E_STOPPED and _AGAIN are refused (_USAGE): a run is stopped by shmtrain_store_stop, or a
 * hook. A loss that is not a finite number is _NUMBERS. */
typedef int shmtrain_scorer(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss_out, uint64_t *right_out);

/* What is not used is 0. `size` says which fields the caller's program knows: those of a later version count as 0. */
struct shmtrain_validation {
    uint32_t size;       /* sizeof(struct shmtrain_validation) */
    uint32_t classifies; /* 1: right predictions are counted, and the report has an accuracy */
    uint64_t n_examples; /* 1 to 4294967295; how heavy one is, the application decides: an "example" may be a batch of them */
    shmtrain_scorer *score;
    void *arg;
    const char *name; /* what reports call the data; NULL: "validation" */
};

/* Validates runs of own worker functions (shmtrain_store_run, _start) from now on; copied, `name`, too; NULL: no more. Loss
 * and accuracy of each epoch go to listeners, report and metrics, and options target-loss and patience go by this loss,
 * as with a model. Runs of models do not use it, nor do guests, who wait meanwhile.
 *
 * The examples are cut into at most 256 parts of one size (the last one may be smaller), whatever the number of workers. One
 * worker scores a part in one call, and the parts' losses are added along a tree: so in `sync` the mean has the same bits
 * for every number of workers, threads and guests. Errors: _USAGE (a run is going on; size, n_examples, no function),
 * _MEMORY. */
SHMTRAIN_API int shmtrain_store_validate(struct shmtrain_store *store, const struct shmtrain_validation *validation);

#ifdef __cplusplus
}
#endif
#endif
