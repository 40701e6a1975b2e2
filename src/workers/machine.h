/* From options and topology to decisions: which worker thread goes where, which memory lies on which NUMA node, in which pages.
 *
 * Made once per run by the crew, before anything is placed; pure but for a look at the machine. What the machine does not allow
 * is said in a line of the log and left out. */
#pragma once

#include "base/log.h"
#include "configuration/options.h"
#include "ps/backend_ops.h"
#include "segment/pages.h"
#include "segment/segment.h"
#include "topo/topo.h"

struct shmt_machine {
    const struct shmt_topo *topo;  /* the crew's */
    struct shmt_place *place;      /* ((n_workers + n_guests) * n_threads), a worker's threads side by side */
    uint32_t n_workers, n_threads; /* guests are not counted */
    uint32_t threads_per_seat;     /* 1, or all of a worker's, where it has one seat */
    enum shmt_bound_to bind;
    struct shmt_placement placement; /* of ordinary pages, until somebody asked shmt_machine_pages */
    uint64_t huge_bytes;             /* of huge pages that have been given */
    uint32_t lacks_huge;             /* 1: somebody got none */
    const char *hugepages;           /* the option's text; the configuration's */
    const struct shmt_log *log;
};

/* For `n_workers` workers and `n_guests` further ones, who may come later, of `n_threads` threads each, with `n_seats` seats
 * in all, which is one for each worker or one for each thread. Guests' seats have places, too, but the workers decide which
 * nodes are used and whether there are cores enough. Errors: _MEMORY. */
int shmt_machine_make(const struct shmt_config *config, const struct shmt_topo *topo, uint32_t n_workers, uint32_t n_guests,
                      uint32_t n_threads, uint32_t n_seats, const struct shmt_log *log, struct shmt_machine *out,
                      struct shmt_error *e);
void shmt_machine_free(struct shmt_machine *machine); /* {0} is fine */

/* Binds the calling thread as planned for a seat; where the kernel refuses, it runs unbound. */
void shmt_machine_bind(const struct shmt_machine *machine, uint32_t seat);

/* The cache at `level` of which a worker has least, guests left aside (topo.h). */
void shmt_machine_share_cache(const struct shmt_machine *machine, uint32_t level, struct shmt_cache_share *out);

/* Which pages `bytes` of "the `what`", spread over the nodes, get; huge pages that it gives are not free for the next who
 * asks. */
enum shmt_pages shmt_machine_pages(struct shmt_machine *machine, uint64_t bytes, const char *what);

/* Completes a spec whose sizes are known: its placement, and with it the pages of the store. Errors: those of backend->plan. */
int shmt_machine_settle(struct shmt_machine *machine, const struct shmt_backend *backend, struct shmt_spec *spec,
                        struct shmt_error *e);

const char *shmt_machine_numa_name(const struct shmt_placement *placement); /* "off", "interleave", "bind" */
const char *shmt_machine_bind_name(enum shmt_bound_to bind);                /* "none", "node", "core" */
