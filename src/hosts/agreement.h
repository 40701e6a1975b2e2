/* What all hosts of a run must have alike, so that their replicas stay equal and they end together. */
#pragma once

#include "hosts/facts.h"

struct shmt_run;
struct shmtrain_data;
struct shmtrain_model;

/* Whether a mode was asked for in which an update is of some of all hosts' workers, so that hosts have told how many they have. */
#define SHMT_FACT_QUORUM "quorum of all hosts' workers"

struct shmt_agreed {
    const struct shmtrain_model *model;        /* NULL: an own worker function */
    const struct shmtrain_data *train, *valid; /* as they were loaded; NULL: none */
    double valid_share;                        /* of the training data */
};

/* Of a run that is settled, its parameters included. */
void shmt_agreement_state(struct shmt_run *run, const struct shmt_agreed *what, struct shmt_facts *out);
