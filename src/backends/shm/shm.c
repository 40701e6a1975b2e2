/* The shm backend: its seats, and what the application asks of a store. What the families of policies do is in their engines'
 * files; made.c makes stores, before workers are forked, which inherit the mapping. */
#include "backends/shm/shm.h"

#include <stdlib.h>
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/own.h"
#include "base/point.h"
#include "math/tree.h"
#include "ps/replicas.h"
#include "update/counted.h"
#include "update/kernels.h"
#include "update/live.h"

/* ---- seats ---- */

/* From so many on, one word in which they tell one another that all have met saves more than its line costs. */
#define MANY_SEATS 32

static struct shmt_gates gates_of(struct shmt_store *store, uint32_t rank, const _Atomic uint32_t *member) {
    return (struct shmt_gates){
        .met = store->spec.n_seats >= MANY_SEATS ? &store->control->met : NULL,
        .latecomer = store->layout.links > 0,
        .gate = &store->front[0].gate,
        .stride_bytes = sizeof *store->front,
        .n = store->spec.n_seats + store->layout.links,
        .self = rank,
        .watch = {.abort = &store->control->abort, .member = member, .member_stride = sizeof *store->front / sizeof(uint32_t)}};
}

static void populate_one(const struct shmt_store *store, const struct shmt_shm_part *part, uint64_t i) {
    if (i < part->n) shmt_segment_populate(&store->segment, part->off + i * part->each, part->each, 1);
}

/* What this worker will use goes into its page table now, not fault by fault in its first epoch. */
static void populate(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_layout *l = &store->layout;
    populate_one(store, &l->control, 0);
    populate_one(store, &l->front, p->seat.rank);
    populate_one(store, &l->slot, p->seat.rank);
    shmt_segment_populate(&store->segment, l->slice.off, l->weight.off + l->weight.each - l->slice.off, 1);
    populate_one(store, &l->grad, p->seat.rank);
    populate_one(store, &l->replica, shmt_replicas_of(&store->spec, p->seat.rank));
    populate_one(store, &l->map, p->seat.rank);
    populate_one(store, &l->pulled, p->seat.rank);
    populate_one(store, &l->ring, p->seat.rank);
    populate_one(store, &l->tape, p->seat.rank);
}

struct shmt_ring *shmt_shm_ring(const struct shmt_store *store, uint32_t rank) {
    return (struct shmt_ring *)(void *)(store->ring + rank * store->layout.ring.each);
}

static void begin_trace(struct shmt_shm_seat *p) {
    const uint32_t room = p->store->spec.trace_events;
    if (room == 0 || shmt_shm_is_link(p)) return; /* the link traces itself */
    shmt_trace_begin(&p->trace, shmt_shm_ring(p->store, p->seat.rank), room);
    p->seat.trace = &p->trace;
}

static void leave(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    /* Who leaves before the end keeps counting: without its gradients the others must not go on, and the abort word ends them.
     * relaxed: nobody reads anything of mine on the strength of it. */
    SHMT_POINT("leave:before");
    if (p->over && !p->guest) store_relaxed(&p->front->alive, 0);
    if (p->over && p->store->spec.coll.half_bytes)
        shmt_coll_leave(p->store->coll_words, p->store->spec.n_seats, seat->rank, false);
    SHMT_POINT("leave:after");
    if (p->engine->leave) p->engine->leave(p);                      /* while the seat is mine */
    if (p->over && p->guest && !p->not_mine) shmt_shm_give_back(p); /* else it may be somebody else's already */
    shmt_own_free(p->scratch);
    shmt_own_free(p);
}

static const struct shmt_shm_engine *engine_of(const struct shmt_shm_seat *p) {
    const struct shmt_policy *policy = &p->store->spec.policy;
    if (shmt_shm_is_link(p) && shmt_policy_is_live(policy)) return &SHMT_SHM_LINK;
    if (shmt_policy_merges_replicas(policy)) return &SHMT_SHM_REPLICAS;
    if (shmt_policy_is_live(policy)) return &SHMT_SHM_LIVE;
    return shmt_policy_is_batched(policy) ? &SHMT_SHM_BATCHES : &SHMT_SHM_ROUNDS;
}

