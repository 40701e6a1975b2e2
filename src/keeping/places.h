/* The order of a table's rows: features that occur often have their parameters side by side.
 *
 * In data as it comes, frequent features are scattered over all ids, and each keeps a cache line of 16 parameters for itself.
 * For models to which one column is as another (columns_alike in <shmtrain/model.h>), the columns of loaded data are therefore
 * renumbered by how often they occur: row 0 of table 0 belongs to the most frequent feature. The number that a feature gets is
 * its *place*; rows behind the features (a bias) keep theirs.
 *
 * Workers know places only: the data has them as ids, and the tables have rows in their order. Whoever reads or writes rows
 * from outside means features, and comes through here; the places stand in the store, so that those who map it by name see the
 * same. Called by running/train.c, which makes them, and by all that reads or writes the parameters of a run. */
#pragma once

#include <shmtrain/model.h>
#include <stdbool.h>

#include "base/error.h"
#include "ps/backend_ops.h"

/* Where a backend holds tables. */
struct shmt_held {
    const struct shmt_backend *backend;
    const struct shmt_spec *spec;
    struct shmt_store *store;
    const char *owner; /* the name of the store where it is somebody else's; NULL: it is ours */
};

/* Whether columns of such data are to be renumbered for table 0 of `spec`, which is complete but for that. Pure: not where the
 * model minds, nor where it cannot pay. */
bool shmt_places_are_worthwhile(const struct shmtrain_model *model, const struct shmtrain_data *data,
                                const struct shmt_spec *spec);

/* Whether they may be: where it cannot pay, too, but does no harm. */
bool shmt_places_may_be_used(const struct shmtrain_model *model, const struct shmtrain_data *data,
                             const struct shmt_spec *spec);

/* Bytes that shmt_places_make takes, with its result. */
uint64_t shmt_places_work_bytes(const struct shmtrain_data *data, const struct shmt_spec *spec);

/* The place of each row of a table (rows), to be freed: of the data's columns by count descending, then by id; the others their
 * own. Counted in a sample of the data, the same for every run on it. Takes some milliseconds. Errors: _MEMORY. */
int shmt_places_make(const struct shmtrain_data *data, uint64_t rows, uint32_t **out, struct shmt_error *e);

/* Of store `name`, which somebody else has made: each row has a place of its own. Errors: _USAGE, _MEMORY. */
int shmt_places_check(const char *name, const struct shmt_backend *backend, struct shmt_store *live,
                      const struct shmt_spec *spec, struct shmt_error *e);

/* Rows row .. row + n - 1 of table t, by feature: as the entries `read` and `write` of its
 * operations. Every place is checked before it is used. Errors: theirs; _USAGE when a place is none. */
int shmt_places_read(const struct shmt_held *held, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e);
int shmt_places_write(const struct shmt_held *held, int t, uint64_t row, uint64_t n, const float *in, struct shmt_error *e);

/* A plane of the rule's state of table t, (rows, width) by feature: out of the backend, or into it. While nobody trains. */
int shmt_places_take_state(const struct shmt_held *held, int t, uint32_t plane, float *out, struct shmt_error *e);
int shmt_places_give_state(const struct shmt_held *held, int t, uint32_t plane, const float *in, struct shmt_error *e);

/* All parameters of table t, (rows, width) by feature, into a backend: with state to come, or with one that fits them. */
int shmt_places_give(const struct shmt_held *held, int t, const float *in, bool with_state, struct shmt_error *e);
