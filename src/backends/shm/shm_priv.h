/* What the files of the shm backend share: the store as one process sees it, and a seat. */
#pragma once

#include "backends/shm/layout.h"
#include "backends/shm/ledger.h"
#include "ps/far.h"
#include "consistency/chunks.h"
#include "segment/segment.h"

struct shmt_store {
    struct shmt_spec spec;
    struct shmt_shm_layout layout;
    struct shmt_segment segment;
#define SHMT_SHM_STORE_PART(name, type, n, each, alignment) type *name; /* where it is in this process */
    SHMT_SHM_PARTS(SHMT_SHM_STORE_PART)
#undef SHMT_SHM_STORE_PART
    _Atomic uint32_t
        reserved_as; /* of this process, no part of the segment: what its last reservation has put into a `guest` word */
};

/* Where the finished sum of a subtree stands after all seats have added theirs: a function of the configuration. */
struct shmt_shm_node {
    uint32_t seat,
        slot; /* seat UINT32_MAX: of more than one seat, to be added; n_seats: another host's, number `slot` of those */
};

#define SHMT_SHM_TIMED 16 /* of so many blocks one is timed for a trace: looking at the clock costs as much as a block */

/* For a trace: nanoseconds of those blocks that were timed, and how many there were in all. */
struct shmt_shm_times {
    uint64_t aggregate_ns, update_ns, blocks;
};

struct shmt_shm_seat;
struct shmt_shm_rounds; /* rounds_priv.h */

/* Where the pushes of a seat's piece go; each in the shape of the flat array. */
struct shmt_shm_memory {
    const float *weight;
    float *sink;             /* == weight, or a gradient buffer */
    float *state;            /* of the rule, beside the sink; NULL: none, or the update comes later */
    uint8_t *touched;        /* the map of a gradient buffer; NULL: none is kept */
    struct shmt_terms terms; /* of the whole flat array; where there is no list its head is NULL */
};

/* One stage of a seat's way (consistency/stages.h); stages.c does what all of them need, around these. Entries may be NULL where
 * nothing is to be done. */
struct shmt_shm_stage {
    /* Sets what its record says in p->now, besides what all say: piece, flag, turned; and the undo word of an APPLY, which says how
     * far that has come: so it is called before the record counts, and not again by a life that continues the stage. */
    void (*record)(struct shmt_shm_seat *p);
    bool names_piece; /* p->now.piece is one that I am at, and the ledger does not say so */

    void (*work)(struct shmt_shm_seat *p);

    /* A meeting ends it: the counter that my waits there go to; NULL: none does. */
    _Atomic uint64_t *(*wait)(const struct shmt_shm_seat *p);

    /* Engines: an earlier life has died in it. Goes on from there until pieces can be dealt: 1, or 0: this epoch has none for me.
     * May wait. NULL: nothing is to be done first. */
    int (*resume)(struct shmt_shm_seat *p);
};

/* What one family of policies does where they differ: dealing work, taking pushes, bringing them to the parameters. One
 * constant table for each, at the end of the file that is named after it. Entries may be NULL where nothing is to be done, but
 * for claim, publish, memory and updates. All are called by the seat's owner; "may wait" as in ps/backend_ops.h. */
struct shmt_shm_engine {
    struct shmt_shm_stage stage[SHMT_STAGE_FIT]; /* those of the engine's own; _BEGIN is the session's */

    int (*enter)(struct shmt_shm_seat *p); /* sentence in the seat */
    void (*leave)(struct shmt_shm_seat *p);

    /* Who takes part may have changed, and an epoch begins for them. */
    void (*share)(struct shmt_shm_seat *p);

    /* Before the first claim of an epoch, or behind a pause, or of a life: 1, or a status. May wait. */
    int (*begin)(struct shmt_shm_seat *p);

    /* 1: p->piece and p->work; 0: this epoch has no more for me, and all that I pushed is on its way. May wait. */
    int (*claim)(struct shmt_shm_seat *p);

