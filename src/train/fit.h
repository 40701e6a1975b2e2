/* An exact fit as a run: the phases of solve/newton.h, each done by all seats together, with a meeting behind it. An epoch is one
 * Newton step, and ends as all epochs do. Called by job.c in each worker. */
#pragma once

#include "ps/session.h"
#include "solve/keep.h"
#include "solve/newton.h"

struct shmt_job;

/* Made before workers exist, constant from then on. */
struct shmt_fit {
    struct shmt_problem problem;
    struct shmt_solve_plan plan;
    uint64_t offset; /* of its memory, from the board's beginning */
    bool samples;    /* L2 is chosen from a sample of the examples, which has a problem and memory of its own */
    struct shmt_problem sample;
    struct shmt_solve_plan sample_plan;
    uint64_t sample_offset;
    bool keeps; /* for checkpoints: what another run needs is copied at the end of each epoch */
    struct shmt_keep_plan keep;
    uint64_t keep_offset;
    const struct shmt_kept_fit *from; /* the fit goes on from these numbers, whose vectors are in its memory; NULL: it begins */
    uint64_t chosen_from;             /* examples that L2 is chosen from; 0: it is not */
    uint32_t *drawn;                  /* (sample.n) its examples, ascending; of the process that made the run */
};

/* Where this seat stands; private to it. */
struct shmt_fitting {
    const struct shmt_job *job;
    const struct shmtrain_session *session;
    struct shmt_solve_memory memory, of_sample;
    struct shmt_keep keep;         /* if the fit keeps anything */
    struct shmt_solve_state state; /* of the phase that comes, or of an epoch that is over */
    bool lost;                     /* an earlier life had it: it is to be found */
    bool leaves;                   /* this phase, before it is done: the run is to end */
};

/* For this life of the seat. */
void shmt_fitting_begin(struct shmt_fitting *fitting, const struct shmt_job *job, const struct shmtrain_session *s);

/* My part of what is kept, where a snapshot is taken behind an epoch. */
void shmt_fitting_copy(struct shmt_fitting *fitting, const shmtrain_session *s);

/* A fit cannot go on from what was kept (state `strange`): the status, with a sentence. */
int shmt_fitting_refuse(struct shmt_error *e);

/* Until the run is over: 0, or a status. */
int shmt_fitting_run(struct shmt_fitting *fitting, shmtrain_session *s);
