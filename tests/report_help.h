/* For tests of reports: an ordinary one. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <shmtrain/report.h>

#include "deadline.h"

static const struct shmtrain_epoch TWO_EPOCHS[] = {{.epoch = 1,
                                                    .examples = 32561,
                                                    .seconds = 0.0625,
                                                    .train_loss = 0.375,
                                                    .valid_loss = 0.34375,
                                                    .valid_accuracy = 0.84375,
                                                    .valid_auc = 0.8984375},
                                                   {.epoch = 2,
                                                    .partial = 1,
                                                    .examples = 1024,
                                                    .seconds = 0.03125,
                                                    .train_loss = 0.328125,
                                                    .valid_loss = NAN,
                                                    .valid_accuracy = NAN,
                                                    .valid_auc = NAN}};

static const struct shmtrain_delays TWO_BUCKETS[] = {{.from = 0, .to = 0, .samples = 3},
                                                     {.from = 1024, .to = 1151, .samples = 1}};
static const struct shmtrain_delay TWO_DELAYS = {
    .samples = 4, .mean = 256, .p50 = 0, .p99 = 1024, .max = 1024, .clocks = 0.25, .bucket = TWO_BUCKETS, .n_buckets = 2};

static const struct shmtrain_worker_report TWO_WORKERS[] = {{.examples = 22390,
                                                             .compute_seconds = 0.0625,
                                                             .wait_seconds = 0.03125,
                                                             .load_seconds = 0.25,
                                                             .delay = 512,
                                                             .n_waited_for = 1,
                                                             .waited_for = {{.worker = 1, .seconds = 0.03125}}},
                                                            {.examples = 11195,
                                                             .joined = 1,
                                                             .compute_seconds = 0.09375,
                                                             .evaluate_seconds = 0.125,
                                                             .checkpoint_seconds = 0.25,
                                                             .load_seconds = NAN,
                                                             .delay = NAN}};

static struct shmtrain_report ordinary(void) {
    return (struct shmtrain_report){.size = sizeof(struct shmtrain_report),
                                    .mode = "async",
                                    .write = "racy",
                                    .backend = "shm",
                                    .model = "logistic",
                                    .optimizer = "sgd",
                                    .schedule = "inverse",
                                    .staleness = UINT64_MAX,
                                    .quorum = 8,
                                    .late = "",
                                    .replicas = "one",
                                    .n_replicas = 1,
                                    .hosts = 1,
                                    .merge = "",
                                    .mode_reason = "",
                                    .stopped_by = "",
                                    .slow = "",
                                    .with_accuracy = 1,
                                    .with_auc = 1,
                                    .workers = 8,
                                    .threads = 1,
                                    .n_epochs = 2,
                                    .stopped = 1,
                                    .batch = 256,
                                    .item = 1024,
                                    .seed = 1,
                                    .rate = 0.0625,
                                    .l2 = 0,
                                    .dataset = {"a9a", 32561, 123, 451592, 0, {0}},
                                    .valid = {"a9a.t", 16281, 123, 225776, 0, {0}},
                                    .best_loss = NAN,
                                    .epoch = TWO_EPOCHS,
                                    .seconds = 1.5,
                                    .load_seconds = 0.25,
                                    .train_seconds = 0.09375,
                                    .first_step_seconds = 0.5,
                                    .examples = 33585,
                                    .updates = 33585,
                                    .examples_per_second = 358240,
                                    .wait_fraction = 0.125,
                                    .respawns = 3,
                                    .redone = 256,
                                    .skipped = 64,
                                    .stalls = 2,
                                    .checkpoints = 3,
                                    .checkpoint_seconds = 0.125,
                                    .waits_mostly_for = 1,
                                    .delay = TWO_DELAYS,
                                    .worker = TWO_WORKERS,
                                    .n_workers = 2,
                                    .lost_updates = NAN,
                                    .lost_lowest = NAN,
                                    .lost_highest = NAN,
                                    .numa_nodes = 1,
                                    .numa = "off",
                                    .page_bytes = 4096,
                                    .cpu = "avx2",
                                    .blas = "",
                                    .parameter_bytes = 496,
                                    .parameters_xxh64 = 0x0123456789abcdef};
}

/* ---- JSON ---- */

#define TEST(f) cmocka_unit_test_setup(f, deadline)
