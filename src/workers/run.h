/* A run, from its options to ended workers, as its subjects see it: what it is, and where each of them keeps what it owns, which
 * its own header alone shows. Owned by the handle, which has all of it. */
#pragma once

#include <shmtrain/store.h>
#include <shmtrain/validation.h>

#include "workers/crew.h"
#include "base/atomic.h"
#include "configuration/call.h"
#include "configuration/copies.h"
#include "configuration/model_options.h"
#include "configuration/options.h"
#include "ps/backend_ops.h"
#include "ps/slow.h"
#include "train/job.h"

struct shmt_checkpoint_in;
struct shmt_checkpoints;
struct shmt_costs;
struct shmt_deaths;
struct shmt_fit;
struct shmt_hosts;
struct shmt_lease;
struct shmt_loading;
struct shmt_metrics;
struct shmt_offered;
struct shmt_parameters;
struct shmt_penalty;
struct shmt_recording;
struct shmt_snapshots;
struct shmt_stalls;
struct shmt_standard;
struct shmt_steps;
struct shmt_visit;
struct shmt_progress_watch;

enum { SHMT_WATCH_LISTENER, SHMT_WATCH_METRICS, SHMT_WATCH_CALLER, SHMT_N_WATCHES }; /* who looks at a run's progress */

struct shmt_run {
    struct shmt_call *call;
    const struct shmt_config *config;
    struct shmt_parameters *params;
    struct shmt_loading *loading;
    const struct shmt_offered *offered;
    struct shmtrain_listener listener;
    struct shmt_hooks hooks; /* of its workers; `ask_stop` NULL: there are none */
    uint64_t lend_bytes;     /* that each of them may lend to collectives; set by the application's thread between runs */
    bool wants_snapshots;    /* the application may ask for some; set by its thread between runs */
    bool keeps_events;       /* of its seats, as for a trace, but for no file */
    double train_limit;      /* seconds from when its workers begin; 0: none */

    /* The run that is prepared or goes on, or the last one. */
    const struct shmt_backend *backend;
    struct shmt_spec spec;
    struct shmt_job job;
    struct shmt_model_texts texts;               /* of the job's model */
    struct shmt_checkpoint_in *from;             /* what it goes on from; NULL: nothing */
    struct shmtrain_validation validation;       /* of own worker functions; n_examples 0: none. Its name is ours */
    uint64_t n_examples;                         /* likewise */
    bool is_generated;                           /* its data: builtin:..., which is there to show the store at work */
    bool fits;                                   /* it is an exact fit (fitting/fit.h) */
    bool scales;                                 /* it takes steps of SGD on features on one scale (standard.h) */
    bool ended_by_host;                          /* another one has wanted it to stop */
    bool timed_out;                              /* it has been stopped because of its time limit */
    uint64_t began_ns, trained_ns, timed_out_ns; /* monotonic; `trained`: its workers began */
    struct shmt_slow_plan slow;                  /* what job.slow points to */

    /* What the spec was made of, where the options left it open (running/spec.c). */
    uint32_t batch;                      /* before it is cut into equal parts */
    bool quorum_of_all;                  /* a quorum was asked for, and is of all workers: none */
    bool rows_by_frequency;              /* rows of table 0 will stand by frequency (places.h) */
    double example_nonzeros;             /* of its data, on average; 0: unknown */
    const char *mode_taken;              /* the mode that it began with, as the options or we named it */
    const char *mode_reason;             /* why it was chosen; "": somebody named it */
    char copies_reason[SHMT_COPIES_WHY]; /* how many copies of the parameters were chosen, and why; "": there was no choice */

    /* The report, and what it points to. */
    struct shmtrain_report report;
    struct shmtrain_epoch *epochs;   /* (spec.epochs) */
    char mode[64];                   /* the policy's name */
    char sim[SHMT_SIM_TEXT];         /* option sim, with what was measured */
    char *slow_text;                 /* the option, which may be set again before the report is read */
    char unwritten[SHMT_ERROR_TEXT]; /* the first file that could not be written */
    char blas[64];                   /* the library and kernel of the run's products; "": none */
    char *dataset_name, *valid_name;

    /* What its subjects own. */
    struct shmt_checkpoints *checkpoints;
    struct shmt_costs *costs;
    struct shmt_deaths *deaths;
    struct shmt_fit *fit;
    struct shmt_hosts *hosts; /* the other ones */
    struct shmt_lease *lease; /* its name */
    struct shmt_metrics *metrics;
    struct shmt_penalty *penalty;
    struct shmt_recording *recording;
    struct shmt_snapshots *snapshots; /* for the application */
    struct shmt_stalls *stalls;
    struct shmt_standard *standard;
    struct shmt_steps *steps;
    struct shmt_visit *visit;                          /* somebody else's store, that this one looks at or works for */
    struct shmt_progress_watch *watch[SHMT_N_WATCHES]; /* who looks at its progress */
};
