/* One round of shmtrain bench: every floor and every operation once, in turns. Called by bench.c, in the measuring process. */
#ifndef SHMT_MEASURE_ROUNDS_H
#define SHMT_MEASURE_ROUNDS_H

#include <shmtrain/bench.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/helpers.h"

struct shmt_round_floor {
    char name[48];
    const char *unit;
    double value; /* no finite number: it could not be measured */
};

struct shmt_round_operation {
    char name[48];
    const char *unit, *floor_name;
    double ours, floor;
    bool is_rate; /* more is better */
};

struct shmt_round {
    uint32_t n_floors, n_operations;
    struct shmt_round_floor floor[SHMTRAIN_BENCH_MOST];
    struct shmt_round_operation operation[SHMTRAIN_BENCH_MOST];
};

/* What is measured on: data, text, memory. */
struct shmt_bed;
struct shmt_bed *shmt_bed_make(uint64_t far_bytes, bool quick);
void shmt_bed_measure(struct shmt_bed *bed, struct shmt_round *out);
void shmt_bed_free(struct shmt_bed *bed);

#endif
