/* What stands where in the segment of a run. Fixed-width words and offsets only; docs/memory-model.md has a row for each word.
 * Its parts, in their order, are in SHMT_SHM_PARTS: what is planned, measured, found and checked follows from that list.
 *
 * A replica: weights | state planes | base of the weights | base of the state planes, each in the shape of the
 * parameters; or, where spec.hot_floats says so, of what replicas hold of them (struct shmt_cover), as the curvatures are,
 * which are for merging. Then parameters and state planes are whole pages: see windows.c. */
#pragma once

#include <stdalign.h>
#include <stddef.h>

#include "ps/backend_ops.h"
#include "ps/far.h"
#include "ps/replicas.h"
#include "ps/tape.h"
#include "sync/gate.h"

#define SHMT_SHM_LAYOUT_VERSION 22
#define SHMT_SHM_BLOCK \
    SHMT_TERMS_BLOCK /* floats that an apply phase changes at a time: 16 lines, whose touched bytes are two words */

/* Replicas that merge alone take the master block by block, each under its lock word; the words are SHMT_LINE apart. */
#define SHMT_MERGE_FLOATS 1024

/* What `snapshot` says. The chief takes it from free to being filled, and on to full; the application from full to free. */
#define SHMT_SNAPSHOT_FREE    0
#define SHMT_SNAPSHOT_FILLING 1
#define SHMT_SNAPSHOT_FULL    2

/* Words that concern all; each line has one writer. */
struct shmt_shm_control {
    alignas(SHMT_LINE) _Atomic uint32_t stop;     /* application: end at the next consistent point */
    alignas(SHMT_LINE) _Atomic uint32_t abort;    /* supervisor: a worker failed, or link: a host is lost; give up */
    alignas(SHMT_LINE) _Atomic uint64_t end_step; /* chief: aggregate ends before this step */
    _Atomic uint32_t over;                        /* chief: no epoch follows */
    _Atomic uint32_t epoch;                       /* chief: the epoch that is going on; guests begin with it */
    _Atomic uint64_t step; /* chief: steps of it that were done when it was begun, or gone on with behind a pause (pause.c) */
    _Atomic uint64_t pause_step; /* chief: there is a pause before this step; where pieces are dealt: SHMT_NO_LIMIT, or now */
    _Atomic uint64_t due;        /* chief: where pieces are dealt: a snapshot is due when so many steps of the run are done */
    _Atomic uint32_t pausing;    /* chief: all rest, and the epoch is not over */
    _Atomic uint32_t copying;    /* chief: and a snapshot is taken */
    _Atomic uint32_t answered;   /* chief: `asked`, when it was looked at for the last snapshot */
    alignas(SHMT_LINE) _Atomic uint32_t asked;    /* application: how often it has asked for a snapshot */
    alignas(SHMT_LINE) _Atomic uint32_t snapshot; /* chief, application: SHMT_SNAPSHOT_* */
    _Atomic uint32_t snapshot_epoch;              /* with it: where the snapshot was taken (struct shmt_position) */
    _Atomic uint64_t snapshot_step, snapshot_before;
    alignas(SHMT_LINE) _Atomic uint64_t round; /* a lock word, quorum: updates that are closed << 16 | rank + 1 of who
                                                     closed the last one */
    alignas(SHMT_LINE) _Atomic uint64_t met;   /* anybody: a phase that all have reached (sync/gate.h); of many seats */
};

/* What a seat was about to do when it wrote this, for its next life; see stages.c. */
struct shmt_shm_record {
    uint64_t phase, clock; /* its own, as published by then */
    uint64_t piece;        /* batches: the step of the epoch; rounds: the piece whose gradient is offered */
    uint64_t done;         /* pieces of the epoch that it had done */
    uint64_t first;        /* since all met: rounds: the number of the first update; replicas: `done` by then */
    uint32_t epoch;
    uint8_t stage;  /* enum shmt_run_stage */
    uint8_t flag;   /* quorum: the offer is a late one; replicas: another merge follows */
    uint8_t turned; /* quorum: its bit of the lists before the offer */
    uint8_t reserved;
};

/* What a seat's counters say when `piece` is not done [0], and when it is [1]; see stages.c. */
struct shmt_shm_count {
    uint64_t piece;
    uint64_t epoch; /* + 1; 0: no piece was counted yet */
    uint64_t examples[2], loss_bits[2];
};

