/* Reading LIBLINEAR's model files (model_text.h says what is in one). Only for model_read.c, which shows them to its callers as
 * if they were ours: as notes, and a tensor "weight".
 *
 * What differs is turned round: classes ascend, and of two labels the larger one has the positive scores. A bias is what its
 * feature's weight is for the value that the header names. Nothing in the file is believed: it is refused with the line. */
#pragma once

#include <shmtrain/data.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct shmt_liblinear {
    const char *name;  /* of the file, for sentences; the caller's */
    const char *model; /* ours, that scores alike */
    uint64_t n_features;
    uint32_t n_labels, n_outputs;         /* labels 0: a regression */
    uint32_t n_columns;                   /* weights in each line */
    int32_t label[SHMTRAIN_MAX_CLASSES];  /* (n_labels) in the file's order */
    uint16_t place[SHMTRAIN_MAX_CLASSES]; /* (n_labels) where each stands among them when they ascend */
    bool has_bias;
    double bias;                  /* what every example has for its last feature */
    uint64_t body_off, body_line; /* the first line of weights, and its number */
};

/* Whether a file that begins with these bytes is meant to be one. */
bool shmt_liblinear_begins(const char *bytes, uint64_t n);

/* Reads the header of a file of so many bytes. Errors: _DATA, _SYSTEM. */
int shmt_liblinear_open(int fd, uint64_t file_bytes, const char *name, struct shmt_liblinear *out, struct shmt_error *e);

/* The weights: (n_features + has_bias, n_outputs) into out, as our models have them. Errors: _DATA, _SYSTEM. */
int shmt_liblinear_weights(const struct shmt_liblinear *in, int fd, float *out, struct shmt_error *e);
