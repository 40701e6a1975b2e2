/* THE CONTRACT: what a backend is. A new backend can be written from this header.
 *
 * A backend says where parameters live and how workers meet; it knows nothing of models, data or processes. A *store* holds the
 * parameters of one run; a *seat* is one worker's place at it. Life of a store:
 *
 *     plan -> create -> [write] -> workers -> read -> destroy
 *     each worker: enter -> { claim, (bind, lend), publish } as often as there is work -> meet -> tally -> turn -> ... -> leave
 *
 * In a run that may pause (spec.pauses) `claim` finds no more work before a pause, too. There it is, behind the meeting:
 *
 *     meet -> pause -> [the epoch is over: tally] -> copy -> turn
 *
 * A run may have seats for guests, which are empty at first: other processes take them by name while it goes on.
 *
 * Every entry is called at most a few times per work item, never per example: kernels run on the spans that `bind` fills.
 * A seat belongs to one thread. "May wait": until others arrive; returns SHMTRAIN_E_STOPPED when the abort word is set while it
 * waits. All other entries return at once. int results: 0, a positive answer, or a status with its sentence in seat or `e`. */
#ifndef SHMT_PS_BACKEND_OPS_H
#define SHMT_PS_BACKEND_OPS_H

#include <shmtrain/session.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/process.h"
#include "ps/snapshot.h"
#include "ps/spec.h"
#include "ps/trace.h"
#include "store/span.h"

struct shmt_store; /* each backend defines its own */

struct shmt_counters;

/* What every backend's seat begins with. */
struct shmt_seat {
    struct shmt_error error; /* the sentence of the first failure */
    struct shmt_counters *counters;
    _Atomic uint64_t *meter;  /* the one of them that this seat's time goes to; NULL: none (ps/meter.h) */
    struct shmt_trace *trace; /* what it does when; NULL: that is not kept */
    uint32_t rank, life;
    uint32_t index, n_present; /* I am number `index` of the seats that take part in this epoch, in the order of ranks */
    bool behind;               /* the others may be in the next epoch already: an earlier life had ended this one */
    uint32_t first_epoch;      /* the one that this life has begun with: of a guest, once it is let in */
    bool cut;                  /* of a fit: its epoch ends in the middle, and leaves nothing to go on from */
    uint64_t round;            /* the session's: the phase of a fit that it is at, kept for its next life */
};

/* A seat's way through a run, in order; all but those of the work come again in every epoch. A backend has the stages from
 * _WORK to _FINISH to itself, and in a fit, which takes no work, none. See docs/reliability.md. */
