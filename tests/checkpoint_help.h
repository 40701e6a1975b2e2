/* For tests of checkpoints: one of a run in the middle of its third epoch. */
#pragma once

#include <math.h>

#include "keeping/checkpoint.h"
#include "train/goal.h"

#define ROWS     5
#define N_PIECES 6

static const float VALUE[ROWS] = {0.5f, -1, 2, 3e-30f, 4}, STATE0[ROWS] = {1, 2, 3, 4, 5}, STATE1[ROWS] = {6, 7, 8, 9, 10};
static const float WIDE[6] = {1, 2, 3, 4, 5, 6}, WIDE0[6] = {7}, WIDE1[6] = {8};
static const uint32_t DONE[N_PIECES] = {16, 0, 16, 10, 0, 0};
static const double LOSS[N_PIECES] = {1.5, 0, 2.25, 0, 0, 0};
static const uint64_t CLOCKS[2] = {13, 17}, IDS[4] = {3, 5, 1ull << 60, UINT64_MAX};
static const struct shmtrain_epoch EPOCHS[2] = {{1, 0, 90, 0.25, 0.5, NAN, NAN, NAN, NAN, NAN, 0, 0, 0, {0}},
                                                {2, 0, 90, 0.5, 0.25, 0.375, 0.9, 0.95, NAN, NAN, 0, 0, 0, {0}}};
static const struct shmt_note NOTES[2] = {{"shmtrain.model", "logistic"}, {"shmtrain.features", "4"}};

static struct shmt_checkpoint sample(void) {
    struct shmt_checkpoint c = {
        .at = {.epoch = 2,
               .step = 3,

               .steps_before = 7,
               .n_pieces = N_PIECES,
               .done = DONE,
               .loss = LOSS,
               .n_clocks = 2,
               .clock = CLOCKS,
               .n_records = 2,
               .record = EPOCHS,
               .epoch_seconds = 0.125,
               .seconds = 2.5},
        .spec = {.n_seats = 2,
                 .n_workers = 2,
                 .epochs = 4,
                 .n_examples = 90,
                 .batch = 64,
                 .n_chunks = 4,
                 .item = 16,
                 .policy = {.staleness = SHMT_STALENESS_INF, .merge_every = 3},
                 .order = {.seed = 9000000000000000001, .n_examples = 90, .shuffle = true},
                 .rate = {.base = 0.1f, .kind = SHMT_RATE_COSINE, .power = 0.5f, .every = 3, .factor = 0.3, .epochs = 4},
                 .rule = {.kind = SHMT_RULE_FTRL,
                          .l1 = 1e-9f,
                          .l2 = 0.7f,
                          .momentum = 0.9f,
                          .beta2 = 0.999f,
                          .epsilon = 1e-8f,
                          .beta = 1}},
        .mode = "async",
        .model = "logistic",
        .group = 4,
        .bias = 1,
        .data = {.examples = 90, .features = 4, .nonzeros = 321, .xxh64 = 0xfedcba9876543210},
        .ended_by = SHMT_END_STEPS,
        .n_tables = 2,
        .n_planes = 2,
        .table = {{.table = {.name = "weight", .rows = ROWS, .width = 1}, .value = VALUE, .state = {STATE0, STATE1}},
                  {.table = {.name = "more", .rows = 2, .width = 3}, .value = WIDE, .state = {WIDE0, WIDE1}}},
        .id = IDS,
        .n_ids = 4,
        .note = NOTES,
        .n_notes = 2};
    return c;
}
