/* Arrays that the application has given to a store, by name; and taking them where they are, instead of loading them into
 * memory of the run's own. Called by table.c (names), running and scoring. Public calls: <shmtrain/arrays.h>. */
#pragma once

#include "loading/load.h"
#include "data/given.h"

/* A list, owned by what loading keeps. */
struct shmt_arrays_kept {
    struct shmt_arrays_kept *next;
    struct shmt_given given;
};

/* What `name` ("arrays:NAME") means; NULL: it is another name. */
const struct shmt_given *shmt_arrays_find(const struct shmt_loading *loading, const char *name);

/* A name that begins as one of arrays, and is none. Errors: _USAGE. */
int shmt_arrays_check_name(struct shmt_loading *loading, const char *name);

/* What shmtrain_store_arrays does. */
int shmt_arrays_give(struct shmt_loading *loading, const char *name, const struct shmtrain_arrays *arrays);

void shmt_arrays_forget(struct shmt_loading *loading);

/* After plan, when the spec is complete but for memory: whether arrays are used as they are (load->in_place); of borrowed ones
 * that are not, a line of the log says why. Does nothing for other sources. `shared`: guests will map the data. */
void shmt_arrays_decide(struct shmt_load *load, const struct shmt_call *call, const struct shmt_config *config,
                        const struct shmt_spec *spec, bool shared);

/* Instead of shmt_load_fill's memory, of a load that is in place. Errors: _MEMORY (weights). */
int shmt_arrays_take(struct shmt_load *load, struct shmt_error *e);

/* Writes the weights that the arrays have into load->weight, when it is there; false: they have none. */
bool shmt_arrays_take_weights(const struct shmt_load *load);
