/* What the files of `api` share: the store as the application's handle. */
#ifndef SHMT_API_STORE_PRIV_H
#define SHMT_API_STORE_PRIV_H

#include <pthread.h>
#include <shmtrain/store.h>
#include <shmtrain/validation.h>

#include "api/background.h"
#include "api/checkpoints.h"
#include "api/copies.h"
#include "api/costs.h"
#include "api/crew.h"
#include "api/deaths.h"
#include "api/lease.h"
#include "api/metrics.h"
#include "api/options.h"
#include "api/progress.h"
#include "api/snapshots.h"
#include "api/stalls.h"
#include "api/standard.h"
#include "api/steps.h"
#include "api/trace.h"
#include "api/trained.h"
#include "api/visit.h"
#include "base/atomic.h"
#include "base/log.h"
#include "ps/backend_ops.h"
#include "ps/slow.h"
#include "runtime/team.h"
#include "topo/topo.h"
#include "train/job.h"

#define SHMT_MAX_OFFERED 16

struct shmt_plan_kept;
struct shmt_arrays_kept;

/* A table as the application declared it, and its parameters while no backend holds them. */
struct shmt_declared {
    struct shmt_table_spec table;
    uint64_t l2_rows;
    float *value; /* (rows, width), or NULL: zero */
    float *state; /* (kept.planes, rows, width), or NULL: to begin anew */
};

/* What the optimizer's state in `state` belongs to. */
struct shmt_kept {
    struct shmt_rule rule;
    float rate;      /* base */
    uint32_t planes; /* 0: no state is kept */
    uint64_t steps;  /* batches that went into it (aggregate) */
};

/* L2 as it was chosen for steps of SGD (penalty.h). */
struct shmt_penalty {
    uint64_t examples;    /* that it was chosen from; 0: it was not */
    uint32_t parts, held; /* they were dealt to, and held out */
    uint32_t fits;
    double loss, l2; /* on examples that were held out; of the objective */
};

/* A report of nothing yet: no name is NULL. */
extern const struct shmtrain_report SHMT_NO_REPORT;

/* A store belongs to one thread of the application. While a run goes on in the background (background.c), its thread has all of
 * it but `busy`, `aside` and `background`, which stay the application's, and what `lock` protects, which both use: tables,
 * live. */
struct shmtrain_store {
    struct shmt_config config;
    struct shmt_error error;
    bool busy;               /* a call that runs workers goes on: others are refused */
    struct shmt_error aside; /* of the calls that are made meanwhile: by listeners, or beside the background */
    struct shmt_background *background;
    pthread_mutex_t lock;
    struct shmtrain_listener listener;
    struct shmt_hooks hooks; /* of its runs' workers; `ask_stop` NULL: there are none */
    struct shmt_log log;
    struct shmtrain_model offered[SHMT_MAX_OFFERED];
    uint32_t n_offered;
    struct shmt_declared table[SHMT_MAX_TABLES];
    uint32_t n_tables;
    struct shmt_kept kept;
    uint64_t n_examples;                   /* of own worker functions */
    struct shmt_arrays_kept *arrays;       /* that the application has given (arrays.h) */
    struct shmtrain_validation validation; /* of own worker functions; n_examples 0: none. Its name is ours */
    int save_as;                           /* the format that models are to be saved in (save.c); 0: one that holds all */

