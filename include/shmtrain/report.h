/* What a run did: plain numbers, and texts made from them. */
#ifndef SHMTRAIN_REPORT_H
#define SHMTRAIN_REPORT_H

#include <shmtrain/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One epoch. Numbers that nobody computed are NaN. */
struct shmtrain_epoch {
    uint32_t epoch;                               /* from 1 */
    uint32_t partial;                             /* 1: the run was stopped in it */
    uint64_t examples;                            /* trained on in it */
    double seconds;                               /* of training, without evaluation */
    double train_loss;                            /* mean over its examples, each as it was before its own update */
    double valid_loss, valid_accuracy, valid_auc; /* of the parameters at its end, on the validation data */
    double objective,
        bound; /* option tolerance: the objective of the parameters at its end, and what no parameters come below */
    uint64_t sent_bytes, received_bytes; /* over several hosts: by this one, in this epoch */
    uint64_t
        exchanges; /* with the others, in this epoch: batches in `sync`, else rounds or merges; 0: one host, or another program's run */
    uint64_t reserved[3];
};

/* Delay: how many updates of others came between a worker's pull and its push (with replicas: that it had not seen when it
 * pushed), sampled once for a work item. In updates: of single examples in the live modes of sparse models, of items for dense
 * ones, of all workers' gradients in `aggregate`. Percentiles are exact below 16; larger ones may be too large by less than an
 * eighth (12.5 %), and are never too small. */
struct shmtrain_delay {
    uint64_t samples; /* 0: nothing was measured, and the rest is NaN */
    double mean, p50, p99, max;
    double clocks; /* the mean in clocks: in updates of one work item */
    const struct shmtrain_delays *bucket;
    uint32_t n_buckets; /* those with samples only, ascending */
    uint32_t reserved[9];
};

/* Delays from `from` to `to`, both included: so many samples. */
struct shmtrain_delays {
    uint64_t from, to, samples;
    uint64_t reserved;
};

/* Whom a worker has waited for within epochs, the longest first. */
struct shmtrain_waited_for {
    uint32_t worker;
    uint32_t reserved;
    double seconds;
};
#define SHMTRAIN_WAITED_FOR 4

/* What one worker has done in the run; times are those of its threads, added up. */
struct shmtrain_worker_report {
    uint64_t examples, dropped, folded;
    double compute_seconds, merge_seconds; /* merging: of replicas */
    double wait_seconds;                   /* for others within an epoch, as the mode says */
    double wait_epoch_seconds;             /* for others at the ends of epochs */
    double evaluate_seconds;               /* between epochs: evaluation, and the waits for it */
    double checkpoint_seconds;             /* copying what is kept in checkpoints, and the waits for it */
    double load_seconds;                   /* reading data, before training; NaN: of another program's run */
    double delay;                          /* mean, in updates; NaN: not measured */
    uint32_t n_waited_for;
    uint32_t joined; /* 1: by name */
    struct shmtrain_waited_for waited_for[SHMTRAIN_WAITED_FOR];
    uint64_t reserved[16];
};