enum shmt_run_stage {
    SHMT_STAGE_BEGIN,  /* all are there */
    SHMT_STAGE_MAKE,   /* replicas are made */
    SHMT_STAGE_WORK,   /* pieces; batches: my chunks of one */
    SHMT_STAGE_APPLY,  /* batches: my slice of the update */
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

/* What is to be done of a stage by this life of a seat. */
enum shmt_task {
    SHMT_TASK_NONE, /* it is done, and its meeting passed */
    SHMT_TASK_MEET, /* it is done */
    SHMT_TASK_ALL
};

enum shmt_caps {
    SHMT_CAP_MANY = 1,      /* more than one seat */
    SHMT_CAP_PROCESSES = 2, /* seats may be taken in forked processes */
    SHMT_CAP_STEADY = 4,    /* live views are copies: nothing changes in them */
    SHMT_CAP_JOIN = 8,      /* other processes may take seats of it while it runs (guests) */
    SHMT_CAP_PAUSE = 16     /* runs may pause for snapshots, and begin where one was taken */
};

/* Bytes that a store will need. */
struct shmt_need {
    uint64_t parameter_bytes, state_bytes, gradient_bytes, other_bytes, total_bytes;
};

/* Sums over an epoch, taken at its end. */
struct shmt_tally {
    uint64_t examples, pieces; /* that were done */
    uint64_t lost;             /* examples of pieces that guests had in hand when they died */
    double loss;               /* the reported losses, added along a tree over the pieces */
};

/* For whom a seat has waited, and how long; see ps/waits.h. */
struct shmt_waited_for {
    _Atomic uint64_t ns;
    _Atomic uint32_t rank; /* plus 1; 0: the entry is free */
    uint32_t reserved;
};
#define SHMT_WAITED_FOR 8

/* Delays that were sampled, see ps/delay.h. */
#define SHMT_DELAY_BUCKETS 328
struct shmt_delays {
    _Atomic uint64_t samples, sum, max;
    _Atomic uint32_t bucket[SHMT_DELAY_BUCKETS];
};

/* What a seat has done since it was taken; written by it alone, read by anyone (each number whole, not all of one moment). */
struct shmt_counters {
    _Atomic uint64_t examples, updates;
    _Atomic uint64_t touched; /* count_lost: updates of single floats */
    /* Times are read by shmt_meter_read (ps/meter.h). Waits are those of training, not for evaluation or for a late start. */
    _Atomic uint64_t wait_clock_ns, wait_epoch_ns;
    _Atomic uint64_t busy_ns;         /* at work, with what comes between two pieces */
    _Atomic uint64_t evaluate_ns;     /* between two epochs: evaluation, and the waits for it */
    _Atomic uint64_t merge_ns;        /* merging replicas, without the waits for it */
    _Atomic uint64_t pause_ns;        /* taking snapshots, and the waits for it */
    _Atomic uint64_t loss_bits;       /* a double: the reported losses of these examples, added up */
    _Atomic uint64_t dropped, folded; /* examples whose gradients were late */
    _Atomic uint64_t merges;
    _Atomic uint64_t looks; /* of a fit: times that it has looked up from its work within a phase, which says that it goes on */
    _Atomic uint64_t redone; /* examples of pieces that an earlier life had in hand when it died */
    struct shmt_waited_for waited_for[SHMT_WAITED_FOR];
    struct shmt_delays delays;
};

/* Where a store is to live; NULL in its place, or all zeros: wherever there is room. */
struct shmt_home {
    const struct shmt_topo *topo; /* NULL: pages lie where the system puts them, whatever spec.placement says */
    const struct shmt_log *log;   /* for what the machine refuses and can be done without; may be NULL */
    const char *name;             /* for /proc/PID/maps; NULL: "store" */
    int fd; /* with has_fd: a file of shared memory, with a signature at most, that the store takes over */
    uint32_t has_fd;
    uint64_t *page_bytes_out; /* what the pages are; may be NULL */
};

/* Instead of a process: who had the seat was mourned, and counted in by the chief at the same moment. To be mourned again, whoever
 * holds its mark. */
#define SHMT_OCCUPIED_BY_NOBODY UINT32_MAX

/* Who is on a guest's seat. */
enum shmt_occupant {
    SHMT_OCCUPANT_NONE,  /* nobody, or somebody who has just come or gone */
    SHMT_OCCUPANT_WORKS, /* a worker */
    SHMT_OCCUPANT_COMES, /* a program that has reserved it; its worker has not entered yet */
};

struct shmt_backend_ops {
    const char *name, *about;
    uint32_t caps;

    /* Pure: what `create` will need. Refuses a spec that this backend cannot serve. */
    int (*plan)(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e);

    /* Makes the store, parameters zero; before workers exist. `spec` is copied; `home` may be NULL. Errors: _MEMORY, _SYSTEM,
     * and those of plan. */
    int (*create)(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e);
    void (*destroy)(struct shmt_store *store);

    /* In the worker, after the fork: takes seat `rank`; every seat is taken once per life. In a life after the first (from 0)
     * the seat goes on where the one before stood. Waits for nobody. */
    int (*enter)(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e);
    void (*leave)(struct shmt_seat *seat);

