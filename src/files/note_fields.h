/* Notes in files: the fields of a struct as JSON, written and read by one table (base/bounded.h). What is read is believed in
 * nothing: a field that is missing, of another kind or beyond its bounds is one sentence that names the file, the note and it. */
#pragma once

#include <jansson.h>

#include "base/bounded.h"
#include "base/error.h"

/* Adds a field of this struct. 0, or -1: no memory, or a number that JSON has not. */
int shmt_note_put(json_t *note, const struct shmt_bounded *field, const void *whole);

/* The text, to be freed; NULL: `rc` is not 0, or there is no memory. It takes the note. */
char *shmt_note_text(json_t *note, int rc);

/* A note that is read, and where from. */
struct shmt_note_in {
    const char *file, *key;
    json_t *note;
};

/* Opens in->note, to be given to json_decref, from its text. Errors: _DATA. */
int shmt_note_open(struct shmt_note_in *in, const char *text, struct shmt_error *e);

/* Sets the field in this struct. Errors: _DATA. */
int shmt_note_take(const struct shmt_note_in *in, const struct shmt_bounded *field, void *whole, struct shmt_error *e);

/* The sentence about a field. Returns SHMTRAIN_E_DATA. */
int shmt_note_refuse(const struct shmt_note_in *in, const char *field, const char *why, struct shmt_error *e);