struct shmtrain_report {
    uint32_t size;                                                     /* as the library knows it: SHMTRAIN_HAS */
    const char *mode, *write, *backend, *model, *optimizer, *schedule; /* names; model "" for own worker functions */
    const char *columns;                 /* rows of parameters: "given" as the data numbers them, or "by frequency" */
    const char *mode_reason;             /* why this mode was chosen where nobody named one; "": somebody did */
    const char *copies_reason;           /* how many copies of the parameters async has taken where nobody named that, and why;
                                            "": there was no choice */
    uint64_t staleness;                  /* UINT64_MAX: no bound */
    uint32_t quorum;                     /* gradients that an update waits for, in workers */
    uint32_t merge_every;                /* clocks between two merges of replicas; 0: one copy */
    const char *replicas, *merge, *late; /* "one", "node", "worker", "equal"; "mean", "sum", "elastic", "damped", or "" with one
                                            copy; "drop",
                                            "fold", or "" without a quorum */
    uint32_t n_replicas;                 /* copies that are trained on */
    uint32_t hot_rows;        /* of a part of the rows: so many, the most frequent ones; all others are shared. 0: of all */
    uint32_t merge_all_every; /* clocks between two merges of all of the parameters; "damped" merges hot lines more often */
    const char *slow;         /* which workers are slowed down on purpose, as option `slow` has it; "": none */
    uint32_t workers, threads, n_epochs;
    uint32_t stopped; /* 1: it ended before its last epoch was done */
    const char
        *stopped_by; /* the option that has ended it ("steps", "time-limit", "target-loss", "patience", "tolerance"), "request"
                               for shmtrain_store_stop, "host" where another host has, "precision" where floats can come no nearer
                               to the optimum; "": it was not stopped, or another program knows */
    uint32_t batch, item; /* examples per update (aggregate), per work item (live) */
    uint64_t seed;
    double rate, l1, l2;
    double weight_decay, clip_value, clip_norm; /* 0: none */
    struct {
        const char *name;
        uint64_t examples, features, nonzeros;
        uint64_t skipped; /* bad lines that were left out (option skip-bad-lines) */
        uint64_t reserved[3];
    } dataset, valid; /* valid.name "": none */
    double best_loss; /* generated data: what the model that made the validation data loses on it; NaN: nobody knows */
    const struct shmtrain_epoch *epoch; /* (n_epochs) those that are done */
    double seconds;                     /* all of the run, loading and evaluation included */
    double load_seconds, train_seconds, first_step_seconds;
    uint64_t examples, updates; /* trained on, in all; applied to the parameters: of a model with several tables, all at once */
    double examples_per_second; /* examples / train_seconds */
    double wait_fraction;       /* of the workers' training time: for others within an epoch, as the mode says */
    double wait_epoch_fraction; /* likewise, for others at the ends of epochs, where all meet in every mode */
    double merge_fraction;      /* likewise, merging replicas */
    /* Examples whose gradients came too late for their update: thrown away, put into a later one. As per_worker, of this host's workers;
     * `examples` is of all hosts. */
    uint64_t dropped, folded;
    uint64_t merges;           /* of replicas, by each worker, in all */
    uint64_t respawns;         /* how often a worker that had died was started again */
    uint64_t redone, skipped;  /* examples of items that dead workers had in hand: done once more; left out, of whole epochs */
    uint64_t stalls;           /* how often a worker stood still for longer than option stall-timeout; 0 in other programs */
    uint32_t checkpoints;      /* that were written; 0 in other programs */
    double checkpoint_seconds; /* for which a thread that trains has stood still for them, on average */
    struct shmtrain_delay delay;
    const struct shmtrain_worker_report *worker; /* (n_workers) with those that joined by name */
    uint32_t n_workers;
    uint32_t waits_mostly_for; /* the worker that most of wait_fraction is about; UINT32_MAX: no single worker, hardly any
                                  waiting, or not measured (option measure) */
    double lost_updates; /* racy: the share of updates of single parameters that others overwrote; NaN: not counted (options
                                   count-lost, race-window; fibers whose memory, or race, takes time) */
    uint32_t with_accuracy, with_auc; /* 1: the model classifies; two classes */
    uint32_t guests;                  /* places for workers that join by name */
    uint32_t cores;                   /* that the run may use; 0: another program knows */
    uint32_t numa_nodes;              /* that the run's memory is spread over; 1: no policy was needed */
    const char *numa;                 /* the policy: "off", "interleave", "bind" */
    uint64_t page_bytes;              /* of the store's memory */
    const char *cpu;                  /* which compilation of the inner loops: "portable", "avx2", "avx512" or "neon" */
    const char *blas;                 /* the BLAS and its kernel, "OpenBLAS 0.3.21 Zen"; "": none was used */
    const char *unwritten; /* the trace, record or metrics could not be written: what a note said of it; "": all is written */
    uint64_t parameter_bytes;
    uint64_t parameters_xxh64; /* XXH64, seed 0, of the final parameters: tables in order, rows in order, little-endian f32 */
    double tolerance; /* how near the optimum the objective was to be proved, as a part of it; NaN: the run took other steps */
    uint64_t choice_examples;               /* L2 is chosen by so many of them; 0: nothing is chosen */
    uint32_t choice_parts;                  /* that they are dealt to */
    uint32_t choice_held;                   /* of which so many are held out, one after the other */
    uint32_t choice_fits, choice_most_fits; /* fits that were made for it so far; at most */
    uint32_t scaled;     /* 1: features are on one scale (option scale): l2 is of such ones, or steps of SGD were */
    uint32_t kept_epoch; /* whose parameters the run has ended with (option keep: best), from 1; 0: the last one's */
    double choice_loss;  /* mean loss of the held-out examples with what was chosen; NaN: not known (yet) */
    double lost_lowest, lost_highest; /* the spread of lost_updates: of the epoch that lost the fewest, and the most; NaN: not
                                         counted, or there was only one epoch */
    double race_seconds; /* option race-window: so long a racy worker waits between loading parameters and storing them; 0: not
                            at all */
    double race_share;   /* the share of its pushes with which it does */
    uint32_t item_updates; /* live modes: 1, a work item is one update, as those of softmax are; 0, each example is */
    double momentum; /* what momentum and nesterov keep of a step; beta1 of adam, adamw and lamb; 0: the others have none */
    double warmup;   /* epochs during which the rate grew from 0 */
    const char
        *spawn; /* what workers are: "processes", "threads" or "fibers", whose times are virtual; "": another program knows */
    const char *sim; /* what work takes in virtual time, as option sim has it, with what was measured; "": nothing was said */
    uint32_t hosts, host; /* of the run, and which of them this one is, from 0 (options hosts, rank); 1 and 0: one alone */
    uint64_t sent_bytes, received_bytes; /* between hosts, by this one */
    double wait_hosts_fraction; /* the part of wait_fraction that was for other hosts; 0: not measured (option measure) */
    /* Of all hosts together, where an update waits for `quorum` of these. 0: not known; it waits for all, and `quorum` is all of this
     * host's. */
    uint32_t all_workers;
};