/* What all look at of one worker; those of all lie side by side, for many workers would else map all pages of all slots. */
struct shmt_shm_front {
    struct shmt_gate gate;
    alignas(SHMT_LINE) _Atomic uint32_t alive; /* counts at meetings (set to 1 before workers exist) */
    _Atomic uint32_t working;                  /* has work in this epoch: counts for the staleness bound */
    _Atomic uint32_t guest;   /* a lock word: process id of the guest that has reserved the seat, and whether it
                                 is on its way still (guests.c); 0: free */
    _Atomic uint32_t parting; /* owner (a guest): let me go at the end of the epoch; chief: it was let go (guests.c) */
    _Atomic uint64_t life[2]; /* owner (a guest), before it has entered: the process that works here (base/process.h) */
    _Atomic uint64_t out_ns;  /* owner, before `out`: when that was */
    _Atomic uint64_t out;     /* owner, many hosts: 1 + the link's `read` when it had no item and found none (live/passing.c) */
};

/* The other words of one worker; its owner is the only writer. */
struct shmt_shm_slot {
    alignas(SHMT_LINE) struct shmt_counters counters;
    alignas(SHMT_LINE) _Atomic uint64_t undo; /* owner; after its death, who reclaims its seat: see update/undo.h */
    _Atomic uint64_t redo;                    /* likewise: the log of a merge counts; see update/redo.h */
    _Atomic uint64_t merged;  /* owner: updates that other replicas' seats had made at its last merge of its own (delay) */
    _Atomic uint64_t records; /* owner: how many it has written */
    struct shmt_shm_record record[2]; /* number i, from 1, in place i mod 2 */
    _Atomic uint64_t at;     /* owner, for messages: (epoch + 1) << 32 | the batch that it is at, or the piece whose gradient it
                            offers, which the ledger calls done; 0: none. Kept also where nobody comes again */
    _Atomic uint64_t counts; /* owner: how many it has written of those, */
    struct shmt_shm_count count[2]; /* as of the records */
};

/* Quorum: what an update is made of, written by who closes it. */
struct shmt_shm_list {
    _Atomic uint64_t examples;                    /* of the gradients that are in */
    _Atomic uint64_t step;                        /* items of the epoch that were done before them, which the rate follows */
    _Atomic uint64_t in[SHMT_MAX_SEATS / 64];     /* a bit for each seat: its gradient is in */
    _Atomic uint64_t turned[SHMT_MAX_SEATS / 64]; /* a bit for each seat: 1 after an odd number of its gradients got in */
};

/* Rounds: what one worker says of its gradients; its owner is the only writer. */
struct shmt_shm_offer {
    alignas(SHMT_LINE) _Atomic uint64_t items; /* done in this epoch */
    _Atomic uint64_t late;                     /* 1: it has missed its round, and is offered for a later one */
    _Atomic uint64_t examples[SHMT_MAX_AGGREGATE_STALENESS + 1]; /* that each of its buffers is the gradient of */
    _Atomic uint64_t pulled[SHMT_MAX_AGGREGATE_STALENESS + 1];   /* updates that the weights had had when that was begun */
    alignas(SHMT_LINE) struct shmt_shm_list list[2];             /* of the updates that it has closed, by parity */
};

/* Rounds: a part of the parameters that is updated at a time. A lock word: updates that it has had << 16 | rank + 1 of who is
 * at the next one, 0: nobody. */
struct shmt_shm_slice {
    alignas(SHMT_LINE) _Atomic uint64_t word;
    _Atomic uint64_t from; /* who has it: the floats of it before this one have had the next update already, by one who died;
                              at most the slice's first: none */
};

/* Batches: the head of a chunk's list of terms; its owner is the only writer. */
struct shmt_shm_terms_head {
    alignas(SHMT_LINE) struct shmt_terms_head head;
};

/* The ledger: who has which piece of the epoch, and what became of it. */
struct shmt_shm_piece {
    _Atomic uint64_t owner; /* a lock word: (epoch + 1) << 32 | life << 16 | rank + 1 of who claimed it last */
    _Atomic uint64_t done;  /* its owner: (epoch + 1) << 32 | examples */
    double loss;            /* its owner, before `done` */
    uint64_t reserved;
};

/* Many hosts: items that others have passed on to this one. The link is the only writer. */
struct shmt_shm_passing {
    alignas(SHMT_LINE) _Atomic uint64_t n; /* (epoch + 1) << 32 | how many in that epoch */
    _Atomic uint64_t closed;               /* epoch + 1: nobody passes on any more in that epoch */
};

