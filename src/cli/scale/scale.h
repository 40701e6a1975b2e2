/* shmtrain scale: how much faster more workers should be, on fibers whose costs were measured. Asked by asked.c, run by scale.c, told by
 * told.c and json.c.
 *
 * For each mode and seed costs are measured once, by runs of one worker (option sim, measured); all runs of the mode and seed have them,
 * with each number of workers and of NUMA nodes. A speed-up is over the fewest workers that the mode can have, on the fewest nodes, of the
 * same mode and seed. So what differs among seeds is the order in which things happen, what is drawn, and what the machine did while it
 * was measured. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/arguments.h"

#define SCALE_MODES   8
#define SCALE_WORKERS 16 /* numbers of workers */
#define SCALE_NODES   3  /* numbers of nodes */
#define SCALE_SEEDS   30
#define SCALE_COSTS   1024

/* A mode with so many workers on so many nodes. */
struct scale_cell {
    double speed[SCALE_SEEDS]; /* examples a virtual second; 0: there is no run of this seed */
    double loss[SCALE_SEEDS];  /* of the last epoch's examples */
    char why[256];             /* a run was refused, or failed; "": none was */
};

struct scale_mode {
    char name[48];
    char costs[SCALE_SEEDS][SCALE_COSTS]; /* as option sim has them */
    struct scale_cell cell[SCALE_NODES][SCALE_WORKERS];
};

struct scaling {
    const struct arguments *arguments;
    const char *data, *sim; /* the option's text for the run that measures */
    char title[4096];
    unsigned n_modes, n_workers, n_nodes, seeds;
    uint64_t first_seed;
    uint32_t workers[SCALE_WORKERS], nodes[SCALE_NODES]; /* ascending */
    unsigned n_runs, n_done;
    struct scale_mode mode[SCALE_MODES];
};

/* The number of workers that the mode's speed-ups are over, as a place in the list; n_workers: it has none. */
unsigned scale_base(const struct scaling *s, const struct scale_mode *mode);

/* A speed-up over the seeds. All NaN: there is none. */
struct scale_spread {
    double median, least, most;
};
struct scale_spread scale_speed_up(const struct scaling *s, const struct scale_mode *mode, unsigned node, unsigned workers);

/* The middle one of a cell's losses; NaN: there is none. */
double scale_loss(const struct scaling *s, const struct scale_cell *cell);

/* What papers say of other machines and data. */
struct scale_published {
    const char *what, *where; /* "HOGWILD! on RCV1", "Niu et al. 2011" */
    unsigned workers;         /* 0: the words say it */
    double speed_up;          /* NaN: likewise */
    const char *words;
};
const struct scale_published *scale_published_at(unsigned i); /* NULL behind the last */

/* Whether so many workers run on so many nodes: each node has one. */
static inline bool scale_has_cell(const struct scaling *s, unsigned node, unsigned workers) {
    return s->workers[workers] >= s->nodes[node];
}

/* What the command line asks for, into `s`, which is all zero. 0, or the exit status after one line on stderr. */
int scale_ask(struct scaling *s, struct shmtrain_store *store, const struct arguments *a);

/* Tables, a plot and what was published, at most 80 columns wide. */
void scale_put_text(const struct scaling *s, FILE *out);

/* One JSON object in one line. 0, or -1: no memory. */
int scale_put_json(const struct scaling *s, FILE *out);