    /* Before I wait for items of other hosts: what I have pushed is on its way. */
    void (*idle)(struct shmt_shm_seat *p);

    void (*memory)(const struct shmt_shm_seat *p, struct shmt_shm_memory *out);
    void (*complete)(struct shmt_shm_seat *p, uint32_t t);              /* see ps/backend_ops.h */
    int (*publish)(struct shmt_shm_seat *p, struct shmtrain_fate *out); /* may wait */

    /* All have met: the epoch is over for all. */
    void (*align)(struct shmt_shm_seat *p);

    /* Delay: updates of others that a pull of mine sees now; and how many I have not seen in what I have pushed, where that is more
     * than those since then, p->others. */
    uint64_t (*updates)(const struct shmt_shm_seat *p);
    uint64_t (*missed)(const struct shmt_shm_seat *p);

    /* Between two epochs, by the chief: a guest is about to be counted in at seat `rank`. */
    void (*welcome)(struct shmt_shm_seat *chief, uint32_t rank);
};

extern const struct shmt_shm_stage SHMT_SHM_ENDS[SHMT_STAGE_TURN + 1]; /* shm.c: from _FIT on, of all engines */
extern const struct shmt_shm_engine SHMT_SHM_LIVE, SHMT_SHM_BATCHES, SHMT_SHM_ROUNDS, SHMT_SHM_REPLICAS;

/* Private to its owner. */
struct shmt_shm_seat {
    struct shmt_seat seat;
    struct shmt_store *store;
    struct shmt_shm_front *front;
    struct shmt_shm_slot *slot;
    const struct shmt_shm_engine *engine;
    float *weight, *state; /* batches, rounds: what I read, and what I update: the store's, or my copy's where all are equal */
    struct shmt_gates meeting, clocks; /* the same gates, seen by all who live and by all who have work */
    uint64_t phase, clock;             /* mine, as published */
    uint32_t epoch;
    uint64_t present[SHMT_MAX_SEATS / 64]; /* a bit for each seat: it takes part in this epoch */
    bool over;                             /* the run has come to its end */
    bool pausing, copying;                 /* as control says behind the meeting of a pause */
    uint64_t look_in;                      /* chief: so many pieces until it counts how many steps are done */
    bool guest;
    bool not_mine;              /* a guest: its seat was given up before it was let in, and may be another one's */
    bool in_work;               /* the stage _WORK was begun, until the next turn */
    bool revived;               /* an earlier life of mine has died, and I have not come to the stage that it was at yet; ... */
    bool met;                   /* ... it had reached the meeting at that stage's end */
    struct shmt_shm_record now; /* my last record; of an earlier life, while `revived` */
    uint64_t done;              /* all but batches: pieces of the epoch that I have done */
    uint64_t first;             /* since all met last: rounds: the number of the first update; replicas: what `done` was */
    uint64_t examples, loss_bits; /* what my counters are, but for the piece in hand */
    uint64_t left_behind;         /* the ledger's pieces from here on may be such that an earlier life had in hand */
    struct shmt_undo undo;        /* where I keep the old bytes of what I change */
    struct shmt_shm_times times;  /* aggregate: of the update that I am at */
    struct shmt_trace trace;      /* what seat.trace points to, where there is one */
    _Atomic uint64_t *wait_ns;    /* the counter of the waits that come next */
    uint64_t waited_ns;           /* what stood there when the wait began that goes on */
    uint64_t clocks_of_others;    /* staleness-aware: what they were when the piece in hand was claimed */
    uint64_t others;              /* updates of others when the piece in hand was pulled; meaningless where it is not sampled */
    struct shmtrain_work work;
    uint64_t piece;            /* the one in hand */
    uint64_t slowest;          /* all but batches: the least clock that I have seen of those who have work */
    struct shmt_claims claims; /* all but batches: where I look for the next piece, */
    struct shmt_share share;   /* ... where there are other hosts, of this host's, in epoch share_epoch */
    uint32_t share_epoch;
    uint64_t
        passed; /* ... of what was passed on to this host, the next one to ask for; the link: from here on all of the share is taken */
    float *scratch;           /* live modes: lent gradients; made when asked for */
    uint64_t step;            /* aggregate: the batch, within the epoch */
    uint32_t from, to, chunk; /* aggregate: my chunks, and the next one */
    struct shmt_stack stack;  /* aggregate: what my buffers hold */
    uint64_t cut_step;        /* batches, chief: where it was counted last; SHMT_NO_LIMIT: others took part then */
    uint64_t announced,
        reduced; /* batches: a bit for each table, in this batch: I have said that my gradient of it is complete; my
                                    slice of its sum is there */
    bool listed; /* batches: my slice's lists are summed already, in this batch */
    bool sums;   /* batches: they may hold something, in this batch */
    struct shmt_shm_node *nodes;      /* aggregate: (2 * n_chunks), subtree (level, i) at place (n_chunks >> level) + i */
    struct shmt_shm_rounds *rounds;   /* rounds: see rounds_priv.h */
    struct shmt_shm_merging *merging; /* replicas: see replicas_priv.h */
};

