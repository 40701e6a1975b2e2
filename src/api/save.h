/* What a model file says beside its parameters, for who saves models and who writes checkpoints. */
#ifndef SHMT_API_SAVE_H
#define SHMT_API_SAVE_H

#include "api/trained.h"
#include "train/model_file.h"

#define SHMT_N_NOTES       12
#define SHMT_NOTE_TABLE    "shmtrain.csv" /* how the table was read (csv_note.c) */
#define SHMT_MOST_OF_CLASS 16             /* characters of a label with its comma: -1.23456789e-38, */

/* The notes with their texts; the classes are the longest one. Points into itself, and into what it was made of. */
struct shmt_notes {
    char text[SHMT_N_NOTES][32];
    char classes[SHMTRAIN_MAX_CLASSES * SHMT_MOST_OF_CLASS + 1], ties[SHMTRAIN_MAX_CLASSES * SHMT_MOST_OF_CLASS + 1];
    struct shmt_note note[SHMT_N_NOTES];
    uint32_t n;
};

/* Of a model that was trained so; `model` NULL: there are none. */
void shmt_notes_make(const struct shmt_trained *trained, const struct shmtrain_model *model, struct shmt_notes *out);

#endif
