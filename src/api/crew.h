/* The backends that there are, and the crew of a run: how many workers, in processes or threads, where. */
#ifndef SHMT_API_CREW_H
#define SHMT_API_CREW_H

#include <shmtrain/store.h>
#include <stdbool.h>

#include "api/machine.h"
#include "ps/backend_ops.h"
#include "runtime/team.h"
#include "topo/topo.h"

/* Backend number i, from 0; NULL behind the last. */
const struct shmt_backend_ops *shmt_backend_at(size_t i);
const struct shmt_backend_ops *shmt_backend_find(const char *name);

struct shmt_crew {
    struct shmt_topo *topo;
    struct shmt_machine machine; /* where each seat's threads and memory go */
    uint32_t n_workers, n_threads, n_seats;
    uint32_t n_guests; /* further seats, for workers that join by name */
    enum shmt_team_kind kind;
};

/* From the store's options and the machine. `seats_per_worker`: 1, or one for each thread. Sentence in the store. */
int shmt_crew_make(struct shmtrain_store *store, const struct shmt_backend_ops *ops, uint32_t seats_per_worker,
                   struct shmt_crew *out);
void shmt_crew_free(struct shmt_crew *crew); /* {0} is fine */

#endif
