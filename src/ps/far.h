/* THE CONTRACT, for runs over many hosts: what a backend offers to the link, which exchanges gradients with the other hosts' links.
 *
 * The link has a seat, of rank n_seats, behind all workers' seats. It enters and leaves as a worker does, takes part in every meeting,
 * and ends epochs as all do (meet, tally, turn), but it has no piece of work and no part of the update. In place of the worker's claim
 * and publish it has the entries below: `gather` waits until this host's gradients of the next batch are complete, then the link reads
 * the sums of this host's subtrees (consistency/chunks.h), puts those of the other hosts in their places, and publishes: the batch is
 * applied by the workers as if all of its gradients had been computed here. So every host has the same parameters, bit by bit.
 *
 * All are called by the link's thread. Errors as in ps/backend_ops.h. */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/line.h"
#include "consistency/chunks.h"
#include "consistency/shares.h"
#include "ps/backend_ops.h"
#include "ps/trace.h"
#include "update/parts.h"

#define SHMT_FAR_BLOCK 256 /* floats of a block, in which gradients are exchanged */

/* Blocks that are sent at a time before all gradients are in, at least: as DistributedDataParallel puts gradients into buckets. To wake
 * the link and to send a message takes about as long as to send this much. */
#define SHMT_FAR_BUCKET 128

_Static_assert(SHMT_FAR_BLOCK == SHMT_PART_FLOATS, "a part of a merge is one of a block");

/* What has crossed the network since the link took its seat: words in the store's memory, for displays. */
struct shmt_far_traffic {
    alignas(SHMT_LINE) _Atomic uint64_t sent_bytes, received_bytes; /* the link */
    _Atomic uint64_t turns; /* the link: batches, or rounds, that it has done with the others */
    /* the chief: what these were at the end of the last epoch */
    alignas(SHMT_LINE) _Atomic uint64_t told_sent_bytes, told_received_bytes, told_turns;
};

/* A batch that is to be exchanged. */
struct shmt_far_batch {
    uint32_t epoch;
    uint64_t step, number; /* of the epoch, of the run */
};

/* Gradients that are complete before all are. */
struct shmt_far_ready {
    uint64_t from;  /* sums are complete of blocks from this one on */
    uint64_t stamp; /* another one than before: a worker has died, and has computed its gradients anew. Never 0 */
};

/* What was done of a chunk of the batch. */
struct shmt_far_piece {
    uint64_t examples; /* 0: it has none */
    double loss;
};

/* The live modes: workers go on while the link reads their host's parameters, and brings to them what other hosts have changed
 * (link/rounds.c). Each host deals items of its own (consistency/shares.h). */
struct shmt_far_live_ops {
    /* An epoch begins: 1, or a status. Waits for this host's workers where they meet before they begin. */
    int (*begin)(struct shmt_seat *seat);

    /* 1: all of this host's workers have ended the epoch, what they have pushed is in the parameters, and nobody pushes until `end`.
     * 0: some work. _STOPPED. Does not wait. */
    int (*rests)(struct shmt_seat *seat);

    /* Of block `block` of the flat array (SHMT_FAR_BLOCK floats, the last one may be shorter): each float as it is at some moment;
     * adds to each; or, while all rest, sets them. */
    void (*read)(struct shmt_seat *seat, uint64_t block, float *out);
    void (*add)(struct shmt_seat *seat, uint64_t block, const float *change);
    void (*set)(struct shmt_seat *seat, uint64_t block, const float *value);

    /* Examples that this host has trained on in this run; fewer than before where a worker has died. */
    uint64_t (*examples)(struct shmt_seat *seat);

    /* The share of a change of each of a block's floats, in which so many examples have had their part, that comes to what one host
     * alone would make of the changes of all (update/merge.h, damped). Where the curvature is known (spec.curvatures). */
    void (*shares)(struct shmt_seat *seat, uint64_t block, uint64_t examples, float *out);

    /* Clocks of this epoch: of this host's slowest worker that has work (UINT64_MAX: none has); and what this host's workers are to
     * take for that of the other hosts' slowest one. */
    uint64_t (*clock)(struct shmt_seat *seat);
    void (*reach)(struct shmt_seat *seat, uint64_t clock);

    /* How this epoch's items are dealt to hosts; and how those of the next one will be, to be said while all rest. Equal shares if
     * nothing is said. */
    const struct shmt_shares *(*dealt)(struct shmt_seat *seat);
    void (*deal)(struct shmt_seat *seat, const struct shmt_shares *next);