static int enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    if (rank >= store->spec.n_seats + store->layout.links)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "seat %u does not exist", rank);
    struct shmt_shm_seat *p = shmt_own_calloc(1, sizeof *p);
    if (!p) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a seat");
    p->store = store;
    p->front = &store->front[rank];
    p->slot = &store->slot[rank];
    p->seat.rank = rank;
    p->seat.life = life;
    p->epoch = store->spec.first_epoch;
    p->seat.counters = &p->slot->counters;
    p->engine = engine_of(p);
    p->guest = store->spec.n_guests > 0 && rank >= store->spec.n_seats - store->spec.n_guests;
    p->weight = shmt_shm_weight_of(store, rank);
    p->state = shmt_shm_state_of(store, rank);
    p->undo = shmt_shm_undo(store, rank);
    p->meeting = gates_of(store, rank, &store->front[0].alive);
    p->clocks = gates_of(store, rank, &store->front[0].working);
    p->meeting.tell = p->clocks.tell = shmt_shm_note_wait;
    p->meeting.tell_arg = p->clocks.tell_arg = p;
    if (life > 0) shmt_shm_revive(p);
    p->seat.first_epoch = p->epoch;
    shmt_shm_count_present(p);
    populate(p);
    begin_trace(p);
    const int rc = p->engine->enter(p);
    if (rc < 0) {
        *e = p->seat.error;
        leave(&p->seat);
        return rc;
    }
    if (p->guest) shmt_shm_come(p);
    *out = &p->seat;
    return 0;
}

static int claim(struct shmt_seat *seat, struct shmtrain_work *out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    if (p->revived && p->now.stage >= SHMT_STAGE_END) return 0; /* an earlier life had no more */
    int rc = shmt_shm_begin_work(p);
    if (rc == 1) rc = p->engine->claim(p);
    if (rc != 1) return rc;
    shmt_shm_pull_begins(p);
    p->store->ledger[p->piece].loss = 0; /* the last epoch's stands there, and nobody has to report one */
    *out = p->work;
    return 1;
}

static int bind(struct shmt_seat *seat, int t, struct shmt_span *out, int *live_out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_store *store = p->store;
    const struct shmt_table_spec *table = &store->spec.table[t];
    const uint64_t start = store->layout.flat.start[t];
    struct shmt_shm_memory m;
    p->engine->memory(p, &m);
    *out = (struct shmt_span){.weight = m.weight + start,
                              .sink = m.sink + start,
                              .touched = m.touched ? m.touched + start / SHMT_TOUCH_FLOATS : NULL,
                              .terms = m.terms,
                              .l2_share = store->spec.l2_shares ? store->l2_share + start : NULL,
                              .state = m.state ? m.state + start : NULL,
                              .plane = store->layout.flat.n,
                              .counted = store->spec.count_lost ? store->counted + start : NULL,
                              .locks = shmt_shm_locks(p, shmt_replicas_of(&store->spec, p->seat.rank), (uint32_t)t),
                              .undo = {.word = p->undo.word, .old = p->undo.old, .first = start},
                              .rows = table->rows,
                              .width = table->width};
    out->terms.first = (uint32_t)start;
    *live_out = !shmt_policy_is_batched(&store->spec.policy);
    return 0;
}

