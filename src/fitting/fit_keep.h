/* Checkpoints of exact fits: between what a fit keeps in its memory (solve/keep.h) and files of it. Called by checkpoints.c and
 * resume.c. */
#pragma once

#include <stdbool.h>

#include "keeping/checkpoint.h"

struct shmt_run;
struct shmt_store;
struct shmt_snapshot;

/* What the run goes on from; NULL: it is no fit's, or there is nothing. */
const struct shmt_checkpoint_fit *shmt_fit_resumes_from(const struct shmt_run *run);

/* Whether there is something to go on from, when the workers have ended where `snapshot` says: then all of it is in the copy. */
bool shmt_fit_can_resume(const struct shmt_run *run, const struct shmt_snapshot *snapshot);

/* The copy, which nobody changes meanwhile, as it is to be written. */
void shmt_fit_fill(const struct shmt_run *run, struct shmt_checkpoint_fit *out);

/* Whether the vectors of a checkpoint are those of this run's data, by their sizes. The run's plan is made. */
bool shmt_fit_suits(const struct shmt_run *run, const struct shmt_checkpoint_fit *with);

/* Before workers begin, behind shmt_fit_begin: vectors and notes into the fit's memory. *out: SHMT_END_TOLERANCE or _PRECISION:
 * nothing is left to do; else SHMT_END_NOT. Where no worker will find out, because of that or because all epochs are `done`, it
 * is checked that the data is what it was. 0, or a status. */
int shmt_fit_restore(struct shmt_run *run, struct shmt_store *made, bool done, uint32_t *out);
