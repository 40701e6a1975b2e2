/* What shmtrain doctor looks at, as plain facts: gathered by vitals.c (files below /proc and /sys) and vitals_calls.c (what
 * only calls tell), judged by doctor.c and doctor_memory.c, doctor_system.c. Facts and judgement are apart so that tests can
 * judge machines that they do not have. */
#pragma once

#include <shmtrain/doctor.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/error.h"
#include "segment/budget.h"
#include "topo/topo.h"

#define SHMT_VITALS_NODES 64

#define SHMT_NO_LIMIT UINT64_MAX

/* Limits of this process: the soft one, or the hard one where a run raises it. SHMT_NO_LIMIT: none. */
struct shmt_limits {
    uint64_t file_bytes, address_bytes, files, processes, cpu_seconds;
    uint64_t group_processes, group_used; /* of the control group (pids), the tightest on the way up */
    bool is_root;                         /* whom RLIMIT_NPROC does not count for */
};

/* Stores with a name. */
struct shmt_leftovers {
    uint32_t n_dead, n_over; /* died or damaged, and nobody has them open; ended well, and kept */
    uint64_t dead_bytes, over_bytes;
    char dead[64]; /* the first dead one's name */
};

/* What the kernel does for us when it is asked; `refused`: why not. */
struct shmt_calls {
    bool memfd, pidfd, ofd_locks, populate, may_bind, may_place, tells_nodes;
    char memfd_refused[128];
};

struct shmt_vitals {
    /* the machine */
    char described[24]; /* the variable that describes another one; "": it is this one */
    uint32_t cores, cpus, online_cpus, n_nodes;
    struct shmt_node node[SHMT_VITALS_NODES]; /* the first n_nodes, at most so many */
    uint64_t quota_millis;                    /* 0: none */
    uint64_t periods, throttled;              /* of the CPU quota: all, and those in which it was used up */
    double others;                            /* processors that others have used while we looked; below 0: unknown */
    double steal;                             /* share of all time since boot that the hypervisor took; below 0: unknown */
    bool is_virtual;
    char governor[32], driver[32]; /* of the clock speed; "": nobody says */
    char clock[32], clocks[128];   /* clock source; those there are */
    char numa_balancing[8];        /* "0", "1", ... "": the kernel has none */
    enum shmt_cpu best;            /* the path that a run takes */
    char forced[24];               /* SHMTRAIN_CPU; "" */
    bool has_path[SHMT_N_CPUS];

    /* memory */
    struct shmt_budget budget;
    uint64_t total_bytes, swap_bytes, swap_used; /* 0: unknown, or none */
    uint64_t commit_limit, committed;
    char overcommit[8];
    uint64_t huge_all, huge_free;           /* reserved pages of 2 MiB */
    char shared_huge[64], private_huge[64]; /* the words of shmem_enabled and enabled; "": the kernel has none */
    bool shared_huge_on;
    bool has_shm, may_write_shm;
    uint64_t shm_bytes, shm_free;
    struct shmt_leftovers left;
    struct shmt_limits limit;

    /* the system */
    char kernel[64];
    struct shmt_calls call;
    bool filtered; /* seccomp */
    char blas[96], blas_refused[256];
    bool blas_shared, openmp;
};

/* Files: those below `root`, "" or a folder that stands for / in tests. What cannot be read is unknown. */
void shmt_vitals_read(const char *root, struct shmt_vitals *v);

/* The topology: processors and nodes. Errors: those of shmt_topo_open_at. */
int shmt_vitals_topo(const char *root, struct shmt_vitals *v, struct shmt_error *e);

/* Limits, calls that are tried, stores with a name, OpenBLAS in a process of its own, and what others use of the processors in
 * `look_ms` milliseconds. */
void shmt_vitals_ask(uint32_t look_ms, struct shmt_vitals *v);

/* ---- judgement ---- */

/* One more finding; `remedy` "" where there is nothing to be done. */
void shmt_checkup_add(struct shmtrain_checkup *c, enum shmtrain_verdict verdict, const char *subject, const char *remedy,
                      const char *seen, ...) __attribute__((format(printf, 5, 6)));

void shmt_judge_machine(const struct shmt_vitals *v, struct shmtrain_checkup *c);
void shmt_judge_memory(const struct shmt_vitals *v, struct shmtrain_checkup *c);
void shmt_judge_system(const struct shmt_vitals *v, struct shmtrain_checkup *c);
void shmt_judge(const struct shmt_vitals *v, struct shmtrain_checkup *c); /* all of it, in this order, into an empty one */