    /* The process that had the seat has died in life `life`: takes back what it had begun and lets go of what it held. Then
     * either the next life enters (`comes_back`), or nobody waits for the seat any more. By whoever has collected the process,
     * before anybody else knows; allocates and locks nothing. NULL: a death is the end of the run. */
    void (*bury)(struct shmt_store *store, uint32_t rank, int comes_back);

    /* Guests (SHMT_CAP_JOIN; else NULL). `reserve` takes guest's seat `rank` for this process: 1, or 0 when it is not free;
     * _USAGE when the run is over. `unreserve` gives it back, by the same process, if nobody has entered. After `enter`,
     * `admit` waits until the chief lets the guest in, which it does between two epochs: 1: go on with `claim`; 0: the run
     * has ended meanwhile. `part` asks to be let go at the end of the epoch: `turn` (or `admit`) returns 0 then, for the
     * guest alone; signal-safe.
     *
     * By the application that made the store: `occupied`: the process that has reserved the seat, 0: none, or
     * SHMT_OCCUPIED_BY_NOBODY. `occupant`: the process that works there, which that one may have forked, into *out. `mourn`: the
     * process has died, as the caller knows, who has its mark (`marked`), or as its life says; the others do not wait for it
     * any more. 1: the run goes on without it; 0: it cannot, a gradient of it is missing, or with replicas its part of a
     * merge; -1: nothing was done, somebody else has come. To be called until the seat is not occupied. */
    int (*reserve)(struct shmt_store *store, uint32_t rank, struct shmt_error *e);
    void (*unreserve)(struct shmt_store *store, uint32_t rank);
    int (*admit)(struct shmt_seat *seat);
    void (*part)(struct shmt_store *store, uint32_t rank);
    uint32_t (*occupied)(struct shmt_store *store, uint32_t rank);
    enum shmt_occupant (*occupant)(struct shmt_store *store, uint32_t rank, struct shmt_life *out);
    int (*mourn)(struct shmt_store *store, uint32_t rank, bool marked);

    /* The next piece of this epoch that is mine: 1 and *out; 0: the epoch has no more for me (or the run is to end, or
     * pauses). May wait (aggregate: a worker without a chunk of the batch still takes part in its update). */
    int (*claim)(struct shmt_seat *seat, struct shmtrain_work *out);

    /* Where to read and write table t for the piece in hand; valid until publish. *live_out: as in shmtrain_view. */
    int (*bind)(struct shmt_seat *seat, int t, struct shmt_span *out, int *live_out);

    /* The buffer (rows * width) for the whole gradient of table t; contents undefined. Aggregate: it is the gradient of the
     * piece itself (span->sink), so nothing needs to be pushed afterwards; live: scratch memory of the seat, to be pushed
     * through a kernel. */
    int (*lend)(struct shmt_seat *seat, int t, float **out);

    /* The loss of the piece in hand, summed over its examples. */
    void (*report)(struct shmt_seat *seat, double loss);

    /* The piece in hand is complete. Live: counts a clock and waits as the policy says. Batches: after my last chunk of the
     * batch, waits for all gradients, applies my slice of the update, waits for all slices. Rounds: counts a clock, waits as
     * the policy says, and until the updates that the next clock must see are applied. May wait. */
    int (*publish)(struct shmt_seat *seat, struct shmtrain_fate *out);

    /* I begin this stage, which `meet` will end: what of it is left to do for this life (`turn` begins its own). Stages are
     * begun in their order. NULL: there are no lives but the first. */
    enum shmt_task (*stage)(struct shmt_seat *seat, enum shmt_run_stage stage);

    /* Waits until all seats have called it: parameters are quiet from then on, until `turn`. */
    int (*meet)(struct shmt_seat *seat);

    /* Between the meeting and the turn: sums over the epoch. */
    int (*tally)(struct shmt_seat *seat, struct shmt_tally *out);

    /* Ends the epoch, or the pause, for all; everybody's meeting point. 1: on to the next, or on with this one, 0: the run
     * is over (all epochs or steps are done, or stop was asked for). May wait. */
    int (*turn)(struct shmt_seat *seat);

