/* shmtrain bench: what this machine can do at best, and what the library makes of it. Called by the command (cli/bench.c).
 *
 * All is measured in turns, round by round. A round gives one value to each floor and to each operation; an operation's share
 * of its floor is worked out within the round. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/floors/figure.h"

/* A floor: what the machine does whatever runs on it. Or an operation of the library and the floor that it stands on, both in
 * `unit`. */
struct shmt_bench_line {
    char name[48];                /* "streaming read, 1 process", "sparse epoch, 1 worker" */
    const char *unit, *on;        /* "ns/example"; the floor's name, "streaming its bytes" (a floor: NULL) */
    bool is_rate;                 /* an operation: more is better */
    double now, floor_now;        /* in this round; no finite numbers: they could not be measured */
    struct shmt_figure of, floor; /* over all rounds that count */
    struct shmt_figure share;     /* of the floor's speed, 1: all of it; of ratios within rounds */
};

enum { SHMT_BENCH_MOST = 32 };

struct shmt_bench {
    bool quick;
    uint32_t cores, rounds;
    uint32_t again, noisy; /* rounds that were measured again, because others used the processors; that count all the same */
    double seconds;        /* all in all */
    uint64_t bytes;        /* of memory that streaming reads */
    const char *cpu;       /* the path of the inner loops */
    uint32_t n_floors, n_operations;
    struct shmt_bench_line floor[SHMT_BENCH_MOST], operation[SHMT_BENCH_MOST];
};

/* The variable that describes another machine, which cannot be measured here; NULL: none does. */
const char *shmt_bench_other_machine(void);

/* Measures, within two minutes, or `quick`: in a few seconds, on small sizes. `show` (may be NULL) is called before the first
 * round and after each. What goes wrong goes to `tell` as a sentence, and ends this process with status 1. To be freed. */
struct shmt_bench *shmt_bench_run(bool quick, void (*show)(uint32_t done, uint32_t of), void (*tell)(const char *sentence));

/* Lines for people, at most 80 columns wide; one JSON object. */
void shmt_bench_text(const struct shmt_bench *bench, FILE *out);
void shmt_bench_json(const struct shmt_bench *bench, FILE *out);
