/* Weights of examples from a file: text with one number of at least 0 in each line, in the order of the examples. Blank lines
 * and comments (from "#" on) are no weights, as in LIBSVM text.
 *
 * Called by whoever loads training data: once to check the file, before any memory is made, and once to read it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Reads n_examples weights into out (n_examples); NULL: only checks the file. Errors: SHMTRAIN_E_DATA ("FILE:LINE:COLUMN: what
 * was expected, what was found"; another number of weights), _USAGE (a directory, a pipe), _SYSTEM, _MEMORY. */
int shmt_weights_read(const char *path, uint64_t n_examples, float *out, struct shmt_error *e);
