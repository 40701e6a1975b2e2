/* What a seat needs in every mode: its gradient buffers and row locks, meeting the others, and measuring delay. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "ps/delay.h"
#include "ps/meter.h"
#include "ps/replicas.h"
#include "ps/waits.h"
#include "update/kernels.h"
#include "update/lock.h"

float *shmt_shm_buffer(const struct shmt_store *store, uint32_t seat, uint32_t slot) {
    const struct shmt_shm_layout *l = &store->layout;
    return (float *)(void *)(store->grad + seat * l->grad.each) + slot * l->flat.n;
}

uint8_t *shmt_shm_map(const struct shmt_store *store, uint32_t seat, uint32_t slot) {
    const struct shmt_shm_layout *l = &store->layout;
    return l->touched ? store->map + seat * l->map.each + slot * l->map_bytes : NULL;
}

static float *copy_of(const struct shmt_store *store, uint32_t rank) {
    if (!store->layout.equal || rank == 0 || rank == store->spec.n_seats) return NULL; /* the chief, and the link */
    return (float *)(void *)(store->replica + shmt_replicas_of(&store->spec, rank) * store->layout.replica.each);
}

float *shmt_shm_weight_of(const struct shmt_store *store, uint32_t rank) {
    float *const copy = copy_of(store, rank);
    return copy ? copy : store->weight;
}

float *shmt_shm_state_of(const struct shmt_store *store, uint32_t rank) {
    float *const copy = copy_of(store, rank);
    return copy ? copy + store->layout.flat.n : store->state;
}

void shmt_shm_clear_whole(const struct shmt_store *store, uint32_t seat, uint32_t slot) {
    const struct shmt_shm_layout *l = &store->layout;
    shmt_clear(shmt_shm_buffer(store, seat, slot), NULL, l->flat.n);
    if (l->touched) memset(shmt_shm_map(store, seat, slot), 0, l->map_bytes);
}

void shmt_shm_count_present(struct shmt_shm_seat *p) {
    p->seat.index = p->seat.n_present = 0;
    memset(p->present, 0, sizeof p->present);
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++) {
        const bool is_me = seat == p->seat.rank && !p->guest; /* also where an earlier life has left, and died only then */
        if (!is_me && !shmt_shm_is_present(p->store, seat)) continue;
        p->present[seat / 64] |= UINT64_C(1) << seat % 64;
        if (seat < p->seat.rank) p->seat.index++;
        p->seat.n_present++;
    }
    const struct shmt_spec *spec = &p->store->spec;
    p->meeting.watch.spin_ns = p->clocks.watch.spin_ns = p->seat.n_present <= spec->spin_seats ? spec->spin_ns : 0;
}

/* The run's own workers are there as long as it goes on, unless it goes on without those that die, and buffers are laid out for
 * that: a store in which they are not was damaged, and a guest must not believe it. */
static int check_present(struct shmt_shm_seat *p) {
    if (p->store->spec.may_lack) return 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats - p->store->spec.n_guests; seat++)
        if (!shmt_shm_takes_part(p, seat))
            return shmt_fail(&p->seat.error, SHMTRAIN_E_USAGE, "the store is damaged: its run has no worker %u", seat);
    return 0;
}

int shmt_shm_begin_epoch(struct shmt_shm_seat *p) {
    p->over = load_relaxed(&p->store->control->over) != 0; /* relaxed: published by the meeting */
    if (p->over) return 0;                                 /* who takes part has no meaning any more */
    shmt_shm_count_present(p);
    p->over = !shmt_shm_is_link(p) && !shmt_shm_takes_part(p, p->seat.rank);
    if (p->over) return 0;
    const int rc = check_present(p);
    if (rc < 0) return rc;
    if (p->engine->share) p->engine->share(p); /* who takes part counts, not how many: one guest may have come for another */
    return 1;
}

void shmt_shm_note_wait(void *seat, int waits, uint32_t for_whom) {
    struct shmt_shm_seat *p = seat;
    struct shmt_counters *c = &p->slot->counters;
    if (waits && p->seat.meter == &c->busy_ns) {
        p->waited_ns = load_relaxed(p->wait_ns); /* relaxed, here and below: my own word */
        shmt_meter_turn(&p->seat, p->wait_ns);
    } else if (!waits && p->seat.meter == p->wait_ns) {
        if (p->seat.trace) p->seat.trace->for_whom = for_whom;
        shmt_meter_turn(&p->seat, &c->busy_ns);
        /* those at the ends of epochs are everybody's, in every mode: they say nothing of this one */
        if (!p->store->spec.unmeasured && for_whom != UINT32_MAX && p->wait_ns == &c->wait_clock_ns)
            shmt_waits_note(c->waited_for, for_whom, load_relaxed(p->wait_ns) - p->waited_ns);
    }
}

int shmt_shm_wait_for_all(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns) {
    p->wait_ns = wait_ns;
    const int gave_up = shmt_gates_wait(&p->meeting, SHMT_GATE_PHASE, p->phase, NULL);
    SHMT_POINT("meet:passed");
    return gave_up ? SHMTRAIN_E_STOPPED : 0;
}