/* What one worker does, seen from outside. */
struct shmtrain_worker_progress {
    uint64_t examples;                                      /* trained on so far, in the run */
    double examples_per_second;                             /* since the look before */
    double compute_fraction, wait_fraction, merge_fraction; /* of the time since the look before; what is missing is evaluation.
                                               What goes on at the moment counts, and time without a processor as what it
                                               interrupts */
    uint64_t dropped, folded;                               /* examples, so far */
    double delay;                                           /* mean so far, in updates; NaN: not measured (yet) */
    uint32_t joined;                                        /* 1: it joined by name */
    uint32_t here;                                          /* 0: a place for a guest that nobody has taken, or one that left */
    uint32_t stalled; /* 1: it stands still, as a note has said; always 0 in other programs */
    uint32_t reserved[9];
};

/* A checkpoint of a run (option checkpoint): see shmtrain_listener.checkpoint. */
struct shmtrain_checkpoint {
    uint32_t size;       /* as the library knows it: SHMTRAIN_HAS */
    const char *path;    /* of its file */
    uint64_t step;       /* of the run, that it is of */
    uint32_t written;    /* 0: it is about to be written, or could not be; 1: it is there */
    const char *failure; /* why it could not be written; "": it could, or will be seen */
};

/* A run that goes on, at one moment: see shmtrain_listener.progress and shmtrain_store_look. */
struct shmtrain_progress {
    uint32_t size;                   /* as the library knows it: SHMTRAIN_HAS */
    uint32_t epoch, epochs;          /* the epoch that is going on, from 1 (0: none has begun); of how many */
    uint64_t examples, all_examples; /* trained on so far in this epoch; in an epoch */
    double seconds;                  /* since training began, evaluation included */
    double examples_per_second;      /* of all workers, since the look before */
    double loss;                     /* mean over the examples of this epoch so far; NaN: none yet */
    double seconds_left;             /* by the speed so far; NaN: unknown */
    double delay;                    /* of all workers, mean so far, in updates; NaN: not measured (yet) */
    uint64_t dropped, folded;        /* of all workers */
    uint32_t n_workers;
    const struct shmtrain_worker_progress *worker; /* (n_workers) */
    uint32_t hosts;                                /* of the run; 1: one alone, and what follows is 0 */
    uint64_t sent_bytes, received_bytes;           /* between hosts, by this one, since training began */
    uint64_t exchanges; /* with the other hosts, since then: batches in `sync`, rounds in the live modes */
    double sent_bytes_per_second, received_bytes_per_second; /* since the look before */
};

/* So many steps are done (option log-every): about every N of them, at the first look of the application behind that. */
struct shmtrain_steps {
    uint32_t size;              /* as the library knows it: SHMTRAIN_HAS */
    uint64_t step;              /* steps of the run that are done: batches in `sync`, else items, of all workers together */
    uint32_t epoch, epochs;     /* the epoch that is going on, from 1; of how many */
    uint64_t examples;          /* trained on so far, in the run, with the run that it goes on from */
    double seconds;             /* since training began, evaluation included */
    double loss;                /* mean over the examples since the line before; NaN: nobody reports any */
    double examples_per_second; /* since the line before, evaluation included */
};

/* How well one class is told from the others. precision: of what was taken for it, the share that is of it; NaN: nothing was.
 * recall: of what is of it, the share that was taken for it; NaN: nothing is. f1: 2 / (1 / precision + 1 / recall); NaN:
 * neither the data nor a prediction has it. */
