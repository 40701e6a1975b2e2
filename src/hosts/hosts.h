/* The other hosts of a run, as the thread has them that drives it:
 *
 *     begin -> agree -> join -> tick, tick, ... -> end, and close whatever has happened
 *
 * The link's process (link_process.h) does the work. Without option hosts, or with one host, every function returns 0 and does nothing. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "hosts/agreement.h"

struct shmt_desk_packet;
struct shmt_run;

/* Owned by the handle. */
struct shmt_hosts {
    pid_t link; /* its process; 0: there is none */
    int desk;
    struct shmt_desk_packet *packet; /* the one in hand */
    pid_t ending;                    /* a link of MPI, of the run before: it ends by itself; 0: there is none */
    char *names;                     /* (n) x SHMT_MPI_NAME: of hosts that no option names; NULL: one does */
    uint32_t n_workers, n_seats;     /* of all hosts together; 0: not known */
    bool has_joined;                 /* the link has a store */
    bool is_over;                    /* the link has said its last word, */
    struct shmt_error verdict;       /* which is this one */
};

/* Before anything is loaded: checks the options, forks the link's process and waits until it can be reached. Errors: _USAGE, _DATA (keys),
 * _SYSTEM (ports). */
int shmt_hosts_begin(struct shmt_run *run);

/* Of a mode in which an update is of some of all hosts' workers, once it is known: adds up those of all hosts (n_workers, n_seats), of
 * which this one has so many. Waits for them; the second time, and with one host, nothing is done. Errors: as of shmt_hosts_agree. */
int shmt_hosts_count(struct shmt_run *run, uint32_t n_workers, uint32_t n_seats);

/* Data is loaded and all is settled: waits for the other hosts and compares with each of them. Errors: _USAGE with what differs; _DIED, a
 * host is lost; _STOPPED. */
int shmt_hosts_agree(struct shmt_run *run, const struct shmt_agreed *what);

/* The store is made, and has its parameters: the link takes its seat. */
int shmt_hosts_join(struct shmt_run *run);

/* Now and then, while workers are there. A status when the link has failed: it has told the workers. */
int shmt_hosts_tick(struct shmt_run *run);

/* The workers have ended, with `rc`: waits until the other hosts need nothing more of this one. The status that counts. Where there was
 * nothing to be done, and nobody has joined: until all know that, or one is gone. */
int shmt_hosts_end(struct shmt_run *run, int rc);

void shmt_hosts_close(struct shmt_run *run);

/* At the end of a handle, and before another run: what a run has left to end by itself has ended then. */
void shmt_hosts_reap(struct shmt_hosts *hosts);
