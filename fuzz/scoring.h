/* For targets that load models: scores lines with what was loaded, as shmtrain predict does. */
#pragma once

#include <shmtrain/store.h>

#include "fuzz.h"

/* `lines` is LIBSVM text. Checks that each example is handed out in its turn, with a label of the model's. */
void fuzz_score(struct shmtrain_store *store, struct fuzz_file *lines, int probabilities);