struct shmtrain_class_score {
    uint64_t examples, predicted; /* that are of it; that were taken for it */
    double precision, recall, f1;
    uint64_t reserved[3];
};

/* Examples whose probability is in one tenth, bin i from i / 10 on: the mean of these probabilities, and how often that came
 * true; both NaN where there is no example. Of two classes it is the larger label's probability; of more the predicted class's,
 * which comes true where the prediction is right. */
struct shmtrain_calibration_bin {
    uint64_t examples;
    double predicted, observed;
    uint64_t reserved;
};
#define SHMTRAIN_CALIBRATION_BINS 10

/* What a model is worth on some data. Numbers that make no sense for the model are NaN. */
struct shmtrain_evaluation {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint64_t examples;
    uint64_t skipped;              /* bad lines that were left out (option skip-bad-lines) */
    double loss;                   /* mean, weighted where the examples have weights */
    double accuracy;               /* share of right predictions (classifiers) */
    double auc;                    /* area under the ROC curve (two classes) */
    double root_mean_square_error; /* regression; weighted likewise */
    const char *model, *loss_name;
    uint32_t n_classes;        /* 0: no classifier */
    const float *classes;      /* (n_classes) labels, ascending */
    const uint64_t *confusion; /* (n_classes, n_classes): [true class][predicted class] examples */

    double precision, recall, f1; /* of the larger of two labels; of more, means over the classes that the data or a prediction
                                     has, where what is NaN counts as 0 */
    const struct shmtrain_class_score *class_score; /* (n_classes) */
    double calibration_error;                       /* the mean over all examples of |predicted - observed| of their bin */
    double brier; /* mean squared distance of probabilities from 0 or 1; of several classes their sum */
    const struct shmtrain_calibration_bin *bin; /* (SHMTRAIN_CALIBRATION_BINS) NULL: there are no probabilities */
};

/* Several lines: loss, accuracy, AUC, precision and recall, calibration, confusion matrix; at most 80 columns wide. To be
 * freed. */
SHMTRAIN_API char *shmtrain_evaluation_text(const struct shmtrain_evaluation *evaluation);
SHMTRAIN_API char *shmtrain_evaluation_json(const struct shmtrain_evaluation *evaluation);

/* One JSON object, in one line, with a line break at its end; to be freed. NULL: no memory. */
SHMTRAIN_API char *shmtrain_report_json(const struct shmtrain_report *report);

/* The same, for one moment of a run, {"event": "progress", "at": seconds, "epoch": ..., "per_worker": [...]}, and for an epoch
 * that is done, {"event": "epoch", "at": ...}, and for option log-every, {"event": "steps", "at": ..., "step": ...}. `at` is in
 * seconds since training began, evaluation included. These are lines of option `metrics`. */
SHMTRAIN_API char *shmtrain_progress_json(const struct shmtrain_report *so_far, const struct shmtrain_progress *now);
SHMTRAIN_API char *shmtrain_steps_json(const struct shmtrain_report *so_far, const struct shmtrain_steps *steps);
SHMTRAIN_API char *shmtrain_epoch_json(const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch, double at);

/* How far an epoch's objective may be above the optimum, as a part of it; NaN: nobody knows. */
SHMTRAIN_API double shmtrain_epoch_gap(const struct shmtrain_epoch *epoch);

/* Lines for people, at most 80 columns wide, each into `out` (`bytes` large, 0-terminated, no line break): the heading of the
 * table of epochs, one epoch of it. */
SHMTRAIN_API void shmtrain_report_heading(const struct shmtrain_report *report, char *out, size_t bytes);
SHMTRAIN_API void shmtrain_report_line(const struct shmtrain_report *report, const struct shmtrain_epoch *epoch, char *out,
                                       size_t bytes);

/* Of an exact fit that chooses L2 (choice_examples; what steps of SGD choose is in the opening lines), when its first epoch is done:
 * "chosen      --C 0.1 (l2 0.0003071), loss 0.32612 held out", or that it was stopped before; empty where nothing was to be chosen. As
 * the lines above. */
SHMTRAIN_API void shmtrain_report_choice(const struct shmtrain_report *report, char *out, size_t bytes);

/* "step 1200   epoch 3/10   1.23 M examples   loss 0.31250   1.20 M examples/s" */
SHMTRAIN_API void shmtrain_steps_line(const struct shmtrain_steps *steps, char *out, size_t bytes);

/* Several lines: what is about to run; what came out. */
SHMTRAIN_API void shmtrain_report_opening(const struct shmtrain_report *report, char *out, size_t bytes);
SHMTRAIN_API void shmtrain_report_summary(const struct shmtrain_report *report, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
