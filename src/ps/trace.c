/* Events of a seat: see trace.h. */
#include "ps/trace.h"

#include <string.h>

#include "base/checked.h"
#include "ps/backend_ops.h"
#include "sync/host.h"

static struct shmt_event *events_of(const struct shmt_ring *ring) { return (struct shmt_event *)(ring + 1); }

static bool takes_turns(enum shmt_event_kind kind) {
    return kind == SHMT_EVENT_PULL || kind == SHMT_EVENT_COMPUTE || kind == SHMT_EVENT_PUSH;
}

static uint32_t count_of(const struct shmt_trace *t, enum shmt_event_kind kind) {
    if (kind == SHMT_EVENT_WAIT) return t->for_whom;
    if (kind == SHMT_EVENT_EXCHANGE || kind == SHMT_EVENT_HOSTS) return t->bytes;
    return takes_turns(kind) ? t->examples : 0;
}

/* The oldest event gives way. release: the event is whole for whoever sees the count; pairs with the acquire in shmt_ring_read,
 * which matters for guests: a team of the application's own has been waited for. */
static void put(struct shmt_trace *t, enum shmt_event_kind kind, uint64_t begin_ns, uint64_t ns, uint64_t parts) {
    const uint64_t written = load_relaxed(&t->ring->written); /* relaxed: my own word */
    if (ns == 0) return;
    events_of(t->ring)[written % t->room] = (struct shmt_event){.begin_ns = begin_ns,
                                                                .ns = ns,
                                                                .epoch = t->epoch,
                                                                .step = t->step,
                                                                .count = count_of(t, kind),
                                                                .kind = (uint16_t)kind,
                                                                .parts = (uint16_t)shmt_min_u64(parts, UINT16_MAX)};
    store_release(&t->ring->written, written + 1);
}

/* What a reader sees of a seat that never comes back. relaxed: one writer, and read when its owner is gone */
static void show(struct shmt_trace *t) {
    store_relaxed(&t->ring->doing, (uint32_t)(t->in_item && takes_turns(t->kind) ? SHMT_EVENT_ITEM : t->kind));
    store_relaxed(&t->ring->since_ns, t->since_ns);
}

void shmt_trace_begin(struct shmt_trace *trace, struct shmt_ring *ring, uint32_t room) {
    *trace = (struct shmt_trace){.ring = ring, .room = room, .for_whom = UINT32_MAX};
    show(trace);
}

/* ---- turns within an item ---- */

static void begin_turns(struct shmt_trace *t, uint64_t now_ns) {
    t->item_ns = now_ns;
    t->n_turns = 0;
    memset(t->sum_ns, 0, sizeof t->sum_ns);
    memset(t->parts, 0, sizeof t->parts);
}

static void note_turn(struct shmt_trace *t, uint64_t ns) {
    if (t->n_turns < SHMT_TRACE_TURNS) {
        t->turn[t->n_turns].kind = t->kind;
        t->turn[t->n_turns].ns = ns;
    }
    t->n_turns++;
    t->sum_ns[t->kind] += ns;
    t->parts[t->kind]++;
}

/* The item ends, or something else comes in between: its turns go to the ring. */
static void tell_turns(struct shmt_trace *t) {
    uint64_t at = t->item_ns;
    if (t->n_turns <= SHMT_TRACE_TURNS) {
        for (uint32_t i = 0; i < t->n_turns; at += t->turn[i++].ns) put(t, t->turn[i].kind, at, t->turn[i].ns, 1);
    } else {
        for (enum shmt_event_kind kind = SHMT_EVENT_PULL; takes_turns(kind); at += t->sum_ns[kind++])
            put(t, kind, at, t->sum_ns[kind], t->parts[kind]);
    }
    t->n_turns = 0;
}

/* ---- what goes on ---- */

static void end_current(struct shmt_trace *t, uint64_t now_ns) {
    if (t->kind == SHMT_EVENT_NONE) return;
    if (takes_turns(t->kind) && t->in_item)
        note_turn(t, now_ns - t->since_ns);
    else
        put(t, t->kind, t->since_ns, now_ns - t->since_ns, 1);
}

void shmt_trace_turn_at(struct shmt_trace *trace, enum shmt_event_kind kind, uint64_t now_ns) {
    const bool were_turns = trace->in_item && takes_turns(trace->kind), are_turns = trace->in_item && takes_turns(kind);
    end_current(trace, now_ns);
    if (were_turns && !are_turns) tell_turns(trace);
    if (are_turns && !were_turns) begin_turns(trace, now_ns);
    trace->kind = kind;
    trace->since_ns = now_ns;
    if (were_turns != are_turns || !are_turns) show(trace); /* within an item nothing is stored at each turn */
}

