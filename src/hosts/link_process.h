/* The link's process: a fork of the one that drives a run, made before anything is loaded. It alone has the carrier's library running
 * and knows the network. It agrees with the other hosts on what it is given, takes the link's seat when there is a store, and ends with
 * its run, or when the other end of the desk does. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "carriers/zmq_carrier.h"
#include "configuration/cluster.h"
#include "hosts/desk.h"

struct shmt_link_plan {
    struct shmt_cluster hosts;
    const char *hosts_text;     /* what `hosts` points into */
    char mpi_program[PATH_MAX]; /* what calls MPI, where that is the carrier */
    uint32_t self;
    bool has_keys;
    struct shmt_zmq_keys keys;
    uint64_t lost_ns; /* of silence, until a host is lost */
};

/* What goes with SHMT_DESK_WORK. */
struct shmt_desk_work {
    struct shmt_spec spec;
    uint32_t scores; /* epochs end in validation */
};

/* Forks it: its process id, and *desk_out, our end of the desk, close-on-exec. Its first word is OPEN, or OVER with the reason why not.
 * The fork wipes its copy of the keys, the caller its own. Errors: _SYSTEM; then neither is set. */
int shmt_link_fork(struct shmt_link_plan *plan, int *desk_out, pid_t *pid_out, struct shmt_error *e);