    /* the run, or the last one */
    const struct shmt_backend_ops *ops;
    struct shmt_spec spec;
    struct shmt_store *_Atomic live; /* its parameters */
    int stop_fd;                     /* an eventfd, constant: shmtrain_store_stop writes to it, from anywhere */
    bool timed_out;                  /* the run has been stopped because of its time limit */
    bool stop_asked;                 /* whoever drives the run has read it: see shmt_stop_asked */
    bool quorum_of_all;              /* a quorum was asked for, and is of all workers: none */
    bool rows_by_frequency;          /* of the run that is prepared: rows of table 0 will stand by frequency (places.h) */
    bool is_generated;               /* its data: builtin:..., which is there to show the store at work */
    bool fits;                       /* it is an exact fit (fit.h) */
    bool scales;                     /* it takes steps of SGD on features on one scale (standard.h) */
    uint32_t batch;                  /* of option batch, or by the number of examples; before it is cut into equal parts */
    double example_nonzeros;         /* of that run, on average; 0: unknown */
    struct shmt_deaths deaths;       /* what becomes of it when a worker dies */
    struct shmt_steps steps;         /* what was told of them last */
    struct shmt_stalls stalls;       /* workers that stand still */
    struct shmt_lease lease;         /* its name */
    struct shmt_visit visit;         /* or somebody else's store, that this one looks at or works for */
    struct shmt_checkpoints checkpoints;
    struct shmt_snapshots snapshots; /* for the application */
    struct shmt_job job;
    struct shmt_fit fit;           /* what job.fit points to, where the run fits exactly (`fits`) */
    struct shmt_standard standard; /* features on one scale, when the data is there (`scales`) */
    struct shmt_penalty penalty;
    struct shmt_slow_plan slow;      /* what job.slow points to */
    char *slow_text;                 /* the same, as the option had it: it may be set again before the report is read */
    struct shmt_trace_passes passes; /* of loading, for a trace */
    struct shmtrain_report report;
    struct shmtrain_epoch *epochs;       /* (spec.epochs) what report.epoch points to */
    struct shmt_costs costs;             /* likewise, of its workers and delays */
    struct shmt_metrics metrics;         /* the file that they go to */
    uint64_t began_ns, timed_out_ns;     /* monotonic */
    char mode[64];                       /* the policy's name */
    const char *mode_taken;              /* the mode that it began with, as the options or we named it */
    const char *mode_reason;             /* why it was chosen; "": somebody named it */
    char copies_reason[SHMT_COPIES_WHY]; /* how many copies of the parameters were chosen, and why; "": there was no choice */
    char unwritten[SHMT_ERROR_TEXT];     /* what report.unwritten points to */
    char blas[64];                       /* the library and kernel of the run's products; "": none */
    char *dataset_name, *valid_name;
    bool has_run;
    bool is_of_run;                           /* the parameters are what a run of this store has left */
    bool plans_only;                          /* a plan's own: nothing runs, on whatever machine */
    bool is_before_unmarked;                  /* what table_before is of is a model of data without columns */
    struct shmt_watch *watch[SHMT_N_WATCHES]; /* who looks at its progress: see progress.h */
    struct shmt_plan_kept *plan;              /* the last one; NULL: none */
    char *table_before;          /* while one trains: how the table was read whose parameters it begins with (table.h) */
    struct shmt_trained trained; /* it outlives later runs that fail before they begin */
    struct shmtrain_evaluation evaluation; /* the last one */
    uint64_t *confusion;                   /* what it points to */
};

#define SHMT_GRACE_MS 2000 /* after a failure, until the workers that do not notice are killed */

/* What is asked of who drives a team, on the calling thread. */
struct shmt_driver {
    /* Called whenever there may be news, ten times a second at least; may be NULL. A negative status: the run has failed for a
     * reason that the workers do not know. It has told them by their abort word, and those that do not leave are killed. */
    int (*tick)(struct shmtrain_store *store, const struct shmt_team *team);
    void (*stop)(struct shmtrain_store *store); /* passes a stop on to the workers; NULL: a stop kills them */
};

/* Runs a team to its end on the calling thread. Errors: the tick's status, without its sentence; _STOPPED when a stop has
 * killed the team; the team's. */
int shmt_drive(struct shmtrain_store *store, const struct shmt_team_spec *spec, const struct shmt_driver *driver);

/* How fast a rate goes down where the options leave it to us. Gradients of single examples are noisy to the end, so their rate
 * goes down by the power 2; that of batches by 0.5. A run can learn no more than its rates sum to, which has a bound for powers
 * above 1: their unit of time is a tenth of the run, but an epoch at least. */
void shmt_rate_settle(const struct shmt_config *c, bool noisy, struct shmt_rate *rate);

/* Whether the options say how it goes down. */
bool shmt_rate_is_named(const struct shmt_config *c);

/* The part of the spec that follows from the options: policy, batches, order, rate. `model` NULL: own worker functions. */
int shmt_spec_of_config(struct shmtrain_store *store, const struct shmt_crew *crew, const struct shmtrain_model *model,
                        uint64_t n_examples, struct shmt_spec *out);

