/* The machine: which processors this process may use, and where workers go.
 *
 * hwloc tells the processors, cores and NUMA nodes; the affinity mask (taskset), the cpuset and the CPU quota of the control
 * groups narrow that to what one may use. A plan is computed first and then carried out by each worker for itself. A topology
 * that is not this machine's (HWLOC_SYNTHETIC, HWLOC_XMLFILE) is taken whole: plans for it can be made, and binding succeeds
 * without effect. */
#ifndef SHMT_TOPO_TOPO_H
#define SHMT_TOPO_TOPO_H

#include <stdint.h>

#include "base/error.h"

struct shmt_topo;

/* Where one worker runs. */
struct shmt_place {
    uint32_t cpu;    /* the operating system's number */
    uint32_t core;   /* counted over the whole machine (the operating system counts anew in each package) */
    uint32_t node;   /* the operating system's number of the NUMA node that is local to the processor */
    uint32_t shared; /* 1: another worker of the plan is on the same processor */
};

/* Loads the topology, with the affinity mask that the calling thread has now: a millisecond or two. One per process that asks;
 * read-only afterwards, by any thread and also in forked children. Starts no thread, changes no binding. Errors: _SYSTEM,
 * _MEMORY. */
int shmt_topo_open(struct shmt_topo **out, struct shmt_error *e);

/* The same for tests: control groups are those below the folder `root`, and count also for a machine that is not this one. */
int shmt_topo_open_at(const char *root, struct shmt_topo **out, struct shmt_error *e);

/* NULL is allowed. */
void shmt_topo_close(struct shmt_topo *topo);

uint32_t shmt_topo_cpus(
    const struct shmt_topo *topo); /* hardware threads that I may use, at least 1; the quota does not count here */
uint32_t shmt_topo_cores(
    const struct shmt_topo *topo); /* cores among them, and no more than the CPU quota pays for (rounded up), at least 1 */
uint32_t shmt_topo_nodes(const struct shmt_topo *topo); /* NUMA nodes that these processors belong to, at least 1 */

/* Bytes of the data or unified cache at `level` (1, 2, 3) of the first usable processor; 0 when unknown. */
uint64_t shmt_topo_cache_bytes(const struct shmt_topo *topo, uint32_t level);

/* Places for n workers, out (n): distinct cores first, spread over the nodes in turn, then the cores' further threads, then
 * from the start again. The first places do not depend on n, except for `shared`. */
void shmt_topo_plan(const struct shmt_topo *topo, uint32_t n, struct shmt_place *out);

/* Binds the calling thread to its place. Errors: _SYSTEM or _MEMORY where the kernel refuses (then it runs unbound, which is
 * harmless). */
int shmt_topo_bind(const struct shmt_topo *topo, const struct shmt_place *place, struct shmt_error *e);

#endif
