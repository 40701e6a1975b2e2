/* Workers that stand still: --stall-timeout, --on-stall, and what they do to --time-limit. Called by run.c, on the thread that
 * drives the run; the workers do nothing for it.
 *
 * A worker stands still when its process is stopped (by a signal, a debugger), or when one of its threads is at work and its
 * counters say nothing new, for as long as the option says. Who waits for others does not: it is they who hold it up. Nor does a
 * seat on which nobody is left. What /proc says of a process is read only while its counters rest. A guest's worker has said
 * which process it is (base/process.h). Threads, and guests of another PID namespace, have counters only.
 *
 * A run whose time limit is over ends at the next consistent point, to which nobody comes while one is stopped: then it is given
 * up. One that is at a long item comes there. A guest that cannot be seen counts as stopped when all wait, and nobody scores. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process.h"

struct shmt_run;
struct shmt_config;
struct shmt_crew;
struct shmt_team;

/* One thread that trains. */
struct shmt_stall_seat {
    uint64_t seen;     /* what its counters said, all in one number */
    uint64_t since_ns; /* when that was new */
};

struct shmt_stall_worker {
    bool there;            /* somebody is */
    pid_t pid;             /* whom the rest is about; 0: a thread, one that cannot be seen from here, or nobody */
    struct shmt_life life; /* a guest's: of its worker */
    char state;            /* as in /proc, at the last look at which its counters rested; '\0': not known */
    uint64_t stopped_ns;   /* when it was first seen stopped; 0: it is not */
    uint64_t told_ns;      /* it stands still, and was told of; since when. 0: it does not */
};

struct shmt_stalls {
    uint64_t timeout_ns;               /* 0: nobody is told of; who is looked at only when a time limit is over */
    uint64_t looked_ns;                /* the last time */
    uint32_t n_workers, seats;         /* with places for guests; of each */
    const struct shmt_team_kind *kind; /* our own workers'; a guest's may be another one */
    struct shmt_stall_worker *worker;  /* (n_workers) */
    struct shmt_stall_seat *seat;      /* (n_workers * seats) */
    struct shmt_error lost;            /* why the run ends, where it does for one that stands still */
};

/* A run begins. Without memory for it nobody looks, and a line of the log says so. */
void shmt_stalls_begin(struct shmt_run *run, const struct shmt_crew *crew);

/* Looks at all workers, if it is time to. A negative status: the run is to end, the workers were told so, and the sentence
 * is in stalls.lost. */
int shmt_stalls_tick(struct shmt_run *run, const struct shmt_team *team);

/* Whether a worker of this run stands still, and has been told of. */
bool shmt_stalls_is(const struct shmt_run *run, uint32_t worker);

/* The run has ended with `rc`; a status without a sentence is that of `tick`. Returns rc. */
int shmt_stalls_end(struct shmt_run *run, int rc);