/* The parts of the segment, in the order in which they stand: PART(name, type of what it begins with, number of its elements, bytes of
 * one, alignment). Everything that is known of a part follows from its row; place_all (layout.c) has the names that sizes are given
 * in. */
#define SHMT_SHM_PARTS(PART)                                                                                                   \
    PART(head, unsigned char, spec->head_bytes, 1, SHMT_LINE)                                                                  \
    PART(control, struct shmt_shm_control, 1, sizeof(struct shmt_shm_control), SHMT_LINE)                                      \
    PART(front, struct shmt_shm_front, seats + l->links, sizeof(struct shmt_shm_front), SHMT_LINE)                             \
    PART(slot, struct shmt_shm_slot, seats + l->links, sizeof(struct shmt_shm_slot), SHMT_LINE)                                \
    PART(offer, struct shmt_shm_offer, l->n_slices ? seats + l->links : 0, sizeof(struct shmt_shm_offer),                      \
         SHMT_LINE) /* rounds */                                                                                               \
    PART(slice, struct shmt_shm_slice, l->n_slices, sizeof(struct shmt_shm_slice), SHMT_LINE)                                  \
    PART(ledger, struct shmt_shm_piece, pieces, sizeof(struct shmt_shm_piece), SHMT_LINE)                                      \
    PART(locks, _Atomic uint32_t, n_locks(spec), sizeof(uint32_t), SHMT_LINE) /* of rows */                                    \
    PART(merge_locks, _Atomic uint32_t, n_merge_locks(spec, l->cover.n), SHMT_LINE, SHMT_LINE)                                 \
    PART(terms_head, struct shmt_shm_terms_head, lists, sizeof(struct shmt_shm_terms_head), SHMT_LINE) /* batches */           \
    PART(cut, uint64_t, lists ? seats : 0, sizeof(uint64_t), SHMT_LINE) /* where the slice of seat number i begins */          \
    PART(norm, double, norm_parts, sizeof(double), SHMT_LINE)           /* batches: sums of squares, by lines (ps/norm.h)   */ \
    PART(terms_id, uint32_t, terms, sizeof(uint32_t), 4096)             /* (n_chunks, terms) */                                \
    PART(terms_value, float, terms, sizeof(float), 4096)                                                                       \
    PART(weight, float, 1, array, page)                                                                                        \
    PART(state, float, l->planes, array, page)                                                                                 \
    PART(l2_share, float, spec->l2_shares, array, page)                                                                        \
    PART(curvature, float, spec->curvatures, held, held_page)                                                                  \
    PART(counted, _Atomic uint64_t, spec->count_lost, product(plan, l->flat.n, sizeof(uint64_t)), page)                        \
    PART(grad, unsigned char, seats, pages(plan, array, buffers, page), page)       /* a seat's buffers */                     \
    PART(map, unsigned char, seats, pages(plan, l->map_bytes, buffers, 4096), page) /* its touched maps */                     \
    PART(pulled, float, seats, spec->tape.use ? pages(plan, array, 1, page) : 0,                                               \
         page) /* rounds: what a seat's weights were */                                                                        \
    PART(ring, unsigned char, seats + l->links, pages(plan, shmt_ring_bytes(spec->trace_events), 1, 4096), page)               \
    PART(tape, unsigned char, seats, pages(plan, shmt_tape_bytes(spec->tape.room), 1, 4096), page) /* rounds: ps/tape.h */     \
    PART(old, unsigned char, seats, pages(plan, undo_bytes(spec, l->planes), 1, 4096), 4096)       /* or its log of a merge */ \
    PART(replica, unsigned char, l->n_replicas, pages(plan, held, copies, held_page), held_page)                               \
    PART(reduced, float, l->equal, array, page) /* equal copies: the sum of all gradients, */                                  \
    PART(reduced_map, unsigned char, l->equal, l->flat.n / SHMT_TOUCH_FLOATS, 4096) /* by lines, where it is not 0 */          \
    PART(ready, _Atomic uint64_t, l->equal || l->tells ? seats : 0, l->ready_words * sizeof(uint64_t),                         \
         SHMT_LINE)                             /* batches/ready.c */                                                          \
    PART(far, float, l->far_nodes, array, 4096) /* many hosts: sums of subtrees, or of rounds (batches/, rounds/far*.c), */    \
    PART(far_map, unsigned char, l->touched ? l->far_nodes : 0, l->map_bytes, SHMT_LINE) /* and their touched maps */          \
    PART(merged, uint8_t, merges ? shmt_far_blocks(l->flat.n) : 0, 1,                                                          \
         SHMT_LINE) /* many hosts: 1: blocks that a merge has changed */                                                       \
    PART(traffic, struct shmt_far_traffic, l->links, sizeof(struct shmt_far_traffic), SHMT_LINE)                               \
    PART(shares, struct shmt_shares, 2 * l->links, sizeof(struct shmt_shares), SHMT_LINE) /* of items: epoch's number % 2 */   \
    PART(passing, struct shmt_shm_passing, passed > 0, sizeof(struct shmt_shm_passing), SHMT_LINE)                             \
    PART(passed, uint32_t, passed, sizeof(uint32_t), SHMT_LINE) /* items: (passing.n) in this epoch */                         \
    PART(row_place, uint32_t, spec->row_places ? spec->table[0].rows : 0, sizeof(uint32_t), 4096)                              \
    PART(snapshot_clock, uint64_t, spec->pauses.allowed ? seats : 0, sizeof(uint64_t), SHMT_LINE)                              \
    PART(snapshot_loss, double, spec->pauses.allowed ? pieces : 0, sizeof(double), SHMT_LINE)                                  \
    PART(snapshot_done, uint32_t, spec->pauses.allowed ? pieces : 0, sizeof(uint32_t), SHMT_LINE) /* examples */               \
    PART(snapshot, float, spec->pauses.allowed ? UINT64_C(1) + l->planes : 0, array, page)                                     \
    PART(board, unsigned char, spec->board_bytes, 1, page)                                                                     \
    PART(coll_words, unsigned char, shmt_coll_words_bytes(&spec->coll, spec->n_seats), 1, SHMT_LINE) /* coll/memory.h */       \
    PART(coll_exchange, unsigned char, spec->coll.half_bytes ? seats : 0,                                                      \
         pages(plan, shmt_coll_exchange_bytes(&spec->coll), 1, page), spec->coll.half_bytes ? page : SHMT_LINE)

