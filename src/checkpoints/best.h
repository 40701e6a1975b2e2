/* The parameters of the epoch with the lowest validation loss (option keep: best). The chief copies them behind the board when an epoch
 * is the best so far (train/evaluate.c); the run ends with them. */
#pragma once

#include "workers/run.h"

/* Room for the copy, if the run keeps one. The spec is complete but for that. Errors: _USAGE, when nothing is validated. */
int shmt_best_plan(struct shmt_run *run, bool validates);

/* When the workers have ended, before anybody reads their parameters. */
void shmt_best_restore(struct shmt_run *run);
