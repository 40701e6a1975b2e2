/* The data of a run that was joined: mapped from the files that the maker of the store keeps it in, and checked, because models
 * trust it. Called by join.c. */
#pragma once
#include "loading/split.h"
#include "segment/segment.h"
#include "workers/run.h"

/* Start with {0}. */
struct shmt_guest_data {
    struct shmt_segment segment[2]; /* of training and validation data */
    struct shmtrain_data train, valid;
    struct shmt_split split;
};

/* Maps what the visited store shares and points the job to it, model and settings included. Errors: _USAGE (it keeps its data
 * private; a model that this program has not; damaged), _MEMORY, _SYSTEM. */
int shmt_guest_data_open(struct shmt_guest_data *data, struct shmt_run *run);
void shmt_guest_data_close(struct shmt_guest_data *data); /* {0} is fine */