/* The gradient itself where it is kept apart; in the live modes scratch memory. */
static int lend(struct shmt_seat *seat, int t, float **out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_flat *flat = &p->store->layout.flat;
    const uint64_t start = flat->start[t], floats = shmt_table_floats(&p->store->spec.table[t]);
    struct shmt_shm_memory m;
    p->engine->memory(p, &m);
    if (m.sink != m.weight) {
        if (m.touched) memset(m.touched + start / SHMT_TOUCH_FLOATS, 1, shmt_ceil_div(floats, SHMT_TOUCH_FLOATS));
        shmt_terms_note_sum(&m.terms);
        *out = m.sink + start;
        return 0;
    }
    if (!p->scratch) p->scratch = shmt_own_calloc(flat->n, sizeof *p->scratch);
    if (!p->scratch)
        return shmt_fail(&seat->error, SHMTRAIN_E_MEMORY, "not enough memory for a gradient of %llu floats",
                         (unsigned long long)flat->n);
    *out = p->scratch + start;
    return 0;
}

static void complete(struct shmt_seat *seat, int t) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    if (p->engine->complete) p->engine->complete(p, (uint32_t)t);
}

static void report(struct shmt_seat *seat, double loss) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    p->store->ledger[p->piece].loss = loss; /* published with the piece's `done` */
}

static int publish(struct shmt_seat *seat, struct shmtrain_fate *out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    shmt_shm_push_ends(p);
    shmt_shm_count(p);
    return p->engine->publish(p, out);
}

/* ---- collectives ---- */

/* They are a part of the work, so their waits are those of its clocks. */
static void note_collective_wait(void *seat, int waits, uint32_t for_whom) {
    struct shmt_shm_seat *p = seat;
    if (waits) p->wait_ns = &p->slot->counters.wait_clock_ns;
    shmt_shm_note_wait(seat, waits, for_whom);
}

static void collective(struct shmt_seat *seat, struct shmt_coll_place *out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_store *store = p->store;
    *out = (struct shmt_coll_place){.room = store->spec.coll,
                                    .words = store->coll_words,
                                    .exchange = store->coll_exchange,
                                    .exchange_stride = store->layout.coll_exchange.each,
                                    .n = store->spec.n_seats,
                                    .self = seat->rank,
                                    .abort = &store->control->abort,
                                    .spin_ns = p->meeting.watch.spin_ns,
                                    .tell = note_collective_wait,
                                    .tell_arg = p};
}

/* ---- the end of an epoch ---- */

static void record_fit(struct shmt_shm_seat *p) { p->now.piece = p->seat.round; }

/* The work of those without `work` is the session's, or `turn`'s, which also meet behind it. */
const struct shmt_shm_stage SHMT_SHM_ENDS[SHMT_STAGE_TURN + 1] = {
    [SHMT_STAGE_FIT] = {.record = record_fit},
    [SHMT_STAGE_PAUSE] = {.work = shmt_shm_decide_on_pause, .wait = shmt_shm_wait_epoch}};

static enum shmt_task stage(struct shmt_seat *seat, enum shmt_run_stage which) {
    return shmt_shm_begin_stage(shmt_shm_seat_of(seat), which);
}

static int meet(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    return shmt_shm_meet(p, &p->slot->counters.wait_epoch_ns);
}

/* Of a live piece that somebody claimed in this epoch and has not done: only who died leaves one behind. That is lost, unless
 * its next life will do it: the run was stopped before, and may go on. */
static uint64_t lost_examples(const struct shmt_shm_seat *p, uint64_t piece) {
    const struct shmt_spec *spec = &p->store->spec;
    if (shmt_policy_is_batched(&spec->policy) || !shmt_spec_has_step(spec, p->epoch, piece))
        return 0; /* nor beyond max_steps */
    if (!shmt_ledger_is_claimed(&p->store->ledger[piece], p->epoch)) return 0;
    if (shmt_shm_will_be_taken_up(p->store, piece)) return 0;
    return shmt_spec_examples_of_step(spec, piece);
}

