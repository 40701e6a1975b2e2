/* What this machine can do at best, and what the library makes of it: shmtrain bench. */
#ifndef SHMTRAIN_BENCH_H
#define SHMTRAIN_BENCH_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Median and quartiles over rounds. NaN: it could not be measured here. */
struct shmtrain_quartiles {
    double low, median, high;
};

/* What the machine does whatever runs on it. */
struct shmtrain_bench_floor {
    char name[48], unit[16]; /* "streaming read, 1 process", "GB/s" */
    struct shmtrain_quartiles value;
    uint64_t reserved[4];
};

/* An operation of the library, and the floor that it stands on, both in `unit`. */
struct shmtrain_bench_operation {
    char name[48], unit[16], floor_name[48]; /* "sparse epoch, 1 worker", "ns/example", "streaming its bytes" */
    struct shmtrain_quartiles ours, floor;
    struct shmtrain_quartiles share; /* of the floor's speed, 1: all of it; of ratios within rounds */
    uint64_t reserved[4];
};

#define SHMTRAIN_BENCH_MOST 32

struct shmtrain_bench {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint32_t quick, cores, rounds;
    uint32_t again, noisy; /* rounds that were measured again, because others used the processors; that count all the same */
    double seconds;        /* all in all */
    uint64_t bytes;        /* of memory that streaming reads */
    char cpu[16];          /* the path of the inner loops */
    uint32_t n_floors, n_operations;
    struct shmtrain_bench_floor floor[SHMTRAIN_BENCH_MOST];         /* (n_floors) */
    struct shmtrain_bench_operation operation[SHMTRAIN_BENCH_MOST]; /* (n_operations) */
};

struct shmtrain_bench_how {
    uint32_t size;  /* sizeof(struct shmtrain_bench_how) */
    uint32_t quick; /* 1: a few seconds, small sizes; else within two minutes */
    void *arg;
    void (*round)(void *arg, uint32_t done, uint32_t of); /* before the first round, and after each; may be NULL */
};

/* Measures in a process of its own, whose helpers take turns with runs of the library, and returns when that is done. *out
 * is to be freed by free(). `message` (`bytes` large, NULL allowed) gets the sentence of an error. Blocks. Errors: _MEMORY,
 * _SYSTEM, _USAGE (HWLOC_SYNTHETIC describes another machine), _DIED. */
SHMTRAIN_API int shmtrain_bench(const struct shmtrain_bench_how *how, struct shmtrain_bench **out, char *message,
                                uint64_t bytes);

/* Lines for people, at most 80 columns wide; one JSON object. To be freed. NULL: no memory. */
SHMTRAIN_API char *shmtrain_bench_text(const struct shmtrain_bench *bench);
SHMTRAIN_API char *shmtrain_bench_json(const struct shmtrain_bench *bench);

#ifdef __cplusplus
}
#endif
#endif
