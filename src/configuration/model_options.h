/* Options of models' own: what was set of them, and the texts that a model gets.
 *
 * They are no rows of the table in options.c, but belong to the model that declares them (struct shmtrain_model, `options`). Where a
 * model outlives its run, in a file or for guests, they are one text, "joined": a line NAME=TEXT for each. */
#pragma once

#include "configuration/offered.h"
#include "configuration/options.h"

#define SHMT_MODEL_TEXTS 2048 /* bytes of all texts of a model, joined, with the 0 at the end */

/* For one model. Points into itself: it stays where it is. */
struct shmt_model_texts {
    char joined[SHMT_MODEL_TEXTS];
    char apart[SHMT_MODEL_TEXTS];
    const char *option[SHMTRAIN_MODEL_OPTIONS]; /* what settings.option points to */
    struct shmtrain_model adapted;              /* see shmt_model_adapt */
};

/* Sets an option of the table, or of models: then one of those that have it must take the text, in which line breaks and tabs have
 * become blanks; "" takes back what was set. Errors: _USAGE; _MEMORY. */
int shmt_option_set(struct shmt_config *config, const struct shmt_offered *offered, const char *name, const char *value,
                    struct shmt_error *e);

/* Those of the table and of built-in models that the environment has. Errors: likewise. */
int shmt_options_from_environment(struct shmt_config *config, const struct shmt_offered *offered, struct shmt_error *e);

/* Texts as set, or the model's defaults. Refuses texts that were set for another model, unless the environment has them, and what the
 * model refuses. Errors: _USAGE. */
int shmt_model_texts_of_config(const struct shmt_config *config, const struct shmtrain_model *model,
                               struct shmt_model_texts *out, struct shmt_error *e);

/* The model as these texts of it make it: itself, or one that lies in `texts`. */
const struct shmtrain_model *shmt_model_adapt(const struct shmtrain_model *model, struct shmt_model_texts *texts);

/* The model of this name (NULL: there is none) as the joined texts make it; NULL: there is no such model, or texts are wrong. */
const struct shmtrain_model *shmt_model_of_joined(const struct shmt_offered *offered, const char *name, const char *joined,
                                                  struct shmt_model_texts *room);

/* Texts as joined; defaults for those that are not there. Errors: _DATA, as an end to a sentence. */
int shmt_model_texts_of_joined(const char *joined, const struct shmtrain_model *model, struct shmt_model_texts *out,
                               struct shmt_error *e);
