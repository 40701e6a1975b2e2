/* What a run takes that nobody names, as far as that is not made in running/spec.c: docs/learning.md has the reasons. */
#pragma once

#include "workers/run.h"

/* Epochs, at most: those of a fit are few, and end by themselves; few examples want more of SGD's than many. model NULL: own worker
 * functions. */
uint64_t shmt_defaults_epochs(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples);

/* Whether steps of SGD are on features on one scale (run->scales): where somebody asks for that, or where nobody has named a size
 * that would mean something else then. Errors: _USAGE, when it was asked for and cannot be. */
int shmt_defaults_scale(struct shmt_run *run, const struct shmtrain_model *model);
