/* A job: what one worker does from its first item to its last, for the built-in drivers: a model on data, or the application's
 * own worker function. Work item -> order -> model step -> report -> clock, and the evaluation at the end of each epoch. */
#pragma once

#include <shmtrain/model.h>
#include <shmtrain/store.h>
#include <shmtrain/validation.h>
#include <stdbool.h>

#include "train/board.h"
#include "train/fit.h"
#include "train/goal.h"
#include "train/opened.h"
#include "base/guard.h"
#include "ps/session.h"

/* Made before workers exist, constant from then on. */
struct shmt_job {
    const struct shmt_backend *backend;
    struct shmt_store *store;
    const struct shmt_spec *spec;
    struct shmt_board_plan board;
    uint64_t best_off; /* where, from the board's beginning, the parameters of the best epoch so far are kept; 0: nowhere */

    const struct shmtrain_model *model; /* NULL: `worker` is the application's own */
    bool is_offered;                    /* the model is the application's own, too */
    struct shmt_opened opened;          /* it, as long as there are workers */
    struct shmtrain_settings settings;
    const struct shmtrain_data *train, *valid;     /* valid NULL: none */
    const struct shmt_fit *fit;                    /* the model is fitted exactly (fit.h); NULL: it takes steps of its own */
    const uint32_t *train_example, *valid_example; /* where only some examples are meant: which; NULL: all, as they stand */
    const float *valid_label;                      /* (n_valid) */
    struct shmt_guarded train_guard, valid_guard;  /* the files that they are mapped from, which must not change */
    shmtrain_scorer *scorer; /* what validates where there is no model; NULL: nothing, or a guest, who only waits meanwhile */
    void *scorer_arg;
    bool classifies; /* it counts right predictions */
    shmtrain_worker *worker;
    void *worker_arg;
    const struct shmt_slow_plan *slow; /* who is slowed down; NULL: nobody */
    uint64_t ring_every;               /* `notify` also after every so many steps of each seat; 0: not */
    const struct shmt_hooks *hooks;    /* the application's; NULL: none */
    struct shmt_goal goal;             /* what ends the run before its last epoch */
    uint64_t before_ns;                /* that the epoch which it begins with has taken in an earlier run */
    bool guest;                        /* the seat is a guest's, which has been reserved: it begins when the chief lets it in */
    _Atomic uint32_t *admitted;        /* a guest's seats share it: their first epoch, counted from 1; 0: none yet */

    void (*notify)(void *arg); /* called by the chief when an epoch has been pinned up, and see ring_every */
    void *notify_arg;
};

/* Of the job's store. */
static inline struct shmt_board *shmt_job_board(const struct shmt_job *job) {
    return shmt_array_at(job->backend, job->store, SHMT_ARRAY_BOARD);
}

/* Whether epochs end in validation; the same in all seats, guests included. */
static inline bool shmt_job_validates(const struct shmt_job *job) { return job->board.n_valid > 0; }

/* What the model's functions get at this seat. */
static inline struct shmtrain_pass shmt_job_pass(const shmtrain_session *s, const struct shmt_job *job, uint32_t training) {
    return (struct shmtrain_pass){.size = sizeof(struct shmtrain_pass),
                                  .training = training,
                                  .epoch = s->epoch,
                                  .with = &job->settings,
                                  .state = job->opened.state,
                                  .workspace = s->workspace};
}

/* Runs seat `rank` to the end, in its life number `life` (from 0): a later one goes on where the one before stood. Returns 0,
 * or a status with its sentence in *e; _STOPPED when others failed. */
int shmt_job_work(const struct shmt_job *job, uint32_t rank, uint32_t life, struct shmt_error *e);

/* Whether what data is mapped from is as it was checked. Errors: _DATA. */
int shmt_job_check_data(shmtrain_session *s, const struct shmt_guarded *data);

/* The workspace that the model wants for this seat (s->workspace), for at most n examples of `data` at a time. For shmt_own_free. Errors:
 * _MEMORY. */
int shmt_job_make_workspace(shmtrain_session *s, const struct shmt_job *job, const struct shmtrain_data *data, uint64_t n);

/* One call of the model's `score`, which takes no work. Also s->error counts as its failure. */
int shmt_job_score_batch(shmtrain_session *s, const struct shmt_job *job, const struct shmtrain_batch *batch, float *score_out,
                         double *loss_out);

/* Scores part `part` of n_parts of the job's `valid` examples: outputs, losses and right ones go to the board. Waits for
 * nobody. */
int shmt_job_score(shmtrain_session *s, const struct shmt_job *job, uint64_t part, uint64_t n_parts);

/* Of the application's functions and models, at the end of an epoch, while the parameters are quiet: is each of my part of them
 * a finite number? _NUMBERS, naming the table and the row. */
int shmt_job_check_numbers(shmtrain_session *s, uint32_t epoch);

/* Rows of a table, as they lie there one behind the other, of which at least one is not all finite. */
struct shmt_bad_rows {
    const struct shmt_table_spec *table;
    const float *row;
    uint64_t first;        /* the number of the first one */
    const char *when;      /* they were found: "after epoch 3" */
    float rate;            /* 0: of an exact fit, which has none */
    bool pushed;           /* by the application's function, which may be what is wrong */
    const uint32_t *place; /* (rows) of each row as the data counts them, where it lies; NULL: there */
};

/* What to do about a run of SGD that diverges: a smaller rate, or, where the labels are numbers whose squares are too much for 32-bit
 * numbers, other labels. Into `out`; as it stands behind ": ". */
void shmt_job_remedy(const struct shmt_job *job, char *out, uint64_t bytes);

/* _NUMBERS, naming the first bad row. */
int shmt_numbers_refuse(const struct shmt_bad_rows *rows, struct shmt_error *e);

/* The epoch, from 1, with the lowest validation loss of n records; 0: none has one. */
uint32_t shmt_job_best_epoch(const struct shmtrain_epoch *epoch, uint32_t n);

/* The end of an epoch, in every worker; `started_ns`: when it began, in the chief; `fit`: where an exact fit stands, NULL: it is none. */
int shmt_job_evaluate(shmtrain_session *s, const struct shmt_job *job, uint32_t epoch, uint64_t started_ns,
                      const struct shmt_solve_state *fit);
