/* From what the library says of a run, ten times a second, to what is drawn: speeds and shares are smoothed, because in a
 * tenth of a second a worker may finish no work item, or two. Called by display.c. */
#pragma once

#include <shmtrain/report.h>

#include "cli/draw.h"

struct follow {
    struct draw_state state; /* valid until the next follow_update */
    double seconds;          /* of the last update */
    uint32_t n_ranks;        /* ranks that have a place in `smooth` */
    struct draw_worker *smooth;
    bool *known; /* (n_ranks): was there at the last update */
    struct draw_worker *shown;
    double *losses;
    size_t n_losses; /* that there is room for */
};

/* Begins without a state: state.epochs is 0. */
void follow_init(struct follow *f);

/* Takes a new look into account. With `pause` the time since the one before was spent stopped: speeds and shares stay as
 * they were. 0, or -1 when there is no memory; the state is the last one then. */
int follow_update(struct follow *f, const struct shmtrain_report *report, const struct shmtrain_progress *now, bool pause);

/* An epoch is over, by the report: where nothing later is known, the state is that of its end. As follow_update. */
int follow_epoch(struct follow *f, const struct shmtrain_report *report, const struct shmtrain_epoch *epoch);

void follow_fini(struct follow *f);
