/* What the files of the shm backend share: the store as one process sees it, and a seat. */
#ifndef SHMT_BACKENDS_SHM_SHM_PRIV_H
#define SHMT_BACKENDS_SHM_SHM_PRIV_H

#include "backends/shm/layout.h"
#include "backends/shm/ledger.h"
#include "consistency/chunks.h"
#include "segment/segment.h"

struct shmt_store {
    struct shmt_spec spec;
    struct shmt_shm_layout layout;
    struct shmt_segment segment;
    struct shmt_shm_control *control;
    struct shmt_shm_front *front;           /* (n_seats) */
    struct shmt_shm_slot *slot;             /* (n_seats) */
    struct shmt_shm_offer *offer;           /* (n_seats) rounds */
    struct shmt_shm_slice *slice;           /* (n_slices) rounds */
    struct shmt_shm_piece *ledger;          /* (pieces) */
    struct shmt_shm_terms_head *terms_head; /* (n_chunks) batches */
    uint64_t *cut;                          /* (n_seats) batches with lists: where the slice of seat number i begins, chief */
    uint32_t *terms_id;                     /* (n_chunks, layout.terms) */
    float *terms_value;                     /* (n_chunks, layout.terms) */
    _Atomic uint32_t *locks;                /* (lock_mask + 1) */
    _Atomic uint32_t *merge_locks;          /* (merge_mask + 1), SHMT_LINE apart */
    float *weight, *l2_share;               /* (flat.n) */
    float *curvature;                       /* (cover.n) */
    float *state;                           /* (planes, flat.n); NULL: none */
    _Atomic uint64_t *counted;              /* (flat.n) */
    uint32_t *row_place;                    /* (rows of table 0) */
    float *replicas;                        /* (n_replicas, replica_bytes) */
    unsigned char *head;
    unsigned char *board;
    unsigned char *rings;     /* (n_seats, seat_trace_bytes) */
    unsigned char *old;       /* (n_seats, seat_undo_bytes): old bytes, or the log of a merge */
    uint64_t *snapshot_clock; /* (n_seats), all four where runs may pause */
    double *snapshot_loss;    /* (pieces) */
    uint32_t *snapshot_done;  /* (pieces) */
    float *snapshot;          /* (1 + planes, flat.n) */
    _Atomic uint32_t
        reserved_as; /* of this process, no part of the segment: what its last reservation has put into a `guest` word */
};

/* Where the finished sum of a subtree stands after all seats have added theirs: a function of the configuration. */
struct shmt_shm_node {
    uint32_t seat, slot; /* seat UINT32_MAX: of more than one seat, to be added */
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

/* What one family of policies does where they differ: dealing work, taking pushes, bringing them to the parameters. One
 * constant table for each, at the end of the file that is named after it. Entries may be NULL where nothing is to be done, but
 * for claim, publish and memory. All are called by the seat's owner; "may wait" as in ps/backend_ops.h. */
struct shmt_shm_engine {
    int (*enter)(struct shmt_shm_seat *p); /* sentence in the seat */
    void (*leave)(struct shmt_shm_seat *p);

    /* Who takes part may have changed, and an epoch begins for them. */
    void (*share)(struct shmt_shm_seat *p);

    /* 1: p->piece and p->work; 0: this epoch has no more for me, and all that I pushed is on its way. May wait. */
    int (*claim)(struct shmt_shm_seat *p);
    void (*memory)(const struct shmt_shm_seat *p, struct shmt_shm_memory *out);
    int (*publish)(struct shmt_shm_seat *p, struct shmtrain_fate *out); /* may wait */

    /* All have met: the epoch is over for all. */
    void (*align)(struct shmt_shm_seat *p);

    /* Delay: I begin to pull; how many updates of others I have not seen in what I have pushed (delay.c has the usual ones). */
    void (*pull)(struct shmt_shm_seat *p);
    uint64_t (*missed)(const struct shmt_shm_seat *p);

