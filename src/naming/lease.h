/* A run's name, as its maker has it: from the reservation, before anything is loaded, to the end of the run. Called by
 * whoever makes runs (running; loading through struct shmt_file_maker); the other side, of those who join, is visit.h.
 * Where a store has no name, all of this does nothing.
 *
 *     begin -> [decide -> data files] -> home -> publish -> tick, tick, ... -> end
 *
 * The file stays when the run is over, and so does the memory; the files of its data go. */
#pragma once

#include <shmtrain/store.h>
#include <stdbool.h>
#include <sys/types.h>

#include "keeping/trained.h"
#include "ps/backend_ops.h"
#include "segment/named.h"
#include "segment/segment.h"

struct shmt_run;

struct shmt_lease {
    bool open;   /* `fd` is a file that this store has made under `name`, in this run or the last one */
    bool held;   /* a run goes on under the name */
    bool made;   /* the file is the segment of the backend */
    bool shares; /* data is loaded into files of their own, for guests */
    int fd;
    pid_t maker; /* who has `fd` of its own: not a child that the application forks */
    char name[SHMT_NAME_BYTES];
    const struct shmt_segment *train, *valid; /* shares: where the data is; NULL: there is none of its own */
    double share;                             /* of the training data that is set aside for validation; 0: none is */
    struct shmt_feature_ids features;
    struct shmt_error lost; /* the run cannot go on without a guest that died */
};

/* Reserves the name that the options give, if any; from an earlier run of the same store, if it has it still. Errors: _USAGE
 * (the name, or it is there already: whose), _SYSTEM. */
int shmt_lease_begin(struct shmt_run *run);

/* When sizes are known: whether training and validation data of so many bytes go into files of their own, which take room in
 * /dev/shm. If not, the spec loses its places for guests, and a line of the log says so. */
int shmt_lease_decide(struct shmt_run *run, uint64_t train_bytes, uint64_t valid_bytes);

/* The file for a part of the data (struct shmt_file_maker); `lease`: a struct shmt_lease. */
int shmt_lease_make_file(void *lease, enum shmt_named_part part, int *out, struct shmt_error *e);

/* Where the backend's store is to live. Its descriptor is the store's, if that is made. */
int shmt_lease_home(struct shmt_run *run, struct shmt_home *out);

/* The store is made: says what it is, and that its run goes on. */
void shmt_lease_publish(struct shmt_run *run, uint32_t n_threads);

/* While it runs: seats of guests that have died are reclaimed. A negative status: the run cannot go on without one; the workers were told
 * so, and the sentence is in lease.lost. */
int shmt_lease_tick(struct shmt_run *run);

/* The run has ended with `rc`, at whatever point; a status without a sentence is that of `tick`. Returns rc. */
int shmt_lease_end(struct shmt_run *run, int rc);

/* With the store: closes the file, which stays. */
void shmt_lease_close(struct shmt_run *run);