/* n elements of `each` bytes, `off` bytes behind the segment's header. */
struct shmt_shm_part {
    uint64_t off, n, each;
};

struct shmt_shm_layout {
    struct shmt_flat flat;
    struct shmt_cover cover; /* what replicas hold of it; all, where there are none */
    uint32_t stack;          /* aggregate: gradient buffers of each seat */
    bool touched;            /* whether touched maps are kept */
    uint32_t terms;     /* batches: of each chunk's list; 0: there are none. Then seats have one buffer more, for their sums */
    uint64_t map_bytes; /* of one touched map */
    uint32_t planes;    /* of the rule's state */
    uint32_t lock_mask; /* row locks - 1; meaningless where write is not locked */
    uint32_t n_slices;  /* rounds; else 0 */
    uint32_t n_replicas;
    uint32_t ready_words; /* of each seat, in whole lines: one for each table */
    bool equal;           /* replicas are equal copies */
    bool tells;           /* many hosts: the link is told of each table that is complete (batches/ready.c) */
    uint32_t links;       /* 1: there are other hosts, and behind the workers' seats the link's (ps/far.h); 0 */
    uint32_t far_nodes;   /* subtrees of the other hosts; of all, where the link rounds sums; rounds: 1, all hosts' gradients */
    bool base;            /* whether each replica has a base copy (update/merge.h) */
    uint32_t merge_mask;  /* merge locks - 1; meaningless where there are none */
    uint64_t page_bytes;  /* that ranges of memory are aligned to */
    uint64_t bytes;       /* of all */
#define SHMT_SHM_LAYOUT_PART(name, type, n, each, alignment) struct shmt_shm_part name;
    SHMT_SHM_PARTS(SHMT_SHM_LAYOUT_PART)
#undef SHMT_SHM_LAYOUT_PART
};

static inline uint64_t shmt_shm_part_bytes(const struct shmt_shm_part *part) { return part->n * part->each; }

/* The first lock unit of table t in replica `replica` (0 with one copy): those of the replicas and tables before it come
 * first. */
uint64_t shmt_shm_lock_first(const struct shmt_spec *spec, uint32_t replica, uint32_t t);

/* Pure. Errors: _MEMORY when it is beyond all arithmetic. */
int shmt_shm_layout_plan(const struct shmt_spec *spec, struct shmt_shm_layout *out, struct shmt_error *e);

/* Of the version and of every size that the layout depends on. */
uint64_t shmt_shm_layout_fingerprint(void);
