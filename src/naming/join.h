/* Joining a run by name, as workers: see join.c. */
#pragma once

#include <shmtrain/store.h>

struct shmt_run;

/* What shmtrain_store_join does between enter and leave. */
int shmt_join(struct shmt_run *run, const char *name, shmtrain_worker *worker, void *arg);
