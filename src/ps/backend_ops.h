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
 * A run may have seats for guests, which are empty at first: other processes take them by name while it goes on. So a backend is
 * three tables: what a worker does at its seat, what is asked of the store, and, where there are guests, how they come and go.
 *
 * Every entry is called at most a few times per work item, never per example: kernels run on the spans that `bind` fills.
 * A seat belongs to one thread. "May wait": for other seats; returns SHMTRAIN_E_STOPPED when the abort word is set while it
 * waits. All other entries return at once. int results: 0, a positive answer, or a status with its sentence in seat or `e`. */
#pragma once

#include <shmtrain/session.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/process.h"
#include "consistency/stages.h"
#include "ps/array.h"
#include "ps/snapshot.h"
#include "ps/spec.h"
#include "ps/tape.h"
#include "ps/trace.h"
#include "update/span.h"

struct shmt_store; /* each backend defines its own */

struct shmt_counters;
struct shmt_far_ops; /* ps/far.h */

/* Cached pulls: what is known before a copy is made. */
struct shmt_look {
    uint64_t
        slowest; /* the least clock of those who have work, mine included: what they pushed before it is in the parameters */
    uint64_t updates; /* that others have made */
    uint64_t clocks;  /* that others have completed, added up */
};

/* Cached pulls: the last two of the oldest look that the piece in hand has read on the strength of; UINT64_MAX: it has read nothing. */
struct shmt_pulled {
    uint64_t updates, clocks;
};

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
    struct shmt_pulled pulled; /* the session's, with spec.cache_pulls; delays count from there */
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

/* The seat that another seat has waited for, and how long; see ps/waits.h. */
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

/* What a seat has done since it was taken. Written by the seat alone, read by anyone: each number is whole, but they may be of
 * different moments. */
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

/* Where a store is to lie. NULL in its place, or all zeros: anywhere. */
struct shmt_home {
    const struct shmt_topo *topo; /* NULL: pages lie where the system puts them, whatever spec.placement says */
    const struct shmt_log *log;   /* for what the machine refuses and can be done without; may be NULL */
    const char *name;             /* for /proc/PID/maps; NULL: "store" */
    int fd; /* with has_fd: a file of shared memory, with a signature at most, that the store takes over */
    uint32_t has_fd;
    uint64_t *page_bytes_out; /* what the pages are; may be NULL */
};

/* In place of a process: the chief has counted in a dead guest while its seat was being reclaimed. The seat is to be reclaimed
 * again, whoever holds its mark. */
#define SHMT_OCCUPIED_BY_NOBODY UINT32_MAX

/* Who is on a guest's seat. */
enum shmt_occupant {
    SHMT_OCCUPANT_NONE,  /* nobody, or somebody who has just come or gone */
    SHMT_OCCUPANT_WORKS, /* a worker */
    SHMT_OCCUPANT_COMES, /* a program that has reserved it; its worker has not entered yet */
};

/* Bits of the stop word. Over many hosts, what one of them asks for ends the run behind the next batch that all agree on; what
 * has been reached was found by all of them alike, at the end of the same epoch, and ends it there. */
#define SHMT_STOP_ASKED   1u
#define SHMT_STOP_REACHED 2u

/* What a worker does at its seat, by the seat's thread alone. */
struct shmt_seat_ops {
    /* In the worker, after the fork: takes seat `rank`; every seat is taken once per life. In a life after the first (from 0)
     * the seat goes on where the one before stood. Waits for nobody. */
    int (*enter)(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e);
    void (*leave)(struct shmt_seat *seat);

    /* The next piece of this epoch that is mine: 1 and *out; 0: the epoch has no more for me (or the run is to end, or
     * pauses). May wait (aggregate: a worker without a chunk of the batch still takes part in its update). */
    int (*claim)(struct shmt_seat *seat, struct shmtrain_work *out);

    /* Where to read and write table t for the piece in hand; valid until publish. *live_out: as in shmtrain_view. */
    int (*bind)(struct shmt_seat *seat, int t, struct shmt_span *out, int *live_out);

    /* The buffer (rows * width) for the whole gradient of table t; contents undefined. Aggregate: it is the gradient of the
     * piece itself (span->sink), so nothing needs to be pushed afterwards; live: scratch memory of the seat, to be pushed
     * through a kernel. */
    int (*lend)(struct shmt_seat *seat, int t, float **out);

    /* The piece's gradient of table t stands in the lent buffer, and nothing will be added to it. NULL: nobody wants to know. */
    void (*complete)(struct shmt_seat *seat, int t);

    /* Live modes with spec.staleness_aware: the clocks that others have counted since the piece in hand was claimed: the delay of a
     * gradient that is pushed now. NULL: it is always 0. */
    uint64_t (*delay)(const struct shmt_seat *seat);

    /* With spec.cache_pulls: the clocks that I have completed, and, before parameters are copied, where all are. What those who have
     * work have pushed before their clock was `slowest`, and those who have none, is visible afterwards. */
    uint64_t (*clock)(const struct shmt_seat *seat);
    void (*look)(const struct shmt_seat *seat, struct shmt_look *out);

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

    /* Where collectives find their memory (spec.coll), and what they wait with, into *out. NULL: there is one seat. */
    void (*collective)(struct shmt_seat *seat, struct shmt_coll_place *out);
};

/* What is asked of a store, by the application that made it or any worker. None of it waits. */
struct shmt_store_ops {
    void (*destroy)(struct shmt_store *store);

    int (*read)(struct shmt_store *store, int t, uint64_t row, uint64_t n, float *out);       /* as it is at the moment */
    int (*write)(struct shmt_store *store, int t, uint64_t row, uint64_t n, const float *in); /* while nobody trains */

