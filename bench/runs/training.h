/* Runs of the library in benches: a built-in model on given data, through the public API, with the epochs timed by the worker
 * that is first in rank.
 *
 * "Independent" are two runs at the same time, on two cores, that share nothing: each trains weights of its own on its half of
 * the data. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>

#include "bench/floors/helpers.h"

/* One run: what is run, and what its first worker measured. In shared memory. */
struct shmt_timed {
    const struct shmtrain_model *model;
    struct shmtrain_data data;
    struct shmtrain_settings settings;
    struct shmt_meeting *meeting; /* NULL, or: the two independent runs begin each epoch together */
    uint32_t half;                /* which of them this is */
    bool with_floor;
    double epoch_ns;         /* the shortest epoch, but for the first, which warms up */
    double own_ns, floor_ns; /* in the first worker's own time: the shortest epoch, and the shortest streaming of its bytes */
};

struct shmt_timed_how {
    const char *model; /* NULL: the first one */
    const char *workers, *mode, *batch;
    uint32_t group, epochs; /* two epochs at least */
};

struct shmt_timed *shmt_timed_make(const struct shmtrain_data *data);
void shmt_timed_train(struct shmt_timed *run, const struct shmt_timed_how *how);

struct shmt_independent {
    struct shmt_meeting meeting;
    struct shmt_timed *half[2];
    const struct shmt_timed_how *how;
};

struct shmt_independent *shmt_independent_make(const struct shmtrain_data *data);

/* Both halves at once, as `how` says for each of them; the epochs' times are in half[]. */
void shmt_independent_train(struct shmt_independent *i, const struct shmt_timed_how *how);