static int tally(struct shmt_seat *seat, struct shmt_tally *out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const uint64_t pieces = shmt_spec_pieces(&p->store->spec);
    double *loss = calloc(pieces, sizeof *loss);
    if (!loss)
        return shmt_fail(&seat->error, SHMTRAIN_E_MEMORY, "not enough memory to add up the losses of %llu pieces",
                         (unsigned long long)pieces);
    struct shmt_tally sum = {0};
    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t examples = shmt_ledger_examples(&p->store->ledger[i], p->epoch);
        if (examples == 0) sum.lost += lost_examples(p, i);
        if (examples == 0) continue;
        sum.examples += examples;
        sum.pieces++;
        loss[i] = p->store->ledger[i].loss;
    }
    sum.loss = shmt_tree_sum(loss, pieces);
    free(loss);
    *out = sum;
    return 0;
}

/* The chief, before the meeting that ends a turn. relaxed, all: it alone decides, and the meeting publishes it */
static void lead_on(struct shmt_shm_seat *chief) {
    const struct shmt_spec *spec = &chief->store->spec;
    struct shmt_shm_control *control = chief->store->control;
    const bool more = chief->epoch < spec->epochs && shmt_spec_has_step(spec, chief->epoch, 0);
    /* Hosts have agreed where they end: what is asked for here alone since then has to wait for the next batch. */
    const uint64_t next = chief->epoch * shmt_spec_steps(spec);
    const uint32_t asked = load_relaxed(&control->stop);
    const bool stop =
        shmt_spec_is_linked(spec) ? next >= load_relaxed(&control->end_step) || (asked & SHMT_STOP_REACHED) : asked != 0;
    if (!chief->pausing) store_relaxed(&control->over, !more || stop);
    SHMT_POINT("lead-on:over");
    store_relaxed(&control->pause_step, SHMT_NO_LIMIT);
    SHMT_POINT("lead-on:pause-step");
    if (load_relaxed(&control->over)) return;
    if (!chief->pausing) store_relaxed(&control->step, 0);
    shmt_shm_admit_all(chief);
}

static int turn(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const bool is_met = shmt_shm_begin_stage(p, SHMT_STAGE_TURN) == SHMT_TASK_MEET; /* an earlier life has done what follows */
    if (p->engine->align && !is_met) p->engine->align(p);
    if (p->engine->align && is_met)
        p->clock = load_relaxed(&p->front->gate.clock); /* relaxed: my own word, as it was aligned */
    if (!p->pausing) p->epoch++;
    if (!p->pausing) p->done = 0;
    SHMT_POINT("turn:before");
    if (seat->rank == 0 && !is_met) lead_on(p);
    SHMT_POINT("turn:after");
    p->in_work = false;
    const int rc = meet(seat);
    SHMT_POINT("turn:met");
    if (rc == 0) shmt_shm_copied(p);
    return rc < 0 ? rc : shmt_shm_begin_epoch(p);
}

/* ---- from the application, or any worker ---- */

static float *rows_at(struct shmt_store *store, int t, uint64_t row) {
    return store->weight + store->layout.flat.start[t] + row * store->spec.table[t].width;
}

static int read_rows(struct shmt_store *store, int t, uint64_t row, uint64_t n, float *out) {
    shmt_live_read(out, rows_at(store, t, row), n * store->spec.table[t].width);
    return 0;
}

static int write_rows(struct shmt_store *store, int t, uint64_t row, uint64_t n, const float *in) {
    memcpy(rows_at(store, t, row), in, n * store->spec.table[t].width * sizeof(float));
    shmt_flat_begin(&store->spec, &store->layout.flat, store->weight, store->layout.planes ? store->state : NULL, t, row, n);
    return 0;
}

static struct shmt_array array(struct shmt_store *store, enum shmt_array_name name, int t, uint32_t plane) {
    void *const base[SHMT_ARRAYS] = {
        [SHMT_ARRAY_HEAD] = store->head,           [SHMT_ARRAY_BOARD] = store->board,
        [SHMT_ARRAY_WEIGHT] = store->weight,       [SHMT_ARRAY_STATE] = store->state,
        [SHMT_ARRAY_L2_SHARE] = store->l2_share,   [SHMT_ARRAY_CURVATURE] = store->curvature,
        [SHMT_ARRAY_ROW_PLACE] = store->row_place,
    };
    return shmt_array_of(&store->spec, &store->layout.flat, base, name, t, plane);
}