int shmt_shm_meet(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns) {
    p->wait_ns = wait_ns;
    const int gave_up = shmt_gates_meet(&p->meeting, SHMT_GATE_PHASE, ++p->phase);
    SHMT_POINT("meet:passed");
    return gave_up ? SHMTRAIN_E_STOPPED : 0;
}

int shmt_shm_wait_for_workers(struct shmt_shm_seat *link) {
    link->wait_ns = &link->slot->counters.wait_clock_ns;
    for (uint32_t seat = 0; seat < link->store->spec.n_seats; seat++) {
        const int gave_up = shmt_gates_wait_for(&link->meeting, SHMT_GATE_PHASE, link->phase + 1, seat);
        if (gave_up) return SHMTRAIN_E_STOPPED;
    }
    SHMT_POINT("far:workers-are-in");
    return 0;
}

struct shmt_locks shmt_shm_locks(const struct shmt_shm_seat *p, uint32_t replica, uint32_t t) {
    const struct shmt_store *store = p->store;
    if (store->spec.policy.write != SHMT_WRITE_LOCKED) return (struct shmt_locks){0};
    return (struct shmt_locks){.word = store->locks,
                               .first = shmt_shm_lock_first(&store->spec, replica, t),
                               .mask = store->layout.lock_mask,
                               .owner = (p->seat.life & 0xffff) << 16 | (p->seat.rank + 1),
                               .abort = &store->control->abort};
}

void shmt_shm_by_units(struct shmt_shm_seat *p, uint32_t replica, uint64_t from, uint64_t to, shmt_shm_unit_fn *work,
                       void *arg) {
    const struct shmt_spec *spec = &p->store->spec;
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        const struct shmt_locks locks = shmt_shm_locks(p, replica, t);
        const struct shmt_span span = {.locks = locks, .width = spec->table[t].width};
        const uint64_t start = p->store->layout.flat.start[t], each = shmt_unit_floats(&span);
        const uint64_t behind = shmt_min_u64(to, start + shmt_table_floats(&spec->table[t]));
        for (uint64_t at = shmt_max_u64(from, start), end; at < behind; at = end) {
            end = shmt_min_u64(behind, start + ((at - start) / each + 1) * each);
            _Atomic uint32_t *held = shmt_unit_acquire(&locks, (at - start) / each);
            if (!held) return; /* the run is given up */
            SHMT_POINT("unit:held");
            work(p, t, at, end - at, arg);
            shmt_unit_release(held);
            SHMT_POINT("unit:released");
        }
    }
}

/* ---- delay ---- */

/* How many updates of others came between a pull and its push. Their counters are read, which costs a line from each: with many seats
 * only every so many pieces are sampled, so that it stays a small part of the work. */
#define LINES_PER_PIECE 8 /* of others, on average */

static bool is_sampled(const struct shmt_shm_seat *p) {
    const uint32_t every = 1 + (p->seat.n_present - 1) / LINES_PER_PIECE;
    return !p->store->spec.unmeasured && p->piece % every == 0;
}

/* relaxed: numbers for a rate, nothing is read on their strength */
static uint64_t clocks_of_others(const struct shmt_shm_seat *p) {
    uint64_t sum = 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++)
        if (seat != p->seat.rank && shmt_shm_takes_part(p, seat)) sum += load_relaxed(&p->store->front[seat].gate.clock);
    return sum;
}

uint64_t shmt_shm_delay(const struct shmt_seat *seat) {
    const struct shmt_shm_seat *p = (const struct shmt_shm_seat *)(const void *)seat;
    const uint64_t now = clocks_of_others(p);
    const uint64_t then =
        p->store->spec.cache_pulls ? shmt_min_u64(p->clocks_of_others, seat->pulled.clocks) : p->clocks_of_others;
    return now > then ? now - then : 0;
}

uint64_t shmt_shm_clock(const struct shmt_seat *seat) { return ((const struct shmt_shm_seat *)(const void *)seat)->clock; }

/* What counts is read first, and with acquire (shmt_gates_min): a copy that is made afterwards has what was pushed before those clocks.
 * It pairs with the seq_cst store of shmt_gate_reach, and the release of `working` in shmt_shm_stop_counting. */
void shmt_shm_look(const struct shmt_seat *seat, struct shmt_look *out) {
    const struct shmt_shm_seat *p = (const struct shmt_shm_seat *)(const void *)seat;
    const struct shmt_spec *spec = &p->store->spec;
    out->slowest = shmt_min_u64(p->clock, shmt_gates_min(&p->clocks, SHMT_GATE_CLOCK));
    out->updates = spec->unmeasured ? 0 : p->engine->updates(p);
    out->clocks = spec->staleness_aware ? clocks_of_others(p) : 0;
}

void shmt_shm_pull_begins(struct shmt_shm_seat *p) {
    if (p->store->spec.staleness_aware) p->clocks_of_others = clocks_of_others(p);
    if (is_sampled(p)) p->others = p->engine->updates(p);
}

void shmt_shm_push_ends(struct shmt_shm_seat *p) {
    if (!is_sampled(p)) return;
    const uint64_t missed = p->engine->missed ? p->engine->missed(p) : p->engine->updates(p) - p->others;
    shmt_delay_note(&p->slot->counters.delays, missed);
}
