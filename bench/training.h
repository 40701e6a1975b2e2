/* Runs of the library in benches: a built-in model on given data, through the public API, with the epochs timed by the worker
 * that is first in rank.
 *
 * "Independent" are two runs at the same time, on two cores, that share nothing: each trains weights of its own on its half of
 * the data. */
#ifndef BENCH_TRAINING_H
#define BENCH_TRAINING_H

#include <shmtrain/shmtrain.h>

#include "bench.h"

/* One run: what is run, and what its first worker measured. In shared memory. */
struct bench_training {
    const struct shmtrain_model *model;
    struct shmtrain_data data;
    struct shmtrain_settings settings;
    struct bench_meeting *meeting; /* NULL, or: the two independent runs begin each epoch together */
    uint32_t half;                 /* which of them this is */
    bool with_floor;
    double epoch_ns;         /* the shortest epoch, but for the first, which warms up */
    double own_ns, floor_ns; /* in the first worker's own time: the shortest epoch, and the shortest streaming of its bytes */
};

struct bench_how {
    const char *model; /* NULL: the first one */
    const char *workers, *mode, *batch;
    uint32_t group, epochs; /* two epochs at least */
};

struct bench_training *bench_training_make(const struct shmtrain_data *data);
void bench_train(struct bench_training *run, const struct bench_how *how);

struct bench_independent {
    struct bench_meeting meeting;
    struct bench_training *half[2];
    const struct bench_how *how;
};

struct bench_independent *bench_independent_make(const struct shmtrain_data *data);

/* Both halves at once, as `how` says for each of them; the epochs' times are in half[]. */
void bench_train_independent(struct bench_independent *i, const struct bench_how *how);

#endif