    /* Between two epochs, by the chief: a guest is about to be counted in at seat `rank`. */
    void (*welcome)(struct shmt_shm_seat *chief, uint32_t rank);
};

extern const struct shmt_shm_engine SHMT_SHM_LIVE, SHMT_SHM_BATCHES, SHMT_SHM_ROUNDS, SHMT_SHM_REPLICAS;

/* Private to its owner. */
struct shmt_shm_seat {
    struct shmt_seat seat;
    struct shmt_store *store;
    struct shmt_shm_front *front;
    struct shmt_shm_slot *slot;
    const struct shmt_shm_engine *engine;
    struct shmt_gates meeting, clocks; /* the same gates, seen by all who live and by all who have work */
    uint64_t phase, clock;             /* mine, as published */
    uint32_t epoch;
    uint64_t present[SHMT_MAX_SEATS / 64]; /* a bit for each seat: it takes part in this epoch */
    bool over;                             /* the run has come to its end */
    bool pausing, copying;                 /* as control says behind the meeting of a pause */
    uint64_t look_in;                      /* chief: so many pieces until it counts how many steps are done */
    bool guest;
    bool not_mine;              /* a guest: its seat was given up before it was let in, and may be another one's */
    bool in_work;               /* the stage of the engine's own is noted, until the next turn */
    bool revived;               /* an earlier life of mine has died, and I have not come to the stage that it was at yet; ... */
    bool met;                   /* ... it had reached the meeting at that stage's end */
    struct shmt_shm_record now; /* my last record; of an earlier life, while `revived` */
    uint64_t done;              /* all but batches: pieces of the epoch that I have done */
    uint64_t examples, loss_bits; /* what my counters are, but for the piece in hand */
    uint64_t left_behind;         /* the ledger's pieces from here on may be such that an earlier life had in hand */
    struct shmt_undo undo;        /* aggregate: of what I change in an apply phase */
    struct shmt_trace trace;      /* what seat.trace points to, where there is one */
    _Atomic uint64_t *wait_ns;    /* the counter of the waits that come next */
    uint64_t waited_ns;           /* what stood there when the wait began that goes on */
    uint64_t others;              /* updates of others when the piece in hand was pulled; meaningless where it is not sampled */
    struct shmtrain_work work;
    uint64_t piece;                   /* the one in hand */
    uint64_t slowest;                 /* all but batches: the least clock that I have seen of those who have work */
    struct shmt_claims claims;        /* all but batches: where I look for the next piece */
    float *scratch;                   /* live modes: lent gradients; made when asked for */
    uint64_t step;                    /* aggregate: the batch, within the epoch */
    uint32_t from, to, chunk;         /* aggregate: my chunks, and the next one */
    struct shmt_stack stack;          /* aggregate: what my buffers hold */
    uint32_t *bins;                   /* batches, chief: where terms are counted */
    uint64_t cut_step;                /* batches, chief: where it was counted last; SHMT_NO_LIMIT: others took part then */
    bool sums;                        /* batches: they may hold something, in this batch */
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

/* made.c: see the entries of the same names in ps/backend_ops.h. */
int shmt_shm_plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e);
int shmt_shm_create(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e);
void shmt_shm_destroy(struct shmt_store *store);

/* seat.c */

/* The gradient buffer at place `slot` of a seat's stack, and its touched map (NULL: not kept). */
float *shmt_shm_buffer(const struct shmt_store *store, uint32_t seat, uint32_t slot);
uint8_t *shmt_shm_map(const struct shmt_store *store, uint32_t seat, uint32_t slot);

/* Both, whatever the map says: an earlier life may have died in a push before it marked what it touched. */
void shmt_shm_clear_whole(const struct shmt_store *store, uint32_t seat, uint32_t slot);

/* Looks who takes part in this epoch: sets p->present, seat.index and seat.n_present, and whether waiting spins; behind a
 * meeting, before the epoch's first claim. */
void shmt_shm_count_present(struct shmt_shm_seat *p);

/* Behind the meeting that begins an epoch: 1: I take part in it, 0: the run is over for me; _USAGE: the store is damaged. */
int shmt_shm_begin_epoch(struct shmt_shm_seat *p);

/* A wait for seat `for_whom` begins (1) or ends (0): while the seat is at work its time goes to p->wait_ns then. Told by the
 * gates. */
void shmt_shm_note_wait(void *seat, int waits, uint32_t for_whom);

/* My next meeting point: publishes it and waits for all who live. 0, or _STOPPED. The wait of one who is at work counts into
 * *wait_ns. */
int shmt_shm_meet(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns);

/* The wait alone: until all who live have reached my phase. */
int shmt_shm_wait_for_all(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns);

/* placement.c: the ranges (*n_out) of a segment with a policy each, to be freed; NULL and 0 where there is nothing to say */
int shmt_shm_ranges_make(const struct shmt_spec *spec, const struct shmt_shm_layout *layout, struct shmt_memory_range **out,
                         uint32_t *n_out, struct shmt_error *e);

/* deal.c: pieces of the ledger, for all engines but batches */

/* The first claims of an epoch will be in my own region. */
void shmt_shm_deal_begin(struct shmt_shm_seat *p);

/* My next piece: 1 and p->piece, p->work; 0: there is none left for me; _STOPPED. Waits for nobody. */
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
int shmt_shm_pause(struct shmt_seat *seat);
int shmt_shm_copy(struct shmt_seat *seat);
void shmt_shm_copied(struct shmt_shm_seat *p); /* all have met since */
void shmt_shm_ask(struct shmt_store *store);
int shmt_shm_snapshot(struct shmt_store *store, struct shmt_snapshot *out);
void shmt_shm_release(struct shmt_store *store);
int shmt_shm_stand(struct shmt_store *store, struct shmt_snapshot *out);
int shmt_shm_resume(struct shmt_store *store, const uint32_t *done, const double *loss, struct shmt_error *e);

/* delay.c: others' updates between pull and push, sampled; around each piece */
void shmt_shm_pull_begins(struct shmt_shm_seat *p);
void shmt_shm_push_ends(struct shmt_shm_seat *p);
void shmt_shm_pull_live(struct shmt_shm_seat *p); /* entries of engines: by the updates that the others have made */
uint64_t shmt_shm_missed_live(const struct shmt_shm_seat *p);

/* guests.c: see the entries of the same names in ps/backend_ops.h. */
int shmt_shm_reserve(struct shmt_store *store, uint32_t rank, struct shmt_error *e);
void shmt_shm_unreserve(struct shmt_store *store, uint32_t rank);
int shmt_shm_admit(struct shmt_seat *seat);
void shmt_shm_part(struct shmt_store *store, uint32_t rank);
uint32_t shmt_shm_occupied(struct shmt_store *store, uint32_t rank);
enum shmt_occupant shmt_shm_occupant(struct shmt_store *store, uint32_t rank, struct shmt_life *out);
int shmt_shm_mourn(struct shmt_store *store, uint32_t rank, bool marked);
void shmt_shm_come(struct shmt_shm_seat *p);          /* a guest has entered */
void shmt_shm_give_back(struct shmt_shm_seat *p);     /* a guest leaves */
void shmt_shm_admit_all(struct shmt_shm_seat *chief); /* before the meeting that begins an epoch */

/* lives.c: where a seat stands, for its next life */

/* I begin a stage of the engine's own. `now` may say more of it: piece, done, first, flag, turned. */
void shmt_shm_note(struct shmt_shm_seat *p, enum shmt_run_stage stage);

/* I come to a stage that ends in a meeting: whether its work is to be done, only the meeting is, or an earlier life has
 * passed it. */
enum shmt_task shmt_shm_stage(struct shmt_shm_seat *p, enum shmt_run_stage stage);

/* For messages: the batch of that epoch that seat `rank` is at, or the piece whose gradient it offers; false: none. */
bool shmt_shm_is_at(const struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *piece_out);

/* In `enter`, of a life that is not the first. */
void shmt_shm_revive(struct shmt_shm_seat *p);

/* An earlier life was at that stage, and I have not gone on with it yet; from now on I have. */
bool shmt_shm_goes_on_with(struct shmt_shm_seat *p, enum shmt_run_stage stage);

/* Pieces of this epoch that I have done, in all lives. Looks at the whole ledger. */
uint64_t shmt_shm_count_done(const struct shmt_shm_seat *p);

/* The piece in hand is counted (counters.examples, loss_bits), and about to be done. */
void shmt_shm_count(struct shmt_shm_seat *p);

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
void shmt_shm_bury(struct shmt_store *store, uint32_t rank, int comes_back);

/* What it was changing becomes what it was, or, of a merge, what it was to become. Also of a guest. */
void shmt_shm_take_back(struct shmt_store *store, uint32_t rank);

/* Where a seat keeps the old bytes of what it changes; `first`: of the span, in the flat array. */
struct shmt_undo shmt_shm_undo(const struct shmt_store *store, uint32_t rank, uint64_t first);

/* Where it keeps what a step of a merge brings out, in the same bytes: nobody merges in the middle of a push. */
struct shmt_redo shmt_shm_redo(const struct shmt_store *store, uint32_t rank);

/* The row locks of table t, or of its replica; none but in write locked. seat.c */
struct shmt_locks shmt_shm_locks(const struct shmt_shm_seat *p, uint32_t replica, uint32_t t);

/* lists.c: batches: the lists of terms of chunks (store/terms.h), where they are kept. A chunk's owner writes them before the
 * meeting "all gradients are in", and all read them between that one and the next. */

/* An empty one. */
void shmt_shm_list_begin(const struct shmt_store *store, uint32_t chunk);
struct shmt_terms shmt_shm_list(const struct shmt_store *store, uint32_t chunk);

/* Whether a part of the chunk's gradient is in a buffer: always, where there are no lists. */
bool shmt_shm_is_summed(const struct shmt_store *store, uint32_t chunk);

/* Counts a chunk's terms in bins of so many floats. */
void shmt_shm_count_listed(const struct shmt_store *store, uint32_t chunk, uint64_t floats, uint32_t *terms);

/* The sum over all chunks' lists of the floats from .. to - 1, in the buffer behind those of my stack. */
void shmt_shm_sum_lists(const struct shmt_shm_seat *p, uint64_t from, uint64_t to);

/* cuts.c: batches: which floats a seat updates. */
int shmt_shm_cuts_enter(struct shmt_shm_seat *p); /* sentence in the seat */
void shmt_shm_cuts_leave(struct shmt_shm_seat *p);

/* By the chief, when the lists of its chunks are complete, and before all are. */
void shmt_shm_cuts_make(struct shmt_shm_seat *chief);

/* From whole lines to whole lines; those of all seats together are all floats. Between the two meetings of a batch. */
void shmt_shm_my_slice(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out);

/* apply.c */

/* The sum of an update's gradients over the floats at .. at + n - 1, at most a block: it stands in a buffer, or was added up in
 * scratch[0], of which there are SHMT_MAX_STACK. NULL: it is zero. */
typedef const float *shmt_shm_sum(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]);

