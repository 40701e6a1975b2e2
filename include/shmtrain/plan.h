/* What a run would do with the machine: which worker on which core, which part of the parameters and of the data on which NUMA
 * node, in which pages, and whether the memory suffices. Made by shmtrain_store_plan without training. */
#ifndef SHMTRAIN_PLAN_H
#define SHMTRAIN_PLAN_H

#include <shmtrain/model.h>
#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A NUMA node of the machine. */
struct shmtrain_plan_node {
    uint32_t node;            /* the operating system's number */
    uint32_t usable;          /* 1: this process may use its memory */
    uint32_t cores, cpus;     /* that this process may use */
    uint64_t memory_bytes;    /* 0: unknown */
    uint64_t available_bytes; /* free, or page cache; 0 of 0: unknown */
    uint64_t need_bytes;      /* what the run would place there */
    uint64_t huge_free;       /* free 2 MiB pages */
    uint64_t reserved[4];
};

/* One training thread: thread `thread` of worker `worker`. */
struct shmtrain_plan_worker {
    uint32_t worker, thread;
    uint32_t cpu, core, node; /* where it goes, as far as it is bound; cpu is the operating system's number */
    uint32_t shared;          /* 1: another one is on the same processor */
    uint32_t reserved[6];
};

/* In place of a node's number: over all nodes in turn, page by page; wherever the system puts it. */
enum { SHMTRAIN_PLAN_ALL_NODES = -1, SHMTRAIN_PLAN_ANYWHERE = -2 };

/* A shard: rows first .. first + n - 1 of a table. */
struct shmtrain_plan_shard {
    char table[32];
    uint64_t first, n, bytes; /* bytes: with its share of optimizer state */
    int32_t node;             /* or SHMTRAIN_PLAN_ALL_NODES, _ANYWHERE */
    uint32_t reserved[5];
};

/* Training examples first .. first + n - 1 (of the file), read by the workers of one node. */
struct shmtrain_plan_part {
    uint64_t first, n, bytes;
    int32_t node; /* as above */
    uint32_t reserved[5];
};

/* A host of a run over several: what it trains, and what it sends to each other one. */
struct shmtrain_plan_host {
    char name[64];     /* "b:5000"; "": MPI knows it */
    uint64_t examples; /* of each batch (sync), or of an epoch */
    uint64_t
        most_bytes; /* that an exchange can take: of a batch, or of a round; what is zero, or has not changed, is not sent */
    uint64_t reserved[4];
};

struct shmtrain_plan {
    uint32_t size;             /* as the library knows it: SHMTRAIN_HAS */
    const char *machine;       /* "this machine", or "HWLOC_SYNTHETIC" and the like */
    const char *numa;          /* the policy that the run would have: "off", "interleave", "bind" */
    uint32_t data_local;       /* 1: data and gradients lie on the nodes of their workers; 0: as the parameters do */
    const char *bind;          /* "core", "node", "none" */
    const char *hugepages;     /* "off", "2M", "transparent" */
    const char *data;          /* "" without data: then there are no shards and parts, and memory is not counted */
    const char *replicas;      /* copies of the parameters: "one", "node", "worker", "equal"; "" without data */
    const char *copies_reason; /* as in the report: why async would take so many; "": there is no choice */
    uint32_t n_workers, n_threads;
    uint64_t page_bytes;
    /* data_bytes: of what the run makes of the data; not of caches and borrowed arrays that workers read where they are */
    uint64_t parameter_bytes, state_bytes, gradient_bytes, other_bytes, data_bytes, total_bytes;
    uint64_t available_bytes; /* of the whole machine, or what the tightest limit leaves */
    const char *limit;        /* the name of that limit */
    uint32_t n_nodes, n_places, n_shards, n_parts;
    const struct shmtrain_plan_node *node;    /* (n_nodes) */
    const struct shmtrain_plan_worker *place; /* (n_places) */
    const struct shmtrain_plan_shard *shard;  /* (n_shards) */
    const struct shmtrain_plan_part *part;    /* (n_parts) */
    uint32_t n_layers;
    const struct shmtrain_model_layer *layer; /* (n_layers) what the model is made of; 0: it has nothing to show */
    uint32_t n_hosts, host;                   /* 0: one host alone, or no data; which one this is */
    const char *exchange; /* what hosts exchange in a turn: "batch", "round" beside their workers, "merge"; NULL: nothing */
    const struct shmtrain_plan_host *hosts; /* (n_hosts) */
};

/* Lines for people, at most 80 columns wide; one JSON object. To be freed. NULL: no memory. */
SHMTRAIN_API char *shmtrain_plan_text(const struct shmtrain_plan *plan);
SHMTRAIN_API char *shmtrain_plan_json(const struct shmtrain_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
