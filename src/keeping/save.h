/* What a model file says beside its parameters, for who saves models and who writes checkpoints. */
#pragma once

#include "keeping/trained.h"
#include "files/model_file.h"

#define SHMT_N_NOTES       14
#define SHMT_NOTE_TABLE    "shmtrain.csv"     /* how the table was read (csv_note.c) */
#define SHMT_NOTE_SHAPE    "shmtrain.shape"   /* of an example: "1x28x28", channels, height and width */
#define SHMT_NOTE_OPTIONS  "shmtrain.options" /* of the model's own, joined (model_options.h) */
#define SHMT_MOST_OF_CLASS 16                 /* characters of a label with its comma: -1.23456789e-38, */

/* The notes with their texts; the classes are the longest one. Points into itself, and into what it was made of. */
struct shmt_notes {
    char text[SHMT_N_NOTES][32];
    char classes[SHMTRAIN_MAX_CLASSES * SHMT_MOST_OF_CLASS + 1], ties[SHMTRAIN_MAX_CLASSES * SHMT_MOST_OF_CLASS + 1];
    struct shmt_note note[SHMT_N_NOTES];
    uint32_t n;
};

/* Of a model that was trained so; `model` NULL: there are none. */
void shmt_notes_make(const struct shmt_trained *trained, const struct shmtrain_model *model, struct shmt_notes *out);

struct shmt_call;
struct shmt_config;
struct shmt_offered;
struct shmt_parameters;

/* What the calls of these names do. */
int shmt_save_check_format(struct shmt_call *call, const struct shmt_config *config, const char *format);
int shmt_save_will_be(struct shmt_call *call, const struct shmt_config *config, struct shmt_parameters *params,
                      const char *format);
int shmt_save_as(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered, const char *path,
                 const char *format);

/* Whether the format that was promised holds a model like that, of which no weight is looked at. Errors: _USAGE. */
int shmt_save_check(struct shmt_call *call, const struct shmt_parameters *params, const struct shmt_trained *like);