    /* Pauses (SHMT_CAP_PAUSE; else NULL), in runs whose spec allows them. `pause`, behind the meeting: 1: the epoch is not
     * over, 0: it is; everybody's meeting point: may wait. `copy`, before `turn`: my part of the snapshot, where one is
     * taken, in a pause or at the end of an epoch. 1, or 0: none is taken. */
    int (*pause)(struct shmt_seat *seat);
    int (*copy)(struct shmt_seat *seat);

    /* By the application that made the store: `ask` for a snapshot at the next consistent point. `snapshot`: 1 and *out, which
     * stays as it is until `release`; 0: there is none. `stand`, when the workers have ended: the same of where they have,
     * whatever there was. `resume`, before they begin: what was done of epoch spec.first_epoch (both (pieces), as in a
     * snapshot; NULL: nothing); parameters and state are written by the caller. _DATA: it cannot be that spec.first_step of
     * its steps are done, or those of `sync`. */
    void (*ask)(struct shmt_store *store);
    int (*snapshot)(struct shmt_store *store, struct shmt_snapshot *out);
    void (*release)(struct shmt_store *store);
    int (*stand)(struct shmt_store *store, struct shmt_snapshot *out);
    int (*resume)(struct shmt_store *store, const uint32_t *done, const double *loss, struct shmt_error *e);

    /* ---- from the application, or any worker ---- */
    int (*read)(struct shmt_store *store, int t, uint64_t row, uint64_t n, float *out);       /* as it is at the moment */
    int (*write)(struct shmt_store *store, int t, uint64_t row, uint64_t n, const float *in); /* while nobody trains */
    float *(*weight)(struct shmt_store *store, int t);   /* (rows * width) the parameters themselves, while nobody trains; for
                                                            whoever puts them back together with their state */
    float *(*l2_share)(struct shmt_store *store, int t); /* (rows), to be filled before workers enter; NULL: not asked for */
    uint32_t *(*row_place)(struct shmt_store *store);    /* (rows of table 0) the row of each feature, for whoever looks from
                                                            outside; to be filled before workers enter; NULL: not asked for */
    float *(*curvature)(struct shmt_store *store);       /* of the mean loss along each row of table 0 that
                                                           replicas hold (struct shmt_cover), likewise */
    float *(*state)(struct shmt_store *store, int t,
                    uint32_t plane); /* (rows * width) of the rule's state; NULL: there is none.
                                                                         While nobody trains */
    /* count_lost: the sum of all counts of updates, of which counters.touched were made; 0: not counted. Where nobody pushes: between
     * two epochs, and when workers have ended; then the parameters are brought up to what was counted. */
    int (*lost)(struct shmt_store *store, bool ended, uint64_t *counted_out);
    void *(*head)(struct shmt_store *store);  /* spec->head_bytes of shared zeros, before all else in the segment */
    void *(*board)(struct shmt_store *store); /* spec->board_bytes of shared zeros, aligned to a page */
    const struct shmt_counters *(*counters)(struct shmt_store *store, uint32_t rank);
    /* For messages: the step (an item, or a batch) of this epoch that seat `rank` has begun and not completed, into *step_out:
     * 1; 0: there is none. NULL: nobody knows. */
    int (*in_hand)(struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *step_out);
    const struct shmt_ring *(*ring)(struct shmt_store *store, uint32_t rank); /* its events (spec.trace_events); NULL: none */
    void (*stop)(struct shmt_store *store); /* asks all to end at the next consistent point; signal-safe, never blocks */
    _Atomic uint32_t *(*stop_word)(struct shmt_store *store);  /* nonzero: that was asked for; to be read */
    _Atomic uint32_t *(*abort_word)(struct shmt_store *store); /* nonzero: give up at once; shared, to be set by a supervisor */
    void (*rouse)(struct shmt_store *store); /* wakes all who wait, after the abort word was set or somebody died */
};

#endif