/* For a trace: nanoseconds of those blocks that were timed, and how many there were in all. */
struct shmt_shm_times {
    uint64_t aggregate_ns, update_ns, blocks;
};

/* The floats from .. to - 1, by the update rule. Nobody else may be at them. `times` may be NULL. */
void shmt_shm_apply_range(struct shmt_shm_seat *p, shmt_shm_sum *sum, const struct shmt_update *u, uint64_t from, uint64_t to,
                          struct shmt_shm_times *times);

/* For a trace: around ranges that are applied one after the other; `step` of the epoch. */
void shmt_shm_apply_begins(struct shmt_shm_seat *p, uint64_t step);
void shmt_shm_apply_ends(struct shmt_shm_seat *p, const struct shmt_shm_times *times);

/* Whether a gradient may be other than zero there; a map of NULL: it may. */
bool shmt_shm_is_touched(const uint8_t *map, uint64_t at, uint64_t n);

/* Nothing of my slice is applied yet; before I say that I begin to. */
void shmt_shm_apply_from_start(struct shmt_shm_seat *p);

/* My slice of the update of a batch of `examples`, from where I or an earlier life of mine stood. */
void shmt_shm_apply(struct shmt_shm_seat *p, uint64_t examples);
void shmt_shm_nodes_make(struct shmt_shm_seat *p); /* p->nodes, by who takes part */

#endif
