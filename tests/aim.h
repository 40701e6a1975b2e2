/* Aimed deaths, for tests that compile the protocols once more with their points (base/point.h): which worker is killed or
 * stopped where, and who has passed what, in memory that the workers of a run and the test share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WORKERS = 3, MOST_POINTS = 160, PATIENCE_SECONDS = 120 };

struct target {
    char name[32];   /* at which point; "": nobody is killed */
    char behind[32]; /* when worker 0 has passed this point for the first time; "": at any time */
    uint32_t rank;   /* whom */
    uint64_t pass;   /* when it passes it for the so-many-eth time, from 1; `behind`: the next time */
    int signal;      /* SIGKILL, or SIGSTOP: then it is continued from outside; 0: it is left alone */
};

/* What the workers of a run and the test both see. */
struct plan {
    struct target aim, then; /* `then`: also this one */
    _Atomic uint32_t hit;    /* `aim` was */
    _Atomic int32_t stopped; /* the process that was stopped */
    _Atomic uint32_t fell;   /* a word that only grows did not: ... */
    char what[32];           /* ... this one, ... */
    uint64_t before, after;  /* ... so */
    uint32_t whose;
    _Atomic uint32_t guest_has_left;
    struct {
        char
            name[32]; /* who passes it first writes it; whoever finds it half-written takes another place, which does no harm */
        _Atomic uint64_t passes[WORKERS];
    } point[MOST_POINTS];
    _Atomic uint32_t n_points;
    _Atomic uint32_t lock;
};
extern struct plan *g_plan;

extern bool g_is_guest; /* a process that joins a run, or its workers: left alone */

/* Once, before anything else: the plan, what is said of a run that hangs (until alarm(0)), and a process that lets those go on
 * that were stopped, a moment later. False: it cannot be. */
bool begin_aiming(void);

/* Before a run. */
void forget_passes(void);
void aim_at(struct target *target, const char *name, uint32_t rank, uint64_t pass, int signal);

/* The rank of this process as a worker, or the number of this thread in one (which others have, too: whoever comes first is hit
 * then); WORKERS: it is none, or not yet. */
uint32_t my_rank(void);