static inline struct shmt_shm_seat *shmt_shm_seat_of(struct shmt_seat *seat) { return (struct shmt_shm_seat *)(void *)seat; }
static inline bool shmt_shm_is_live(const struct shmt_store *store) { return shmt_policy_is_live(&store->spec.policy); }

/* What the seat's word says at the moment. It changes between two epochs; in the live modes with one copy also when a guest
 * dies, anywhere else a guest's death ends the run. acquire: what a guest's owner or the chief wrote before it was counted in
 * is there; pairs with their releases. */
static inline bool shmt_shm_is_present(const struct shmt_store *store, uint32_t seat) {
    return load_acquire(&store->front[seat].alive) != 0;
}

/* Takes part in this epoch, as I found when it began: whatever becomes of the words of the store, all that I count and divide
 * by is of one look. */
static inline bool shmt_shm_takes_part(const struct shmt_shm_seat *p, uint32_t seat) {
    return p->present[seat / 64] >> seat % 64 & 1;
}

/* The link's, behind those of all workers (ps/far.h): it is at every meeting, and has no share of anything. */
static inline bool shmt_shm_is_link(const struct shmt_shm_seat *p) { return p->seat.rank == p->store->spec.n_seats; }
extern const struct shmt_far_ops SHMT_SHM_FAR;                 /* batches/far.c */
extern const struct shmt_far_live_ops SHMT_SHM_FAR_LIVE;       /* live/far_live.c, */
extern const struct shmt_shm_engine SHMT_SHM_LINK;             /* ... and the engine of its seat */
extern const struct shmt_far_merge_ops SHMT_SHM_FAR_MERGES;    /* replicas/far_merges.c */
extern const struct shmt_far_quorum_ops SHMT_SHM_FAR_QUORUMS;  /* rounds/far_rounds.c */
extern const struct shmt_far_passing_ops SHMT_SHM_FAR_PASSING; /* live/passing.c */

/* live/passing.c: what was passed on to this host, when all of its own is taken: 1: *piece_out; 0: there is nothing more in this epoch, or
 * the run is asked to stop; _STOPPED. Waits for other hosts to be done, too. */
int shmt_shm_claim_passed(struct shmt_shm_seat *p, uint64_t *piece_out);

/* By the link, at the end of an epoch: what it has given away, and nobody has done by then, has not been begun. */
void shmt_shm_free_given(struct shmt_shm_seat *link);

/* made.c: see the entries of the same names in ps/backend_ops.h. */
int shmt_shm_plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e);
int shmt_shm_create(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e);
void shmt_shm_destroy(struct shmt_store *store);

