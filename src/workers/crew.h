/* The backends that there are, and the crew of a run: how many workers, in processes or threads, where. */
#pragma once

#include <shmtrain/store.h>

#include "workers/machine.h"
#include "ps/backend_ops.h"
#include "runtime/team.h"
#include "topo/topo.h"

struct shmt_call;

/* Backend number i, from 0; NULL behind the last. */
const struct shmt_backend *shmt_backend_at(size_t i);
const struct shmt_backend *shmt_backend_find(const char *name);

struct shmt_crew {
    struct shmt_topo *topo;
    struct shmt_machine machine; /* where each seat's threads and memory go */
    uint32_t n_workers, n_threads, n_seats;
    uint32_t n_guests; /* further seats, for workers that join by name */
    const struct shmt_team_kind *kind;
    struct shmt_virtual virtual; /* how fibers run */
};

/* What a worker's threads do: an own worker function starts its own and has one seat; those of sparse models train side by
 * side, each at a seat, and so do those of exact fits, which nobody can join; those of dense models share the loops of one seat. */
enum shmt_seating { SHMT_SEAT_OF_FUNCTION, SHMT_SEAT_OF_THREAD, SHMT_SEAT_OF_FIT, SHMT_SEAT_OF_LOOPS };

enum shmt_seating shmt_seating_of(const struct shmtrain_model *model); /* NULL: an own worker function */

/* Threads of each worker: the option's number, lowered, with a note, by OMP_NUM_THREADS, and to 1 for loops that would hang. */
uint32_t shmt_crew_threads(const struct shmt_call *call, const struct shmt_config *config, const struct shmt_backend *backend,
                           enum shmt_seating seating);

/* Looks at the machine, first of all: crew->topo, to be freed with the crew, after an error, too. Errors: _USAGE where the
 * environment describes another machine and the call does more than plan; of shmt_topo_open. Sentence in the call. */
int shmt_crew_open_topo(struct shmt_call *call, struct shmt_crew *crew);

/* From the options and the machine. Sentence in the call. */
int shmt_crew_make(struct shmt_call *call, const struct shmt_config *config, const struct shmt_backend *backend,
                   enum shmt_seating seating, struct shmt_crew *out);
void shmt_crew_free(struct shmt_crew *crew); /* {0} is fine */

/* Whether virtual time passes between the loads and the stores of a racy push: then it may lose updates, and counts them. */
static inline bool shmt_crew_opens_race(const struct shmt_crew *crew) { return shmt_sim_touches(&crew->virtual.sim); }
