/* What a seat does when, for --trace: a ring of events in the backend's memory, written by the seat's owner alone and read
 * by the application when the team has ended, also after a failure.
 *
 * A seat does one thing at a time, so its events follow one another and never overlap: every function here ends what went on
 * and begins something else. Sessions say when they pull, compute and push; the meter (ps/meter.h) says when a seat waits,
 * evaluates or merges, so these events add up to the counters; engines say when they aggregate and update. A seat whose
 * `trace` is NULL is not traced; each function tests that pointer first, and that is all that tracing costs
 * then.
 *
 * Within an item pulls, computing and pushes take turns, in some models thousands of times. A few turns are kept as they
 * were; of more, the item shows three events one after another, each as long as all of its kind together, and `parts` says
 * how many these were. */
#pragma once

#include <shmtrain/session.h>
#include <stdalign.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "base/line.h"

struct shmt_seat;

enum shmt_event_kind {
    SHMT_EVENT_NONE, /* nothing that is told: between two items */
    SHMT_EVENT_PULL, /* the first three take turns within an item */
    SHMT_EVENT_COMPUTE,
    SHMT_EVENT_PUSH,
    SHMT_EVENT_AGGREGATE,
    SHMT_EVENT_UPDATE,
    SHMT_EVENT_WAIT,
    SHMT_EVENT_MERGE,
    SHMT_EVENT_EVALUATE,
    SHMT_EVENT_SNAPSHOT,
    SHMT_EVENT_EXCHANGE, /* the link alone: sending to the other hosts, and taking what comes; */
    SHMT_EVENT_HOSTS,    /* ... waiting for them */
    SHMT_EVENT_ITEM,     /* never in a ring: an item that its seat has in hand, or had when it died */
    SHMT_EVENT_KINDS
};

/* One of a ring. */
struct shmt_event {
    uint64_t begin_ns, ns; /* of the monotonic clock */
    uint32_t epoch, step;  /* from 0; the step of the epoch. Of no meaning for evaluations and the waits between two epochs */
    uint32_t count;        /* pull, compute, push: examples of the item; wait: for which seat (UINT32_MAX: for nobody known);
                              exchange, hosts: bytes, sent and received */
    uint16_t kind;         /* enum shmt_event_kind */
    uint16_t parts;        /* so many turns were added up (65535: or more); aggregate and update: see shmt_trace_shares */
};

/* A seat's part of the memory: this, then the events, of which the number `written % room` is written next. */
struct shmt_ring {
    alignas(SHMT_LINE) _Atomic uint64_t written; /* owner: events ever written */
    _Atomic uint64_t since_ns;                   /* owner: what goes on now began then, ... */
    _Atomic uint32_t doing;                      /* owner: ... and is this */
    uint32_t reserved;
};

/* Bytes of a ring with room for n events; 0 for none. */
static inline uint64_t shmt_ring_bytes(uint32_t room) {
    return room ? sizeof(struct shmt_ring) + (uint64_t)room * sizeof(struct shmt_event) : 0;
}

#define SHMT_TRACE_TURNS 16 /* of an item, that are kept as they were */

/* The owner's own, in memory of its process. */
struct shmt_trace {
    struct shmt_ring *ring;
    uint32_t room;
    enum shmt_event_kind kind; /* what goes on now, ... */
    uint64_t since_ns;         /* ... and when it began */
    uint32_t epoch, step, examples, for_whom;
    uint32_t bytes; /* the link: of what goes on now */
    bool in_item;
    uint64_t item_ns; /* the turns that are noted began then */
    uint32_t n_turns; /* of the item, since it began or was interrupted */
    struct {
        enum shmt_event_kind kind;
        uint64_t ns;
    } turn[SHMT_TRACE_TURNS];
    uint64_t sum_ns[SHMT_EVENT_AGGREGATE]; /* [kind] of all turns */
    uint32_t parts[SHMT_EVENT_AGGREGATE];
};

/* The owner has sat down: nothing goes on yet. `ring` is zeros, or what an earlier owner of the seat has left, which stays. */
void shmt_trace_begin(struct shmt_trace *trace, struct shmt_ring *ring, uint32_t room);

/* From now on the seat does `kind`, which it may have done before. */
void shmt_trace_turn(struct shmt_trace *trace, enum shmt_event_kind kind);
void shmt_trace_turn_at(struct shmt_trace *trace, enum shmt_event_kind kind, uint64_t now_ns);

/* An item begins, or ends: between the two it is computing unless it says something else. `step` of the epoch. */
void shmt_trace_item(struct shmt_trace *trace, const struct shmtrain_work *work, uint64_t step);
void shmt_trace_item_ends(struct shmt_trace *trace);

/* What was done since the last turn was aggregating and updating, block by block: told as two events after one another, in
 * proportion to the times aggregate_ns and update_ns, which may be of some of the blocks. parts: so many blocks. Then
 * nothing that is told goes on. */
void shmt_trace_shares(struct shmt_trace *trace, uint64_t aggregate_ns, uint64_t update_ns, uint64_t parts);

/* Of which step the aggregating and updating is that comes next. */
static inline void shmt_trace_step(struct shmt_trace *trace, uint32_t epoch, uint64_t step) {
    trace->epoch = epoch;
    trace->step = (uint32_t)step;
}

/* By the meter: the seat's time goes to another of its counters (NULL: to none). */
void shmt_trace_meter(struct shmt_seat *seat, const _Atomic uint64_t *to, uint64_t now_ns);

/* The same where there may be no trace (NULL). */
static inline void shmt_trace_to(struct shmt_trace *trace, enum shmt_event_kind kind) {
    if (trace) shmt_trace_turn(trace, kind);
}

/* By the application when the team has ended: copies the events that are there, oldest first, into out (room). What their
 * seat has not finished is added, if `now_ns` is not 0, as one more that lasts until then (out: room + 1); *open_out says
 * so. Nothing in the ring is believed: who wrote it may have died in the middle, or be a stranger. */
uint32_t shmt_ring_read(const struct shmt_ring *ring, uint32_t room, uint64_t now_ns, struct shmt_event *out,
                        uint64_t *lost_out, bool *open_out);