/* seat.c */

/* The gradient buffer at place `slot` of a seat's stack, and its touched map (NULL: not kept). */
float *shmt_shm_buffer(const struct shmt_store *store, uint32_t seat, uint32_t slot);
uint8_t *shmt_shm_map(const struct shmt_store *store, uint32_t seat, uint32_t slot);

/* The parameters that seat `rank` reads and updates where all gradients are summed: the store's, or its copy of them (equal copies).
 * The rule's state begins flat.n floats behind a copy's, and anywhere else where the store says. */
struct shmt_ring *shmt_shm_ring(const struct shmt_store *store, uint32_t rank);
float *shmt_shm_weight_of(const struct shmt_store *store, uint32_t rank);
float *shmt_shm_state_of(const struct shmt_store *store, uint32_t rank);

/* Both, whatever the map says: an earlier life may have died in a push before it marked what it touched. */
void shmt_shm_clear_whole(const struct shmt_store *store, uint32_t seat, uint32_t slot);

/* Looks who takes part in this epoch: sets p->present, seat.index and seat.n_present, and whether waiting spins; behind a
 * meeting, before the epoch's first claim. */
void shmt_shm_count_present(struct shmt_shm_seat *p);

/* Behind the meeting that begins an epoch: 1: I take part in it, 0: the run is over for me; _USAGE: the store is damaged. */
int shmt_shm_begin_epoch(struct shmt_shm_seat *p);

/* Rounds: what it does is what its tape says (ps/tape.h). */
static inline bool shmt_shm_replays(const struct shmt_shm_seat *p) { return p->store->spec.tape.use == SHMT_TAPE_REPLAY; }

/* rounds/taping.c: my next piece of this epoch, which becomes mine: 1; 0: there is none; or a status. */
int shmt_shm_tape_claim(struct shmt_shm_seat *p, uint64_t *piece_out);

/* A wait for seat `for_whom` begins (1) or ends (0): while the seat is at work its time goes to p->wait_ns then. Told by the
 * gates. */
void shmt_shm_note_wait(void *seat, int waits, uint32_t for_whom);

/* My next meeting point: publishes it and waits for all who live. 0, or _STOPPED. The wait of one who is at work counts into
 * *wait_ns. */
int shmt_shm_meet(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns);

/* The wait alone: until all who live have reached my phase. */
int shmt_shm_wait_for_all(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns);

/* The link: waits until all workers stand in its next meeting, to which it comes last. 0 or _STOPPED. */
int shmt_shm_wait_for_workers(struct shmt_shm_seat *link);

/* placement.c: the ranges (*n_out) of a segment with a policy each, to be freed; NULL and 0 where there is nothing to say */
int shmt_shm_ranges_make(const struct shmt_spec *spec, const struct shmt_shm_layout *layout, struct shmt_memory_range **out,
                         uint32_t *n_out, struct shmt_error *e);

/* deal.c: pieces of the ledger, for all engines but batches */

/* The first claims of an epoch will be in my own region. */
void shmt_shm_deal_begin(struct shmt_shm_seat *p);

/* My next piece: 1 and p->piece, p->work; 0: there is none left for me; _STOPPED. Waits for no worker of this host; for other hosts, where
 * items are passed on, until one comes or none will. */
int shmt_shm_deal(struct shmt_shm_seat *p);

/* No more work for me in this epoch: nobody needs to wait for my clock any more. */
void shmt_shm_stop_counting(struct shmt_shm_seat *p);

/* Waits until everybody who has work has completed `target` clocks. A bound that is kept anyway costs a look at one number:
 * clocks only grow, so what the slowest had reached at the last look still holds. 0 or _STOPPED. */
int shmt_shm_wait_for_slowest(struct shmt_shm_seat *p, uint64_t target);

/* At the end of an epoch, all have met: every clock becomes the largest, and everybody counts again. */
void shmt_shm_align_clocks(struct shmt_shm_seat *p);

