/* Exact fits (option tolerance): whether a run can be one, and what it needs. The fit itself: train/fit.h. */
#ifndef SHMT_API_FIT_H
#define SHMT_API_FIT_H

#include "api/load.h"
#include "api/store_priv.h"

/* Notes whether the run fits exactly, and refuses options that such a run cannot have. Before there is a spec. Errors: _USAGE. */
int shmt_fit_check(struct shmtrain_store *store, const struct shmtrain_model *model);

/* The same of a run of own worker functions, which never does. */
int shmt_fit_refuse(struct shmtrain_store *store);

/* Makes room for it in the spec, behind the board. The data is counted. Errors: _USAGE. */
int shmt_fit_plan(struct shmtrain_store *store, const struct shmtrain_model *model, const struct shmt_load *train);

/* The store and the data are there: the job fits, if the run does. */
void shmt_fit_begin(struct shmtrain_store *store);

/* L2 by the options, for so many examples. C is LIBLINEAR's: |w|^2 / 2 + C times the sum of losses, of which the squared one (-s 11)
 * has no half. model NULL: own worker functions. */
double shmt_l2_of_config(const struct shmt_config *c, const struct shmtrain_model *model, uint64_t n_examples);

#endif