    /* A named array whole, as shmt_array_of (ps/array.h), which says when each may be read or written. It is the store's memory, until
     * `destroy`. */
    struct shmt_array (*array)(struct shmt_store *store, enum shmt_array_name name, int t, uint32_t plane);

    /* count_lost: the sum of all counts of updates, of which counters.touched were made; 0: not counted. Where nobody pushes: between
     * two epochs, and when workers have ended; then the parameters are brought up to what was counted. */
    int (*lost)(struct shmt_store *store, bool ended, uint64_t *counted_out);
    const struct shmt_counters *(*counters)(struct shmt_store *store, uint32_t rank);
    const struct shmt_ring *(*ring)(struct shmt_store *store, uint32_t rank); /* its events (spec.trace_events); NULL: none */
    struct shmt_tape *(*tape)(struct shmt_store *store, uint32_t rank); /* its gradients (spec.tape); NULL: none are kept */

    /* For messages: the step (an item, or a batch) of this epoch that seat `rank` has begun and not completed, into *step_out:
     * 1; 0: there is none. NULL: nobody knows. */
    int (*in_hand)(struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *step_out);

    /* Words in the store's memory, for all its processes. Bits of the stop word (SHMT_STOP_...): the run ends at the next consistent
     * point; anybody may set them, also a signal handler. In the abort word: all give up at once; a supervisor sets it and calls `wake`,
     * which wakes all that wait, as it must after a death, too. */
    _Atomic uint32_t *(*stop_word)(struct shmt_store *store);
    _Atomic uint32_t *(*abort_word)(struct shmt_store *store);
    void (*wake)(struct shmt_store *store);

    /* The process at seat `rank` has died: undoes what it had begun and releases what it held. Then either its next life enters
     * (`comes_back`), or nobody waits for the seat any more. Called by the process that has collected the dead one, before any other
     * knows of it; allocates and locks nothing. NULL: a death ends the run. */
    void (*reclaim)(struct shmt_store *store, uint32_t rank, int comes_back);

    /* Snapshots (SHMT_CAP_PAUSE; else NULL), by the application. `request_snapshot`: one is to be taken at the next consistent
     * point. `snapshot`: 1 and *out, which does not change until `release_snapshot`; 0: there is none. `final_snapshot`, when the
     * workers have ended: the same, of where they have ended. `resume`, before workers begin: what was done of epoch
     * spec.first_epoch (both (pieces), as in a snapshot; NULL: nothing); the caller writes parameters and state. _DATA: that cannot
     * be what spec.first_step steps of that epoch have done. */
    void (*request_snapshot)(struct shmt_store *store);
    int (*snapshot)(struct shmt_store *store, struct shmt_snapshot *out);
    void (*release_snapshot)(struct shmt_store *store);
    int (*final_snapshot)(struct shmt_store *store, struct shmt_snapshot *out);
    int (*resume)(struct shmt_store *store, const uint32_t *done, const double *loss, struct shmt_error *e);
};

/* Seats that other processes take and give back while the run goes on. */
struct shmt_guest_ops {
    /* By a process that joins. `reserve` takes guest's seat `rank` for it: 1, or 0 when it is not free; _USAGE when the run is
     * over. `unreserve` gives it back, by the same process, if nobody has entered. After `enter`, `admit` waits until the chief
     * lets the guest in, which it does between two epochs: 1: go on with `claim`; 0: the run has ended meanwhile.
     * `request_leave`: at the end of the epoch `turn` (or `admit`) returns 0, for the guest alone; signal-safe. */
    int (*reserve)(struct shmt_store *store, uint32_t rank, struct shmt_error *e);
    void (*unreserve)(struct shmt_store *store, uint32_t rank);
    int (*admit)(struct shmt_seat *seat);
    void (*request_leave)(struct shmt_store *store, uint32_t rank);

    /* By the application that made the store: `occupied`: the process that has reserved the seat, 0: none, or
     * SHMT_OCCUPIED_BY_NOBODY. `occupant`: into *out the process that works there, which may be a fork of the first. `reclaim`:
     * the process has died: the caller holds its mark (`marked`), or its life says so. The others no longer wait for it. 1: the
     * run goes on without it; 0: it cannot, because a gradient is missing, or with replicas a part of a merge; -1: nothing was
     * done, another guest has come. To be called until the seat is not occupied. */
    uint32_t (*occupied)(struct shmt_store *store, uint32_t rank);
    enum shmt_occupant (*occupant)(struct shmt_store *store, uint32_t rank, struct shmt_life *out);
    int (*reclaim)(struct shmt_store *store, uint32_t rank, bool marked);
};

struct shmt_backend {
    const char *name, *about;
    uint32_t caps;
    const struct shmt_seat_ops *seat;
    const struct shmt_store_ops *store;
    const struct shmt_guest_ops *guests; /* SHMT_CAP_JOIN; else NULL */
    const struct shmt_far_ops *far;      /* runs over many hosts (ps/far.h); NULL: there are none */

    /* Pure: what `create` will need. Refuses a spec that this backend cannot serve. */
    int (*plan)(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e);

    /* Makes the store, parameters zero; before workers exist. `spec` is copied; `home` may be NULL. Errors: _MEMORY, _SYSTEM,
     * and those of plan. */
    int (*create)(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e);
};

/* Of arrays that are not of a table or a plane, or of the first. */
static inline void *shmt_array_at(const struct shmt_backend *backend, struct shmt_store *store, enum shmt_array_name name) {
    return backend->store->array(store, name, 0, 0).at;
}