/* pause.c: when the run pauses, and what is taken then; see the entries of the same names in ps/backend_ops.h. */
bool shmt_shm_pause_is_due(const struct shmt_shm_seat *chief, uint64_t steps); /* so many steps of the run are done */
void shmt_shm_look_for_pause(struct shmt_shm_seat *chief); /* where pieces are dealt: before it claims one */
void shmt_shm_decide_on_pause(struct shmt_shm_seat *p);    /* the work of that stage */
int shmt_shm_pause(struct shmt_seat *seat);
int shmt_shm_copy(struct shmt_seat *seat);
void shmt_shm_copied(struct shmt_shm_seat *p); /* all have met since */
void shmt_shm_request_snapshot(struct shmt_store *store);
int shmt_shm_snapshot(struct shmt_store *store, struct shmt_snapshot *out);
void shmt_shm_release_snapshot(struct shmt_store *store);
int shmt_shm_final_snapshot(struct shmt_store *store, struct shmt_snapshot *out);
int shmt_shm_resume(struct shmt_store *store, const uint32_t *done, const double *loss, struct shmt_error *e);

/* seat.c: others' updates between pull and push, sampled; around each piece */
void shmt_shm_pull_begins(struct shmt_shm_seat *p);
void shmt_shm_push_ends(struct shmt_shm_seat *p);

/* Live modes: the clocks that others have counted since then, or since what was pulled was copied. */
uint64_t shmt_shm_delay(const struct shmt_seat *seat);

/* Cached pulls: see the entries of the same names in ps/backend_ops.h. */
uint64_t shmt_shm_clock(const struct shmt_seat *seat);
void shmt_shm_look(const struct shmt_seat *seat, struct shmt_look *out);

/* guests.c */
extern const struct shmt_guest_ops SHMT_SHM_GUESTS;
void shmt_shm_come(struct shmt_shm_seat *p);          /* a guest has entered */
void shmt_shm_give_back(struct shmt_shm_seat *p);     /* a guest leaves */
void shmt_shm_admit_all(struct shmt_shm_seat *chief); /* before the meeting that begins an epoch */

/* stages.c */

/* I come to a stage: what is to be done of it by this life. */
enum shmt_task shmt_shm_begin_stage(struct shmt_shm_seat *p, enum shmt_run_stage which);

/* Its work, and the meeting behind it, as far as `task` says. 0 or _STOPPED. */
int shmt_shm_end_stage(struct shmt_shm_seat *p, enum shmt_run_stage which, enum shmt_task task);

/* Both. */
int shmt_shm_pass_stage(struct shmt_shm_seat *p, enum shmt_run_stage which);

/* Before pieces are claimed: the stage _WORK was begun, by me or by an earlier life that I have gone on with. 1; 0: this epoch has no
 * more for me; or a status. */
int shmt_shm_begin_work(struct shmt_shm_seat *p);

/* For rows of stages: waits that are a part of the work, and those of all at the end of an epoch. */
_Atomic uint64_t *shmt_shm_wait_clock(const struct shmt_shm_seat *p);
_Atomic uint64_t *shmt_shm_wait_epoch(const struct shmt_shm_seat *p);

/* For messages: the batch of that epoch that seat `rank` is at, or the piece whose gradient it offers; false: none. */
bool shmt_shm_is_at(const struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *piece_out);

/* The piece in hand is counted (counters.examples, loss_bits), and about to be done. */
void shmt_shm_count(struct shmt_shm_seat *p);
/* Notes so in the slot, for a next life: what is counted with the piece, once. */
void shmt_shm_note_count(struct shmt_shm_seat *p, const struct shmt_shm_count *count);

/* lives.c: what an earlier life has left to its next one */

/* In `enter`, of a life that is not the first. */
void shmt_shm_revive(struct shmt_shm_seat *p);

