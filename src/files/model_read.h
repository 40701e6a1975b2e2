/* Reading model files (model_file.h says what is in one), written by us or by anybody; LIBLINEAR's text is read, too, and looks
 * to the caller as if it were ours (liblinear_read.h).
 *
 * Called by keeping/model_load.c. Nothing in the file is believed: every length and offset is compared with the size of the file
 * before it is used, and what cannot be gives one sentence with the byte or the key. Memory is taken for the header only, and
 * no more of it than the file is long; parameters are read into memory of the caller. */
#pragma once

#include <stdbool.h>

#include "files/model_file.h"
#include "base/log.h"

#define SHMT_MODEL_MOST_TENSORS 384
#define SHMT_MODEL_CHECKPOINT   "shmtrain.checkpoint" /* the note that makes a checkpoint of a model */

#define SHMT_MODEL_RECORD "shmtrain.record" /* the note of a record (recording/record_file.h), which is no model */

struct shmt_model_in;

/* Opens the file, and checks its header and its seal (model_file.h), for which all of it is read. A model that has none is opened,
 * too: older ones and those of other programs (shmt_model_tell_seal). Errors: _SYSTEM (cannot be opened or read), _DATA (no
 * model file, damaged), _MEMORY. */
int shmt_model_open(const char *path, struct shmt_model_in **out, struct shmt_error *e);

/* The same without a look at more than the header: who takes parameters from the file has not seen whether they are right. */
int shmt_model_open_header(const char *path, struct shmt_model_in **out, struct shmt_error *e);
void shmt_model_close(struct shmt_model_in *in); /* NULL is fine */

/* Says in a line that a model has no seal, if it has none; of text, which has no room for one, nothing. */
void shmt_model_tell_seal(const struct shmt_model_in *in, const struct shmt_log *log);

/* What the file notes under `key`; NULL: nothing. Valid until close. */
const char *shmt_model_note(const struct shmt_model_in *in, const char *key);

/* The tables: tensors of F32, in the order in which the header names them; their `data` is NULL. Behind them stands what is no
 * table: ids of features, and in checkpoints what these have beside. Valid until close. */
uint32_t shmt_model_n_tensors(const struct shmt_model_in *in);
uint32_t shmt_model_n_all(const struct shmt_model_in *in);
const struct shmt_tensor *shmt_model_tensor(const struct shmt_model_in *in, uint32_t i);

/* The number of any tensor by its name; false: there is none. */
bool shmt_model_find(const struct shmt_model_in *in, const char *name, uint32_t *out);

bool shmt_model_is_liblinear(const struct shmt_model_in *in);
uint64_t shmt_model_bytes(const struct shmt_model_in *in); /* of the file */

/* Reads tensor i into out (rows, width); or, but of LIBLINEAR's, its elements from .. from + n - 1, which it must have. Errors:
 * _SYSTEM, _DATA (the file is shorter than it was). */
int shmt_model_read_tensor(const struct shmt_model_in *in, uint32_t i, void *out, struct shmt_error *e);
int shmt_model_read_part(const struct shmt_model_in *in, uint32_t i, uint64_t from, uint64_t n, void *out,
                         struct shmt_error *e);

/* The ids of features (SHMT_MODEL_IDS), as many as there are features; false: there are none. Into out (n). */
bool shmt_model_has_ids(const struct shmt_model_in *in, uint64_t *n_out);
int shmt_model_read_ids(const struct shmt_model_in *in, uint64_t *out, struct shmt_error *e);

/* What a sentence can show of a text out of a file: its beginning, with '?' for all that is no printable ASCII. */
const char *shmt_model_show(const char *text, char out[48]);
