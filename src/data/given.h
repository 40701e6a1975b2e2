/* Arrays of the application as a source (source.h): "arrays:NAME". Called by source.c, and by loading/arrays.c, which keeps what
 * the application has given, and lets runs take arrays where they are. */
#pragma once

#include <shmtrain/arrays.h>
#include <stdbool.h>

#include "data/source.h"

#define SHMT_GIVEN_PREFIX "arrays:"
#define SHMT_GIVEN_NAME   48 /* with the prefix, and the final 0 */

struct shmt_given {
    char name[SHMT_GIVEN_NAME];
    struct shmtrain_arrays of; /* stride is set; pointers are the caller's, or into `own` */
    void *own;                 /* not NULL: all of them in memory of the library, ... */
    uint64_t first, stride;    /* ... from the caller's entry `first` on, whose rows had this stride: for messages */
};

/* Pointers and sizes; sets both strides. Errors: _USAGE. */
int shmt_given_check(struct shmt_given *given, struct shmt_error *e);

/* The bytes of a copy; UINT64_MAX: too many. */
uint64_t shmt_given_copy_bytes(const struct shmt_given *given);

/* Copies the arrays into memory of the library's, in the form that runs can take without another copy: dense rows without gaps,
 * entries from 0 on, ids in 32 bits where they fit. What has been checked is enough for that. Errors: _MEMORY, _DATA. */
int shmt_given_copy(struct shmt_given *given, struct shmt_error *e);
void shmt_given_free(struct shmt_given *given);

/* As the other kinds of source_priv.h. `given` stays until the source is closed. `labelled`: labels are needed, else they
 * are not looked at. Errors: _USAGE (there are no labels), _MEMORY. */
int shmt_given_open(const struct shmt_given *given, bool labelled, struct shmt_source **out, struct shmt_error *e);

/* What a source of this kind reads; NULL: it is of another kind. */
const struct shmt_given *shmt_given_of(const struct shmt_source *source);