/* Pieces of this epoch that I have done, in all lives. Looks at the whole ledger. */
uint64_t shmt_shm_count_done(const struct shmt_shm_seat *p);

/* A piece that an earlier life has done is done again: it is not counted any more, until it is. */
void shmt_shm_uncount(struct shmt_shm_seat *p, uint64_t piece);

/* Somebody had the piece in hand when it died, and its next life will take it up, as soon as there is work again. Behind a
 * meeting. */
bool shmt_shm_will_be_taken_up(const struct shmt_store *store, uint64_t piece);

/* The next piece of this epoch that an earlier life of mine had in hand; false: there is none. */
bool shmt_shm_take_up(struct shmt_shm_seat *p, uint64_t *piece_out);

/* deaths.c: what is done for a seat whose process has died, by whoever has collected it. Allocates nothing, and locks
 * nothing. */

/* See the entry of the same name in ps/backend_ops.h. */
void shmt_shm_reclaim(struct shmt_store *store, uint32_t rank, int comes_back);

/* What it was changing becomes what it was, or, of a merge, what it was to become. Also of a guest. */
void shmt_shm_take_back(struct shmt_store *store, uint32_t rank);

/* Where a seat keeps the old bytes of what it changes in the flat array. */
struct shmt_undo shmt_shm_undo(const struct shmt_store *store, uint32_t rank);

/* Where it keeps what a step of a merge brings out, in the same bytes: nobody merges in the middle of a push. */
struct shmt_redo shmt_shm_redo(const struct shmt_store *store, uint32_t rank);

/* The row locks of table t, or of its replica; none but in write locked. seat.c */
struct shmt_locks shmt_shm_locks(const struct shmt_shm_seat *p, uint32_t replica, uint32_t t);

/* work(p, t, at, n, arg) for what each row lock guards of the floats from .. to - 1 of the flat array, at .. at + n - 1 of table t, under
 * that lock, one after the other; until the run is given up. seat.c */
typedef void shmt_shm_unit_fn(struct shmt_shm_seat *p, uint32_t t, uint64_t at, uint64_t n, void *arg);
void shmt_shm_by_units(struct shmt_shm_seat *p, uint32_t replica, uint64_t from, uint64_t to, shmt_shm_unit_fn *work,
                       void *arg);

/* apply.c */

/* Where the sum of an update's gradients over the floats at .. at + n - 1 is, at most a block: in a buffer, or added up in
 * scratch[0], of which there are SHMT_MAX_STACK. NULL: it is zero. */
struct shmt_shm_sum {
    const float *(*of)(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]);
    void (*forget)(const struct shmt_shm_seat *p, uint64_t at,
                   uint64_t end);                    /* a sum that was not zero, when it is applied; may be NULL */
    uint32_t (*adds)(const struct shmt_shm_seat *p); /* so many gradients are added to others for it: what takes virtual time */
};

/* The floats from .. to - 1, by the update rule. Nobody else may be at them. */
void shmt_shm_apply_range(struct shmt_shm_seat *p, const struct shmt_shm_sum *sum, const struct shmt_update *u, uint64_t from,
                          uint64_t to);

/* For my next life: of what I am about to apply, the floats before `at` are done; and where an earlier one stood within
 * from .. to. */
void shmt_shm_apply_stands_at(const struct shmt_shm_seat *p, uint64_t at);
uint64_t shmt_shm_apply_stood_at(const struct shmt_shm_seat *p, uint64_t from, uint64_t to);

/* For a trace: around ranges that are applied one after the other; `step` of the epoch. */
void shmt_shm_apply_begins(struct shmt_shm_seat *p, uint64_t step);
void shmt_shm_apply_ends(struct shmt_shm_seat *p);

/* Whether a gradient may be other than zero there; a map of NULL: it may. */
bool shmt_shm_is_touched(const uint8_t *map, uint64_t at, uint64_t n);
