/* What the files of shmtrain drill share: a run in a process of its own (drill_run.c), finding and hitting its workers
 * (drill_hunt.c), and judging how it has ended (drill.c). */
#ifndef SHMT_MEASURE_DRILL_PRIV_H
#define SHMT_MEASURE_DRILL_PRIV_H

#include <shmtrain/drill.h>

#include <stdbool.h>
#include <sys/types.h>

#include "base/atomic.h"

#define SHMT_DRILL_WORKERS 4
#define SHMT_DRILL_EPOCHS  40 /* at most */

/* One line of the table of modes: what a run is told. */
struct shmt_drill_mode {
    const char *name;
    const char *options; /* "mode=ssp:2 epochs=20": names of shmtrain_store_set and what they are given */
    const char *data;
    bool same_bits; /* as undisturbed runs */
    bool may_skip;  /* items that were in hand when a worker died may be left out */
};

/* What a run and who disturbs it both see. */
struct shmt_drill_stage {
    _Atomic uint32_t begun;                     /* the run: data is loaded, workers are about to start */
    _Atomic uint32_t leave[SHMT_DRILL_WORKERS]; /* who disturbs: worker i is to call _exit; the worker: 0 */
    _Atomic uint32_t heard[SHMT_DRILL_WORKERS]; /* worker i: so often it was about to */
    /* the run, before it ends: */
    int32_t rc;
    char message[256];
    uint64_t xxh64;
    double loss, train_seconds;
    double late_share;       /* of the examples: their gradients were late */
    uint64_t respawns, item; /* workers that were started again; examples of a work item */
    uint32_t n_epochs;
    uint64_t examples[SHMT_DRILL_EPOCHS]; /* (n_epochs) */
};

/* Files that a run may leave, and one that it has to. */
struct shmt_drill_place {
    char folder[256]; /* empty but for `model` afterwards */
    char name[48];    /* of the store in /dev/shm; "": it has none */
};

/* drill_run.c: in the run's own process, which ends with it. */
_Noreturn void shmt_drill_run(const struct shmt_drill_mode *mode, bool skips, const struct shmt_drill_place *place,
                              struct shmt_drill_stage *stage);

/* drill_hunt.c */

/* A worker's process as it was found. */
struct shmt_drill_prey {
    pid_t pid; /* 0: there is none at the moment */
    int fd;    /* a pidfd, so that no other process is ever hit; -1 */
};

/* The process of worker `rank` of the run in process `run`. */
struct shmt_drill_prey shmt_drill_find(pid_t run, uint32_t rank);
/* False: it has gone meanwhile. */
bool shmt_drill_hit(const struct shmt_drill_prey *prey, int signal);
void shmt_drill_let_go(struct shmt_drill_prey *prey);
/* How many children this process has, with those that it got as a subreaper, after collecting those that have ended. */
uint32_t shmt_drill_children(void);
/* Kills these. */
void shmt_drill_kill_children(void);
/* False where the system does not say whose children there are. */
bool shmt_drill_can_find(void);

#endif
