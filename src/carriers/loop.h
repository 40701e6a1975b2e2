/* A network in memory, for hosts that are fibers of one thread (room fibers): its delays, losses, duplicates and reorderings are pure
 * functions of a seed, in virtual time, so that a run over many hosts repeats itself bit by bit. Tests use it; and it is the network
 * of simulated runs.
 *
 * Each ordered pair of hosts is a cable of its own, which can be cut in one direction. A frame that was sent before the cut still
 * arrives. A host that crashes leaves its port as it was; opening the port again empties it, as a process that starts anew has new
 * sockets. */
#pragma once

#include <stdbool.h>

#include "carriers/carrier.h"

struct shmt_loop_spec {
    uint32_t n_hosts; /* 1 .. SHMT_MOST_HOSTS */
    uint64_t seed;
    uint64_t delay_ns;         /* of every frame, at least */
    uint64_t jitter_ns;        /* up to so much more, drawn for each: frames overtake one another by it */
    double loss, duplication;  /* shares of the frames, 0 .. 1 */
    uint64_t bytes_per_second; /* of a host's cable, for all that it sends; 0: no limit */
    uint64_t port_bytes;       /* that may be on their way to a host: beyond that `send` says full */
};

struct shmt_loop;

/* Errors: _MEMORY. */
int shmt_loop_make(const struct shmt_loop_spec *spec, struct shmt_loop **out, struct shmt_error *e);

/* The carrier of host `rank`, which belongs to the network; again for its next life. Its own fiber alone calls it. */
struct shmt_carrier *shmt_loop_open(struct shmt_loop *loop, uint32_t rank);

/* From now on frames from one host to the other are lost, or no longer. */
void shmt_loop_cut(struct shmt_loop *loop, uint32_t from, uint32_t to, bool cut);

/* Frames that were lost by chance or by a cut, that came twice, and that overtook an earlier one of their cable. */
struct shmt_loop_counts {
    uint64_t sent, lost, doubled, overtaking;
};
void shmt_loop_count(const struct shmt_loop *loop, struct shmt_loop_counts *out);

/* Behind the end of all fibers. */
void shmt_loop_free(struct shmt_loop *loop);