    /* One of this host's items, and one of another's. */
    void (*piece)(struct shmt_seat *seat, uint64_t piece, struct shmt_far_piece *out);
    void (*put_piece)(struct shmt_seat *seat, uint64_t piece, const struct shmt_far_piece *of);

    /* This host's workers begin no more items. */
    void (*stop)(struct shmt_seat *seat);

    /* All rest, and all parameters are set. `stop`: the run ends with this epoch, on all hosts. Waits. */
    int (*end)(struct shmt_seat *seat, bool stop);
};

/* Items that hosts pass on to one another (link/passing.c), where shmt_spec_passes_items. Between `begin` and the end of an epoch. */
struct shmt_far_passing_ops {
    /* None of this host's workers has an item, nor has found one among those that it was passed so far; since when. */
    bool (*is_out)(struct shmt_seat *seat, uint64_t *since_ns_out);

    /* Takes one of this host's items that nobody has begun: false: there is none. */
    bool (*give)(struct shmt_seat *seat, uint64_t *piece_out);

    /* The next n items of another host are this one's. */
    void (*pass)(struct shmt_seat *seat, const uint64_t *piece, uint64_t n);

    /* Nobody passes on any more in this epoch: workers without items have ended it. */
    void (*close)(struct shmt_seat *seat);
};

/* Modes whose workers meet to merge their copies (link/merges.c). The link comes last to each of these meetings, with what all hosts'
 * copies come to, which it brings to the master; then the workers bring their copies to it. It begins epochs, tells what was done of
 * items, and stops workers as in the live modes: by the entries begin, piece, put_piece and stop of those. */
struct shmt_far_merge_ops {
    /* Waits until all of this host's workers have come to the meeting before a merge: 1: some have work left in this epoch, 0: none
     * has; or a status. Copies and master rest from then on, until `publish`. */
    int (*gather)(struct shmt_seat *seat);

    /* Word 0 (weights) or 1 + plane (state, of shmt_flat_planes) of block `block` of the flat array: what this host's copies come to.
     * false: none has changed it, and `out` is not written. */
    bool (*part)(struct shmt_seat *seat, uint32_t word, uint64_t block, struct shmt_merge_part *out);

    /* The master of this block becomes what all n parts of it make of it, in the order of ranks (update/parts.h). */
    void (*merge)(struct shmt_seat *seat, uint32_t word, uint64_t block, const struct shmt_merge_part *part, uint32_t n);

    /* All is merged. `others_work`: workers of other hosts have work left in this epoch, so that another merge follows; `stop`: the
     * run ends with this epoch, on all hosts. Waits until all copies are what the master is. */
    int (*publish)(struct shmt_seat *seat, bool others_work, bool stop);
};

#define SHMT_SEAT_WORDS (SHMT_MAX_SEATS / 64) /* with a bit for each seat of a host */

/* Who of this host has come to the round that is open. What has come stays there until the round is closed. */
struct shmt_far_look {
    uint64_t round;                                      /* its number: so many are closed */
    uint64_t items;                                      /* of this epoch, whose gradients were offered by now */
    uint64_t examples;                                   /* of the gradients that are in */
    uint32_t working;                                    /* seats that have work */
    uint64_t in[SHMT_SEAT_WORDS], late[SHMT_SEAT_WORDS]; /* whose gradients are; of these, who had missed its round */
};

/* What all hosts have made a round of. */
struct shmt_far_round {
    uint64_t round;
    uint64_t step;      /* of the epoch, for the rate */
    uint64_t examples;  /* of all gradients of all hosts */
    const uint64_t *in; /* whose of this host's seats are in it */
};

/* Rounds with a quorum (link/quorums.c). The link alone closes rounds here. It does not wait for workers, but for `end`; epochs, items and
 * stops are as in the live modes: by the entries begin, piece, put_piece, dealt, deal and stop of those. */
struct shmt_far_quorum_ops {
    void (*look)(struct shmt_seat *seat, struct shmt_far_look *out);

    /* Whether all that is closed is applied; brings on some of what nobody is at. 1: it is, and what was put is forgotten; 0: somebody is
     * at it, or there is more to do, so that it is called again; or a status. Before anything is put for the next round, and before
     * `end`. */
    int (*settle)(struct shmt_seat *seat);