void shmt_trace_turn(struct shmt_trace *trace, enum shmt_event_kind kind) { shmt_trace_turn_at(trace, kind, shmt_now_ns()); }

void shmt_trace_item(struct shmt_trace *trace, const struct shmtrain_work *work, uint64_t step) {
    const uint64_t now_ns = shmt_now_ns();
    shmt_trace_turn_at(trace, SHMT_EVENT_NONE, now_ns);
    shmt_trace_step(trace, work->epoch, step);
    trace->examples = (uint32_t)work->n;
    trace->in_item = true;
    shmt_trace_turn_at(trace, SHMT_EVENT_COMPUTE, now_ns);
}

void shmt_trace_item_ends(struct shmt_trace *trace) {
    shmt_trace_turn(trace, SHMT_EVENT_NONE);
    trace->in_item = false;
}

void shmt_trace_shares(struct shmt_trace *trace, uint64_t aggregate_ns, uint64_t update_ns, uint64_t parts) {
    const uint64_t now_ns = shmt_now_ns(), ns = now_ns - trace->since_ns;
    const double all = (double)aggregate_ns + (double)update_ns;
    const uint64_t first = all > 0 ? shmt_min_u64(ns, (uint64_t)((double)ns * ((double)aggregate_ns / all))) : ns;
    put(trace, SHMT_EVENT_AGGREGATE, trace->since_ns, first, parts);
    put(trace, SHMT_EVENT_UPDATE, trace->since_ns + first, ns - first, parts);
    trace->kind = SHMT_EVENT_NONE; /* all of it has been told */
    shmt_trace_turn_at(trace, SHMT_EVENT_NONE, now_ns);
}

void shmt_trace_meter(struct shmt_seat *seat, const _Atomic uint64_t *to, uint64_t now_ns) {
    const struct shmt_counters *c = seat->counters;
    enum shmt_event_kind kind = SHMT_EVENT_NONE;
    if (to == &c->wait_clock_ns || to == &c->wait_epoch_ns) kind = SHMT_EVENT_WAIT;
    if (to == &c->merge_ns) kind = SHMT_EVENT_MERGE;
    if (to == &c->evaluate_ns) kind = SHMT_EVENT_EVALUATE;
    if (to == &c->pause_ns) kind = SHMT_EVENT_SNAPSHOT;
    if (to == &c->busy_ns && seat->trace->in_item) kind = SHMT_EVENT_COMPUTE;
    shmt_trace_turn_at(seat->trace, kind, now_ns);
    if (kind != SHMT_EVENT_WAIT) seat->trace->for_whom = UINT32_MAX; /* that wait has been told */
}

/* ---- reading ---- */

static bool is_event(const struct shmt_event *event) {
    return event->kind > SHMT_EVENT_NONE && event->kind < SHMT_EVENT_ITEM && event->ns <= UINT64_MAX - event->begin_ns;
}

/* What the owner was at when it was seen last; false: at nothing. */
static bool read_open(const struct shmt_ring *ring, uint64_t now_ns, struct shmt_event *out) {
    const uint32_t doing = load_relaxed(&ring->doing); /* relaxed, both: their owner is gone */
    const uint64_t since_ns = load_relaxed(&ring->since_ns);
    if (doing == SHMT_EVENT_NONE || doing >= SHMT_EVENT_KINDS || since_ns >= now_ns) return false;
    *out = (struct shmt_event){
        .begin_ns = since_ns, .ns = now_ns - since_ns, .count = UINT32_MAX, .kind = (uint16_t)doing, .parts = 1};
    return true;
}

uint32_t shmt_ring_read(const struct shmt_ring *ring, uint32_t room, uint64_t now_ns, struct shmt_event *out,
                        uint64_t *lost_out, bool *open_out) {
    const uint64_t written = load_acquire(&ring->written); /* pairs with the release in `put` */
    const uint64_t first = written > room ? written - room : 0;
    uint32_t n = 0;
    for (uint64_t i = first; i < written; i++) {
        out[n] = events_of(ring)[i % room];
        n += is_event(&out[n]);
    }
    *lost_out = first;
    *open_out = now_ns > 0 && read_open(ring, now_ns, &out[n]);
    return n + *open_out;
}
