/* The machine: which processors and NUMA nodes this process may use, where workers go, and where memory is put.
 *
 * hwloc tells the processors, cores and NUMA nodes; the affinity mask (taskset), the cpuset and the CPU quota of the control
 * groups narrow that to what one may use. A plan is computed first and then carried out by each worker for itself. A topology
 * that is not this machine's (HWLOC_SYNTHETIC, HWLOC_XMLFILE) is taken whole: plans for it can be made, and binding succeeds
 * without effect. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SHMT_TOPO_MAX_CPUS 8192 /* of a synthetic machine */

struct shmt_topo;

/* Where one worker runs. */
struct shmt_place {
    uint32_t cpu;    /* the operating system's number */
    uint32_t core;   /* counted over the whole machine (the operating system counts anew in each package) */
    uint32_t node;   /* the operating system's number of the NUMA node that is local to the processor */
    uint32_t shared; /* 1: another worker of the plan is on the same processor */
};

/* A NUMA node of the machine, also one that this process may not use. */
struct shmt_node {
    uint32_t node;         /* the operating system's number */
    uint32_t usable;       /* 1: it has memory, and the cpuset lets this process have it */
    uint32_t cores, cpus;  /* that this process may use */
    uint64_t memory_bytes; /* 0: unknown */
    uint64_t free_bytes;   /* free, or page cache of files; 0 of 0: unknown */
    uint64_t huge_free;    /* free 2 MiB pages */
};

enum shmt_memory_policy { SHMT_MEMORY_DEFAULT, SHMT_MEMORY_BIND, SHMT_MEMORY_INTERLEAVE };

/* What threads are bound to: nothing, the processors of their node, or their place. */
enum shmt_bound_to { SHMT_BIND_NONE, SHMT_BIND_NODE, SHMT_BIND_CORE };

/* A cache, and how many of a run's workers have it at one time. */
struct shmt_cache_share {
    uint64_t bytes;     /* of the whole cache; 0: unknown */
    uint32_t n_workers; /* at least 1 */
};

/* Loads the topology, with the affinity mask that the calling thread has now: a millisecond or two. One per process that asks;
 * read-only afterwards, by any thread and also in forked children. Starts no thread, changes no binding. Errors: _SYSTEM,
 * _MEMORY, _USAGE (a variable of the environment shall describe another machine, and does not, or one of more than
 * SHMT_TOPO_MAX_CPUS processors). */
int shmt_topo_open(struct shmt_topo **out, struct shmt_error *e);

/* The same for tests: control groups and the nodes' memory are those below the folder `root`, and count also for a machine that
 * is not this one. */
int shmt_topo_open_at(const char *root, struct shmt_topo **out, struct shmt_error *e);

/* NULL is allowed. */
void shmt_topo_close(struct shmt_topo *topo);

uint32_t shmt_topo_cpus(
    const struct shmt_topo *topo); /* hardware threads that I may use, at least 1; the quota does not count here */
uint32_t shmt_topo_cores(
    const struct shmt_topo *topo); /* cores among them, and no more than the CPU quota pays for (rounded up), at least 1 */
uint32_t shmt_topo_nodes(const struct shmt_topo *topo); /* NUMA nodes that these processors belong to, at least 1 */

/* 0: a machine that is not this one: binding is a game, and memory is not where it says. */
int shmt_topo_is_this_machine(const struct shmt_topo *topo);

/* The variable of the environment by which hwloc describes another machine ("HWLOC_SYNTHETIC"), or NULL. */
const char *shmt_topo_variable(void);

/* Bytes of the data or unified cache at `level` (1, 2, 3) of the first usable processor; 0 when unknown. */
uint64_t shmt_topo_cache_bytes(const struct shmt_topo *topo, uint32_t level);

/* Places for n workers, out (n): distinct cores first, spread over the nodes in turn, then the cores' further threads, then
 * from the start again. The first places do not depend on n, except for `shared`. */
