/* What the files of checkpoints share: names in them, names of them, and the note that says what they are of. */
#pragma once

#include "files/model_read.h"
#include "keeping/checkpoint.h"

/* Tensors beside the tables and the ids. */
#define SHMT_CHECKPOINT_STATE  "%s/state.%u" /* table, plane */
#define SHMT_CHECKPOINT_DONE   "ledger/done"
#define SHMT_CHECKPOINT_LOSS   "ledger/loss"
#define SHMT_CHECKPOINT_CLOCKS "run/clocks"
#define SHMT_CHECKPOINT_EPOCHS "run/epochs"
#define SHMT_CHECKPOINT_POINT  "fit/point"
#define SHMT_CHECKPOINT_DUAL   "fit/dual"
#define SHMT_CHECKPOINT_INNER  "fit/interior"
#define SHMT_CHECKPOINT_PROOFS "fit/epochs"
#define SHMT_EPOCH_COLUMNS     8
#define SHMT_PROOF_COLUMNS     2
#define SHMT_MODEL_FIT         "shmtrain.fit" /* the note of a fit */

/* Tables, their planes and these are no more tensors than a reader takes. */
#define SHMT_CHECKPOINT_MOST_TENSORS (SHMT_MAX_TABLES * (1 + SHMT_MAX_PLANES) + 9)
_Static_assert(SHMT_CHECKPOINT_MOST_TENSORS <= SHMT_MODEL_MOST_TENSORS, "a checkpoint can be read");

/* A record of an epoch as a row of numbers, and back; false: the numbers are none of a record. */
void shmt_checkpoint_put_epoch(const struct shmtrain_epoch *epoch, double row[SHMT_EPOCH_COLUMNS]);
bool shmt_checkpoint_take_epoch(const double row[SHMT_EPOCH_COLUMNS], struct shmtrain_epoch *out);

/* The note: all numbers and words of a checkpoint, as JSON. To be freed; NULL: no memory. */
char *shmt_checkpoint_make_note(const struct shmt_checkpoint *checkpoint);

/* The same back, each in the range that it may have; `name` is the file's, in sentences. Errors: _DATA, _MEMORY. */
int shmt_checkpoint_take_note(const char *name, const char *text, struct shmt_checkpoint *out, struct shmt_error *e);

/* The note of a fit, and back, as the two above; objective and bound of an epoch. */
char *shmt_checkpoint_make_fit_note(const struct shmt_checkpoint_fit *fit);
int shmt_checkpoint_take_fit_note(const char *name, const char *text, struct shmt_checkpoint_fit *out, struct shmt_error *e);
void shmt_checkpoint_put_proof(const struct shmtrain_epoch *epoch, double row[SHMT_PROOF_COLUMNS]);
void shmt_checkpoint_take_proof(const double row[SHMT_PROOF_COLUMNS], struct shmtrain_epoch *out);
bool shmt_checkpoint_are_finite(const double *x, uint64_t n);

/* Checkpoints of a folder by their names: steps, the latest first. To be freed. No folder is an empty one. Errors: _SYSTEM,
 * _MEMORY. */
struct shmt_checkpoint_list {
    uint64_t *step;
    size_t n;
};
int shmt_checkpoint_list(const char *folder, struct shmt_checkpoint_list *out, struct shmt_error *e);

/* For the reason in errno, and what helps. Returns SHMTRAIN_E_SYSTEM. */
int shmt_checkpoint_cannot(const char *folder, const char *remedy, struct shmt_error *e);

/* The path of one of them; out (PATH_MAX). Errors: _SYSTEM: it is too long. */
int shmt_checkpoint_path(const char *folder, uint64_t step, char *out, struct shmt_error *e);

/* It is of the step that its name says. Errors: _DATA. */
int shmt_checkpoint_check_step(const struct shmt_checkpoint_in *in, uint64_t step, struct shmt_error *e);
