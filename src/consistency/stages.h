/* A worker's way through a run, as a row of stages, and what is left to do of one for whoever goes on after a death.
 *
 * Each stage is recorded before it begins, then its work is done, and at most one meeting ends it. So a record, and whether its
 * writer had come to the meeting, say all that a next life has to know: stages before the recorded one are passed, those behind
 * it have not begun, and the work of the recorded one is done over, or gone on with from where it stood, unless the meeting was
 * reached. Pure. */
#pragma once

#include <stdbool.h>

/* In order. They come again in every epoch, and those of the work many times in one. The stages from _WORK to _FINISH are the
 * backend's own matter; an exact fit takes no work and has none of them. See docs/reliability.md. */
enum shmt_run_stage {
    SHMT_STAGE_BEGIN,  /* all are there */
    SHMT_STAGE_MAKE,   /* replicas are made */
    SHMT_STAGE_WORK,   /* pieces; batches: my chunks of one */
    SHMT_STAGE_NORM,   /* batches whose update needs norms: the squares of my slice */
    SHMT_STAGE_REDUCE, /* batches on equal copies: my slice of the sum of all gradients */
    SHMT_STAGE_APPLY,  /* batches: my slice of the update; all of it, on equal copies */
    SHMT_STAGE_OFFER,  /* rounds: a gradient */
    SHMT_STAGE_COME,   /* replicas: to a merge */
    SHMT_STAGE_MERGE,  /* replicas: my slice of it */
    SHMT_STAGE_FINISH, /* rounds: I have no more work */
    SHMT_STAGE_FIT,    /* an exact fit: my part of a phase; one after the other, instead of all work */
    SHMT_STAGE_END,    /* the parameters are quiet */
    SHMT_STAGE_PAUSE,  /* whether the epoch is over */
    SHMT_STAGE_SCORE,  /* my part of the validation data */
    SHMT_STAGE_TURN    /* to the next epoch */
};

/* What is to be done of a stage by this life. */
enum shmt_task {
    SHMT_TASK_NONE, /* it is done, and its meeting passed */
    SHMT_TASK_MEET, /* it is done */
    SHMT_TASK_ALL
};

/* An earlier life has died at stage `died_at`, and `met` says whether it had come to the meeting that ends it: what is left of
 * `stage` for the next one. */
static inline enum shmt_task shmt_stage_task(enum shmt_run_stage stage, enum shmt_run_stage died_at, bool met) {
    if (stage < died_at) return SHMT_TASK_NONE;
    return stage == died_at && met ? SHMT_TASK_MEET : SHMT_TASK_ALL;
}