void shmt_topo_plan(const struct shmt_topo *topo, uint32_t n, struct shmt_place *out);

/* The same for n groups of `each` threads, out (n * each), group by group: groups are spread over the nodes in turn, the
 * threads of one stay on one node as long as a node has room for them. With groups of one, the plan above. Errors: _MEMORY. */
int shmt_topo_plan_groups(const struct shmt_topo *topo, uint32_t n, uint32_t each, struct shmt_place *out,
                          struct shmt_error *e);

/* The data or unified cache at `level` (1 to 5) of which a worker has least, of workers with their threads at these places
 * (n_workers * n_threads, group by group): threads of one worker share what they have. Who is bound to nothing, or to a
 * node, is spread over the caches there. Workers that take turns on a processor do not share (cache.c says why). */
void shmt_topo_share_cache(const struct shmt_topo *topo, uint32_t level, const struct shmt_place *place, uint32_t n_workers,
                           uint32_t n_threads, enum shmt_bound_to bind, struct shmt_cache_share *out);

/* Binds the calling thread to the processors of n places together (more than one for a thread that starts others), or to all
 * processors of the place's node that this process may use. Errors: _SYSTEM or _MEMORY where the kernel refuses (then it runs
 * unbound, which is harmless). */
int shmt_topo_bind_group(const struct shmt_topo *topo, const struct shmt_place *place, uint32_t n, struct shmt_error *e);
int shmt_topo_bind_node(const struct shmt_topo *topo, const struct shmt_place *place, struct shmt_error *e);

/* Whether threads of this process may be bound: 0, or _SYSTEM with the reason. Binds the calling thread to what it is bound
 * to. */
int shmt_topo_may_bind(const struct shmt_topo *topo, struct shmt_error *e);

/* ---- memory: node.c, memory.c ---- */

/* All nodes of the machine, in hwloc's order. At least 1. */
uint32_t shmt_topo_all_nodes(const struct shmt_topo *topo);

/* Node number i of those; free memory is that of the moment. A node of a machine that is not this one is all free. */
void shmt_topo_node(const struct shmt_topo *topo, uint32_t i, struct shmt_node *out);

/* 1: the system makes transparent huge pages for shared memory that asks for them (shmem_enabled). */
int shmt_topo_transparent(const struct shmt_topo *topo);

/* The same for private memory (enabled); 0 also where the system would count it for each worker that inherits it. */
int shmt_topo_transparent_private(const struct shmt_topo *topo);

/* Where pages of this range shall be placed: on the nodes `node` (the system's numbers), filled one after the other (BIND)
 * or page by page in turn (INTERLEAVE). To be called before any of them is placed: pages never move. A full node is no error
 * and kills nobody, its pages go elsewhere (shmt_topo_where tells). For shared memory it holds whichever process touches a
 * page first, except in reserved huge pages, where it is this mapping's own. Errors: _SYSTEM where the kernel refuses
 * (containers, nodes that the cpuset leaves out), _MEMORY. */
int shmt_topo_bind_memory(const struct shmt_topo *topo, void *at, uint64_t bytes, enum shmt_memory_policy policy,
                          const uint32_t *node, uint32_t n_nodes, struct shmt_error *e);

/* Whether memory of this process may be put on nodes: 0, or _SYSTEM with the reason. */
int shmt_topo_may_place(const struct shmt_topo *topo, const uint32_t *node, uint32_t n_nodes, struct shmt_error *e);

/* Where the pages of this range are: bytes_on_node (shmt_topo_all_nodes) by the index of shmt_topo_node. Each page looked at
 * is read once, so it must be there or may come to be. Exact for up to 4096 pages, else an estimate from 4096 of them, in 64
 * evenly spread stretches. Errors: _SYSTEM where the kernel does not tell. */
int shmt_topo_where(const struct shmt_topo *topo, const void *at, uint64_t bytes, uint64_t page_bytes, uint64_t *bytes_on_node,
                    struct shmt_error *e);
