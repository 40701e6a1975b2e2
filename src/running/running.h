/* Runs, from a configured store to ended workers: of own worker functions (run.c), and of models on data (train.c). */
#pragma once

#include "workers/run.h"

/* What shmtrain_store_run and _train do between enter and leave: of a worker function, and of a model on data. */
int shmt_run_function(struct shmt_run *run, shmtrain_worker *worker, void *arg);
int shmt_run_training(struct shmt_run *run, const char *data);
