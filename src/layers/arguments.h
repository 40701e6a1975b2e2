/* Reading the arguments of one layer, "32:3:stride=2", as its kind's table says. Called by the chain, for each word of --net. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>

#include "base/error.h"

/* Where in the text something stands: its letters and the column of the first one, from 1. */
struct shmt_layer_text {
    const char *given_as; /* the option: "--net" */
    const char *at;
    uint32_t length, column;
};

/* Whether what is assumed is a value of the argument. */
bool shmt_layer_assumes_well(const struct shmtrain_layer_argument *argument);

/* `text` is the whole word, "conv:32:3:stride=2", whose name was found to be that of layer->kind. Fills layer->argument, and
 * column_out (SHMTRAIN_LAYER_ARGUMENTS) with the places of what was given; of what was not, the place of the name. Errors: _USAGE:
 * no such argument, given twice, missing, not of its type, beyond its bounds; the sentence names option, column and remedy. */
int shmt_layer_read(struct shmt_layer_text text, struct shmtrain_layer *layer, uint32_t *column_out, struct shmt_error *e);
