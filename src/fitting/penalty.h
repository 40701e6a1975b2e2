/* L2 for steps of SGD that nobody names, where examples are few: of these an unregularised run learns the noise, too.
 *
 * It is what an exact fit would choose (solve/choose.h) of the features as the run has them, on one scale or not; from all examples, or
 * from a sample of them where those are long; nothing, which a note says, where even a small sample is too much work. The process that
 * makes the run chooses, alone and before there are workers: so the bits do not follow their number. Past the run's time limit it
 * chooses no further. */
#pragma once

#include "workers/run.h"

/* L2 as it was chosen for steps of SGD. */
struct shmt_penalty {
    uint64_t examples;    /* that it was chosen from; 0: it was not */
    uint32_t parts, held; /* they were dealt to, and held out */
    uint32_t fits;
    double loss, l2; /* on examples that were held out; of the objective */
};

/* Whether the run chooses L2 of so many examples. Not for who names a size, and not for parameters that are learned further. */
bool shmt_penalty_is_chosen(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples);

#define SHMT_PENALTY_FEW 20000 /* examples: of more, 20 epochs learn little of the noise */

/* L2 of the spec until it is chosen: more than 0, so that there is room for what L2 needs. */
#define SHMT_PENALTY_TO_COME 1e-6f

/* Chooses, and notes it in the spec and in `run->penalty`; nothing, where nothing is to be chosen. Data is filled, and on one scale.
 * Without memory, or if that is in vain, L2 becomes 0, which a note says. train_example: as in struct shmt_readers. */
int shmt_penalty_choose(struct shmt_run *run, const struct shmtrain_model *model, const struct shmtrain_data *data,
                        const uint32_t *train_example);

/* Another run begins, which has chosen nothing yet. */
void shmt_penalty_forget(struct shmt_run *run);

/* For the report. */
void shmt_penalty_describe(const struct shmt_run *run, struct shmtrain_report *out);
