/* Exact fits (option tolerance): whether a run can be one, and what it needs. The fit itself: train/fit.h. */
#pragma once

#include "loading/load.h"
#include "workers/run.h"

/* Notes whether the run fits exactly (run->fits): it was asked for, or nobody has said how the model is to be learned, and it does not
 * go on from a checkpoint of another run (which is known). Refuses options that a run cannot have that was asked to fit. Before there is
 * a spec. `source`: the data's name. Errors: _USAGE. */
int shmt_fit_check(struct shmt_run *run, const struct shmtrain_model *model, const char *source);

/* Models that can be fitted exactly. */
bool shmt_model_is_fitted(const struct shmtrain_model *model);

/* Whether L2 can be chosen for it; the loss that its fits have. */
bool shmt_fit_may_choose(const struct shmtrain_model *model);
enum shmt_solve_loss shmt_fit_loss_of(const struct shmtrain_model *model);

/* A run of own worker functions never fits. Errors: _USAGE, when it was asked to. */
int shmt_fit_refuse(struct shmt_run *run);

/* Makes room for it in the spec, behind the board. The data is counted. Errors: _USAGE. */
int shmt_fit_plan(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_load *train);

/* Where the run fits, but nobody has asked for that, and there is no memory for it: it does not (true), which a note says. */
bool shmt_fit_give_up(struct shmt_run *run, const struct shmtrain_model *model);

/* What L2 is chosen from: one example from each of n equal stretches, as data is often in an order; n <= all. */
struct shmt_sample {
    uint64_t seed, n, all;
};

/* Example k of it, an index into the data. train_example: as in struct shmt_readers. */
uint64_t shmt_sample_at(const struct shmt_sample *sample, const uint32_t *train_example, uint64_t k);

/* Draws the sample, if the fit chooses from one, and makes exact room for it. The data is there. train_example: as in struct
 * shmt_readers. Errors: _MEMORY. */
int shmt_fit_sample(struct shmt_run *run, const struct shmtrain_data *data, const uint32_t *train_example);

void shmt_fit_free(struct shmt_fit *fit); /* {0} is fine */

/* The store and the data are there: the job fits, if the run does. */
void shmt_fit_begin(struct shmt_run *run);

/* For the report: what the run is to do; and what it has found so far. */
void shmt_fit_describe(const struct shmt_run *run, struct shmtrain_report *out);
void shmt_fit_report(const struct shmt_run *run, struct shmtrain_report *out);

/* L2 by the options, for so many examples. C is LIBLINEAR's: |w|^2 / 2 + C times the sum of losses, of which the squared one (-s 11)
 * has no half. model NULL: own worker functions. */
double shmt_l2_of_config(const struct shmt_config *c, const struct shmtrain_model *model, uint64_t n_examples);
