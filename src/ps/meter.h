/* What a seat's time goes to: one of its counters at a time, or none. The session says when it works and when an epoch ends, a
 * backend when it waits; displays read the counters at any time, and so see what goes on at the moment, too.
 *
 * A counter at rest holds a sum of nanoseconds. A counter that grows holds that sum minus the (monotonic) time at which it began
 * to grow: a negative number, because no sum is larger than the time since the machine's start. So one word, read whole, says
 * both. */
#pragma once

#include <stdbool.h>

#include "sync/host.h"
#include "ps/backend_ops.h"

static inline bool shmt_meter_grows(uint64_t word) { return word >> 63 != 0; }

/* From now on the seat's time goes to `to` (NULL: to nothing that is counted). By the seat's owner.
 * relaxed: one writer, read for display and, when the team has ended, for the report */
static inline void shmt_meter_turn(struct shmt_seat *seat, _Atomic uint64_t *to) {
    if (seat->meter == to) return;
    const uint64_t now_ns = shmt_now_ns();
    if (seat->meter) bump_relaxed(seat->meter, now_ns);
    if (to) store_relaxed(to, load_relaxed(to) - now_ns);
    seat->meter = to;
    if (seat->trace) shmt_trace_meter(seat, to, now_ns);
}

/* Nanoseconds until now_ns, by anybody. What began after that time counts from the next look on. */
static inline uint64_t shmt_meter_read(const _Atomic uint64_t *word, uint64_t now_ns) {
    const uint64_t x = load_relaxed(word); /* relaxed: see above */
    if (!shmt_meter_grows(x)) return x;
    return shmt_meter_grows(x + now_ns) ? 0 : x + now_ns;
}

/* Nobody is at the seat any more, whose owner died about `now_ns`: what grows comes to rest. 0: when is not known, and what grows
 * becomes 0. By the seat's owner, or for one who is dead. */
static inline void shmt_meter_rest(struct shmt_counters *c, uint64_t now_ns) {
    _Atomic uint64_t *const words[] = {&c->wait_clock_ns, &c->wait_epoch_ns, &c->busy_ns,
                                       &c->evaluate_ns,   &c->merge_ns,      &c->pause_ns};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const uint64_t x = load_relaxed(words[i]); /* relaxed, here and below: one writer, as above */
        if (shmt_meter_grows(x)) store_relaxed(words[i], now_ns > 0 ? x + now_ns : 0);
    }
}

/* The owner has just entered. A worker that died at this seat has left a counter growing. An earlier life of mine ended about
 * now, so the counter is right until now. When a guest died is not known: its counter is set to 0. */
static inline void shmt_meter_begin(struct shmt_seat *seat) {
    seat->meter = NULL;
    shmt_meter_rest(seat->counters, seat->life > 0 ? shmt_now_ns() : 0);
}