    /* These are this host's members of the open round; and the sum of their gradients of block `block` of the flat array. false: it is
     * zero, and `out` is not written. */
    void (*choose)(struct shmt_seat *seat, const uint64_t *in);
    bool (*sum)(struct shmt_seat *seat, uint64_t block, float *out);

    /* The sum of all hosts' gradients of that block; what is not put is zero. Then the round is closed, and workers apply it. */
    void (*put)(struct shmt_seat *seat, uint64_t block, const float *sum);
    void (*close)(struct shmt_seat *seat, const struct shmt_far_round *of);

    /* Nobody of any host has work left in this epoch. `stop`: the run ends with it, on all hosts. Waits until all of this host's workers
     * have come. */
    int (*end)(struct shmt_seat *seat, bool stop);
};

/* The list of terms of a chunk's gradient (update/terms.h), which may be at any address. */
struct shmt_far_terms {
    uint32_t n;
    bool summed;            /* there is more of the gradient, in the sums of subtrees */
    const void *id, *value; /* (n) 32-bit numbers, and floats */
};

struct shmt_far_ops {
    /* Whenever the seat waits, `pulse` is called every `pulse_ns`: the other hosts want to hear of this one meanwhile. */
    void (*pulse)(struct shmt_seat *seat, uint64_t pulse_ns, void (*pulse)(void *arg), void *arg);

    /* By anybody who has the store; NULL: it has no link. And the link's events, which it alone writes; NULL: none are kept
     * (spec.trace_events), or there is no link. */
    struct shmt_far_traffic *(*traffic)(struct shmt_store *store);
    struct shmt_ring *(*ring)(struct shmt_store *store);

    /* 1 and *out; 0: this epoch has no more batches. Waits for nobody. What other hosts have of the batch may be put from then on. */
    int (*claim)(struct shmt_seat *seat, struct shmt_far_batch *out);

    /* Before `gather`, where workers tell of each table that its gradient is complete (dense ones): waits until blocks below `below` are,
     * too: 1 and *out. 0: nobody tells. _STOPPED. */
    int (*ready)(struct shmt_seat *seat, uint64_t below, struct shmt_far_ready *out);

    /* Whether what `sum` has returned since `ready` gave this stamp was complete. */
    bool (*holds)(struct shmt_seat *seat, uint64_t stamp);

    /* Waits until all of this host's workers have come to the meeting "all gradients are in": 1: somebody on this host wants the run to
     * end behind this batch; 0; or a status. */
    int (*gather)(struct shmt_seat *seat);

    /* The sum over a subtree of this host's chunks, of block `block` of the flat array, to out (SHMT_FAR_BLOCK, the last one may be
     * shorter). false: it is zero, and `out` is not written. */
    bool (*sum)(struct shmt_seat *seat, struct shmt_subtree of, uint64_t block, float *out);

    /* The sum over subtree number `node` of those of the other hosts (shmt_far_nodes, shmt_spec_far_without); what is not put is zero.
     * Where sums are rounded (shmt_spec_rounds_sums), nodes are those of all hosts, and what is put, or not, for one of this host's
     * takes the place of what its workers have, which `sum` still returns. */
    void (*put)(struct shmt_seat *seat, uint32_t node, uint64_t block, const float *sum);

    /* The list of one of this host's chunks, valid until `publish`: false: no lists are kept in this run. And of one of another's, whose
     * ids have been checked; what is not put is empty. false: there is no room for so many. Where sums are rounded, one of this host's
     * may be put as well, in the place of that which it had. */
    bool (*terms)(struct shmt_seat *seat, uint32_t chunk, struct shmt_far_terms *out);
    bool (*put_terms)(struct shmt_seat *seat, uint32_t chunk, const struct shmt_far_terms *terms);

    /* One of this host's chunks, and one of another's. */
    void (*piece)(struct shmt_seat *seat, uint32_t chunk, struct shmt_far_piece *out);
    void (*put_piece)(struct shmt_seat *seat, uint32_t chunk, const struct shmt_far_piece *piece);

    const struct shmt_far_live_ops *live;
    const struct shmt_far_merge_ops *merges;
    const struct shmt_far_passing_ops *passing;
    const struct shmt_far_quorum_ops *quorums;

    /* All is put, and all hosts agree whether the run ends behind this batch. Waits until it is applied. */
    int (*publish)(struct shmt_seat *seat, bool stop);
};

/* Blocks of the flat array of n floats. */
static inline uint64_t shmt_far_blocks(uint64_t n) { return (n + SHMT_FAR_BLOCK - 1) / SHMT_FAR_BLOCK; }