static int lost(struct shmt_store *store, bool ended, uint64_t *counted_out) {
    const bool counts = store->spec.count_lost;
    const uint64_t n = store->layout.flat.n;
    if (counts && ended) shmt_counted_settle(store->counted, store->weight, n);
    *counted_out = counts ? shmt_counted_sum(store->counted, n) : 0;
    return counts;
}

static const struct shmt_counters *counters(struct shmt_store *store, uint32_t rank) {
    return rank < store->spec.n_seats ? &store->slot[rank].counters : NULL;
}

static int in_hand(struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *step_out) {
    if (shmt_shm_is_at(store, rank, epoch, step_out)) return 1;
    if (shmt_policy_is_batched(&store->spec.policy)) return 0;
    return shmt_ledger_in_hand(store->ledger, shmt_spec_pieces(&store->spec), epoch, rank, step_out);
}

static struct shmt_tape *tape(struct shmt_store *store, uint32_t rank) {
    if (store->spec.tape.room == 0 || rank >= store->spec.n_seats) return NULL;
    return (struct shmt_tape *)(void *)(store->tape + rank * store->layout.tape.each);
}

static const struct shmt_ring *ring(struct shmt_store *store, uint32_t rank) {
    return store->spec.trace_events > 0 && rank < store->spec.n_seats ? shmt_shm_ring(store, rank) : NULL;
}

static _Atomic uint32_t *stop_word(struct shmt_store *store) { return &store->control->stop; }
static _Atomic uint32_t *abort_word(struct shmt_store *store) { return &store->control->abort; }

static void wake(struct shmt_store *store) {
    const struct shmt_gates gates = gates_of(store, 0, &store->front[0].alive);
    shmt_gates_wake_after_death(&gates); /* the caller has set the abort word, or has counted a dead guest out */
}

static const struct shmt_seat_ops SEAT = {
    .enter = enter,
    .leave = leave,
    .claim = claim,
    .bind = bind,
    .lend = lend,
    .complete = complete,
    .delay = shmt_shm_delay,
    .clock = shmt_shm_clock,
    .look = shmt_shm_look,
    .report = report,
    .publish = publish,
    .stage = stage,
    .meet = meet,
    .tally = tally,
    .turn = turn,
    .pause = shmt_shm_pause,
    .copy = shmt_shm_copy,
    .collective = collective,
};

static const struct shmt_store_ops STORE = {
    .destroy = shmt_shm_destroy,
    .read = read_rows,
    .write = write_rows,
    .array = array,
    .lost = lost,
    .counters = counters,
    .ring = ring,
    .tape = tape,
    .in_hand = in_hand,
    .stop_word = stop_word,
    .abort_word = abort_word,
    .wake = wake,
    .reclaim = shmt_shm_reclaim,
    .request_snapshot = shmt_shm_request_snapshot,
    .snapshot = shmt_shm_snapshot,
    .release_snapshot = shmt_shm_release_snapshot,
    .final_snapshot = shmt_shm_final_snapshot,
    .resume = shmt_shm_resume,
};

const struct shmt_backend SHMT_BACKEND_SHM = {
    .name = "shm",
    .about = "worker processes (or threads) over one shared memory segment",
    .caps = SHMT_CAP_MANY | SHMT_CAP_PROCESSES | SHMT_CAP_JOIN | SHMT_CAP_PAUSE,
    .seat = &SEAT,
    .store = &STORE,
    .guests = &SHMT_SHM_GUESTS,
    .far = &SHMT_SHM_FAR,
    .plan = shmt_shm_plan,
    .create = shmt_shm_create,
};
