/* From options to the spec of a run. */
#pragma once

#include "workers/run.h"

/* How fast a rate goes down where the options leave it to us. Gradients of single examples are noisy to the end, so their rate
 * goes down by the power 2; that of batches by 0.5. A run can learn no more than its rates sum to, which has a bound for powers
 * above 1: their unit of time is a tenth of the run, but an epoch at least. */
void shmt_rate_settle(const struct shmt_config *c, bool noisy, struct shmt_rate *rate);

/* Whether the options say how it goes down. */
bool shmt_rate_is_named(const struct shmt_config *c);

/* The part of the spec that follows from the options: policy, batches, order, rate. `model` NULL: own worker functions. */
int shmt_spec_of_config(struct shmt_run *run, const struct shmt_crew *crew, const struct shmtrain_model *model,
                        uint64_t n_examples, struct shmt_spec *out);