struct shmt_rows; /* rows.h */

/* Makes the backend's store, moves the parameters into it, runs all workers, and completes the report. The job's model, data or
 * worker function are set. `rows` is freed as soon as it is in the store; NULL: nothing is known. */
int shmt_run_job(struct shmtrain_store *store, const struct shmt_crew *crew, struct shmt_rows *rows);

/* Refuses what does not fit into memory: the spec's need beside `data_bytes` that are needed, too. */
int shmt_check_memory(struct shmtrain_store *store, const struct shmt_backend_ops *ops, const struct shmt_spec *spec,
                      uint64_t data_bytes);

/* Whether the model is one of the application's, who has offered it to the store. */
bool shmt_store_has_offered(const struct shmtrain_store *store, const struct shmtrain_model *model);

/* Whether the call that goes on has been asked to stop; by the thread that drives it, which passes it on to the workers. What
 * was asked before shmt_stop_forget does not count. */
bool shmt_stop_asked(struct shmtrain_store *store);
void shmt_stop_forget(struct shmtrain_store *store);

/* Every public call but those that are allowed while workers run. 0: the error is clear, go on. _USAGE: a run is going on. */
int shmt_call_idle(struct shmtrain_store *store);

/* Behind shmt_call_idle: refuses a call to which NULL was given for what it needs. */
int shmt_call_given(struct shmtrain_store *store, const void *given, const char *what);

/* shmt_call_idle for a call that runs workers, which ends with `leave`: other calls are refused meanwhile, and a stop counts from now
 * on. */
int shmt_call_enter(struct shmtrain_store *store);
void shmt_call_leave(struct shmtrain_store *store);

/* Where a call that is allowed while workers run leaves its sentence; clear. */
struct shmt_error *shmt_call_error(struct shmtrain_store *store);

/* The runs themselves: what shmtrain_store_run and _train do between enter and leave. */
int shmt_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg);
int shmt_store_train(struct shmtrain_store *store, const char *data);

/* Declares a table: its number, or a status. */
int shmt_store_add_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width);

/* What every run begins with: an empty report, the backend chosen; parameters of an earlier run are kept. */
int shmt_run_begin(struct shmtrain_store *store);

/* Room for the figures of its epochs, when it is known how many it may have (fit.h). Errors: _MEMORY. */
int shmt_run_make_epochs(struct shmtrain_store *store, const struct shmtrain_model *model);

/* parameters.c. Takes parameters and state out of the last run's backend, and destroys it. */
int shmt_store_take_parameters(struct shmtrain_store *store);
/* Whether the spec's optimizer can go on with the state that was taken. Then steps_before is to be set. */
bool shmt_store_has_state_for(const struct shmtrain_store *store, const struct shmt_spec *spec);
/* Puts them into a backend that was just made from store->spec, and makes it the store's. */
int shmt_store_give_parameters(struct shmtrain_store *store, struct shmt_store *made);
void shmt_store_forget_tables(struct shmtrain_store *store);
/* Makes tables and what they were trained with the store's, as after a run. Both are empty behind it. */
void shmt_store_move_in(struct shmtrain_store *store, struct shmt_declared *table, uint32_t n_tables,
                        struct shmt_trained *trained);

/* save.c. Whether the format that was promised holds a model like that, of which no weight is looked at. Errors: _USAGE. */
int shmt_save_check(struct shmtrain_store *store, const struct shmt_trained *like);

/* report.c */
void shmt_report_begin(struct shmtrain_store *store, const struct shmt_crew *crew);
void shmt_report_describe(struct shmtrain_store *store, uint32_t n_threads); /* what follows from job and spec */
bool shmt_report_take_epoch(struct shmtrain_store *store); /* copies the next new epoch from the board; false: there is none */
void shmt_report_progress(struct shmtrain_store *store);   /* copies new epochs from the board and tells the listener */
/* What --count-lost has counted, when the workers have ended; brings the parameters up to it. */
void shmt_report_lost(struct shmtrain_store *store);
int shmt_report_finish(struct shmtrain_store *store);
/* A file that the run was to write cannot be: a note, and report.unwritten unless another one was first. */
void shmt_report_unwritten(struct shmtrain_store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
