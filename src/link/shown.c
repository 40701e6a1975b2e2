/* What others see of the link: words about its traffic, and events of what it does (option trace). See exchange_priv.h. */
#include "base/checked.h"
#include "link/exchange_priv.h"

static uint32_t bytes_of(uint64_t n) { return (uint32_t)shmt_min_u64(n, UINT32_MAX); }

void shmt_exchange_show(struct shmt_exchange *x) {
    struct shmt_lanes_counts now;
    shmt_lanes_count(x->at.lanes, &now);
    /* relaxed, all: one writer; for display, and for the chief, who has met me behind the last of them */
    store_relaxed(&x->traffic->sent_bytes, now.sent_bytes - x->before.sent_bytes);
    store_relaxed(&x->traffic->received_bytes, now.received_bytes - x->before.received_bytes);
    store_relaxed(&x->traffic->turns, x->n_turns);
}

void shmt_exchange_begin_showing(struct shmt_exchange *x) {
    struct shmt_ring *ring = x->at.backend->far->ring(x->at.store);
    x->traffic = x->at.backend->far->traffic(x->at.store);
    shmt_lanes_count(x->at.lanes, &x->before);
    x->at_turn = x->before;
    if (ring) shmt_trace_begin(&x->trace, ring, x->at.spec->trace_events);
}

/* What went on gets its bytes: `exchange` what was sent since the last turn, or the last exchange of this one, `hosts` what has come since
 * the last turn. */
void shmt_exchange_does(struct shmt_exchange *x, enum shmt_event_kind kind) {
    struct shmt_trace *trace = &x->trace;
    if (!trace->ring) return;
    struct shmt_lanes_counts now;
    shmt_lanes_count(x->at.lanes, &now);
    const uint64_t sent = now.sent_bytes - x->at_turn.sent_bytes, received = now.received_bytes - x->at_turn.received_bytes;
    const bool ends_turn = trace->kind == SHMT_EVENT_HOSTS, has_sent = trace->kind == SHMT_EVENT_EXCHANGE;
    trace->bytes = bytes_of(ends_turn ? received : sent);
    shmt_trace_turn(trace, kind);
    shmt_trace_step(trace, x->epoch, x->number);
    if (has_sent) x->at_turn.sent_bytes = now.sent_bytes;
    if (ends_turn) x->at_turn = now;
}
