/* The shm backend: store and seats. What the families of policies do is in their engines' files, what stands
 * where in layout.h.
 *
 * The store is made before workers are forked; they inherit the mapping. Nothing in the segment is a pointer, so a process that
 * maps it elsewhere finds its way by the same layout. */
#include "backends/shm/shm.h"

#include <stdlib.h>
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/point.h"
#include "math/tree.h"
#include "ps/replicas.h"
#include "store/counted.h"
#include "store/kernels.h"
#include "store/live.h"

/* ---- the store ---- */

static int plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e) {
    struct shmt_shm_layout layout;
    int rc = shmt_spec_check(spec, e);
    if (rc == 0) rc = shmt_shm_layout_plan(spec, &layout, e);
    if (rc != 0) return rc;
    /* Of what follows, all is in the layout, whose size has been checked. */
    if (!shmt_add_u64(layout.bytes, SHMT_SEGMENT_HEADER_BYTES, &out->total_bytes))
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "the store would be larger than any memory");
    const uint64_t array = layout.flat.n * sizeof(float), held = layout.cover.n * sizeof(float);
    const uint64_t copies = held * layout.n_replicas * (layout.base ? UINT64_C(2) : 1);
    out->parameter_bytes = array * (UINT64_C(1) + spec->l2_shares) + copies + held * spec->curvatures;
    out->state_bytes = array * (layout.planes + UINT64_C(2) * spec->count_lost) + copies * layout.planes;
    out->gradient_bytes = spec->n_seats * (layout.seat_grad_bytes + layout.seat_map_bytes);
    out->other_bytes = out->total_bytes - out->parameter_bytes - out->state_bytes - out->gradient_bytes;
    return 0;
}

static void *at(struct shmt_store *store, uint64_t off, uint64_t bytes) { return shmt_segment_at(&store->segment, off, bytes); }

/* Addresses of this process for the offsets of the layout. */
static int locate(struct shmt_store *store, struct shmt_error *e) {
    const struct shmt_shm_layout *l = &store->layout;
    const struct shmt_spec *spec = &store->spec;
    const uint64_t table_bytes = l->flat.n * sizeof(float);
    store->control = at(store, l->control_off, sizeof *store->control);
    store->front = at(store, l->fronts_off, spec->n_seats * sizeof *store->front);
    store->slot = at(store, l->slots_off, spec->n_seats * sizeof *store->slot);
    store->offer = at(store, l->offers_off, (l->n_slices ? spec->n_seats : 0) * sizeof *store->offer);
    store->slice = at(store, l->slices_off, l->n_slices * sizeof *store->slice);
    store->ledger = at(store, l->ledger_off, shmt_spec_pieces(spec) * sizeof *store->ledger);
    store->head = at(store, l->head_off, spec->head_bytes);
    store->locks = at(store, l->locks_off, ((uint64_t)l->lock_mask + 1) % (UINT32_MAX + UINT64_C(1)) * sizeof *store->locks);
    store->merge_locks = at(store, l->merge_locks_off, ((uint64_t)l->merge_mask + 1) % (UINT32_MAX + UINT64_C(1)) * SHMT_LINE);
    store->weight = at(store, l->weight_off, table_bytes);
    store->state = at(store, l->state_off, l->planes * table_bytes);
    store->counted = at(store, l->counted_off, spec->count_lost ? l->flat.n * sizeof *store->counted : 0);
    store->l2_share = at(store, l->l2_share_off, spec->l2_shares ? table_bytes : 0);
    store->row_place = at(store, l->row_place_off, spec->row_places ? spec->table[0].rows * sizeof *store->row_place : 0);
    store->curvature = at(store, l->curvature_off, spec->curvatures ? l->cover.n * sizeof(float) : 0);
    store->replicas = at(store, l->replica_off, l->n_replicas * l->replica_bytes);
    store->board = at(store, l->board_off, spec->board_bytes);
    const uint64_t kept = spec->pauses.allowed ? shmt_spec_pieces(spec) : 0;
    store->snapshot_clock =
        at(store, l->snapshot_clock_off, (spec->pauses.allowed ? spec->n_seats : 0) * sizeof *store->snapshot_clock);
    store->snapshot_loss = at(store, l->snapshot_loss_off, kept * sizeof *store->snapshot_loss);
    store->snapshot_done = at(store, l->snapshot_done_off, kept * sizeof *store->snapshot_done);
    store->snapshot = at(store, l->snapshot_off, spec->pauses.allowed ? (UINT64_C(1) + l->planes) * table_bytes : 0);
    store->rings = at(store, l->trace_off, spec->n_seats * l->seat_trace_bytes);
    store->old = at(store, l->undo_off, spec->n_seats * l->seat_undo_bytes);
    if (!store->control || !store->slot || !store->offer || !store->slice || !store->ledger || !store->weight ||
        !store->l2_share || !store->curvature || !store->board || !store->head || !store->locks || !store->merge_locks ||
        !store->replicas || !store->state || !store->counted || !store->rings || !store->old || !store->row_place ||
        !store->snapshot_clock || !store->snapshot_loss || !store->snapshot_done || !store->snapshot)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "the segment is smaller than its layout");
    return 0;
}

static void begin_words(struct shmt_store *store) {
    /* relaxed: no worker exists yet; the fork, or the start of a thread, publishes them */
    struct shmt_shm_control *control = store->control;
    const struct shmt_spec *spec = &store->spec;
    const uint64_t every = spec->pauses.steps, first = spec->first_epoch * shmt_spec_steps(spec) + spec->first_step;
    store_relaxed(&control->end_step, SHMT_NO_LIMIT);
    store_relaxed(&control->epoch, spec->first_epoch);
    store_relaxed(&control->step, spec->first_step);
    store_relaxed(&control->pause_step, SHMT_NO_LIMIT);
    store_relaxed(&control->due, every ? (first / every + 1) * every : SHMT_NO_LIMIT);
    if (store->layout.n_slices) store_relaxed(&store->offer[0].items, spec->first_step);
    for (uint32_t seat = 0; seat < store->spec.n_seats - store->spec.n_guests; seat++) {
        store_relaxed(&store->front[seat].alive, 1);
        store_relaxed(&store->front[seat].working, 1);
    }
}

static void destroy(struct shmt_store *store) {
    if (!store) return;
    if (store->segment.base) shmt_segment_detach(&store->segment);
    free(store);
}

/* A store of this process without its segment: the spec and where everything will stand. */
static int prepare(const struct shmt_spec *spec, struct shmt_store **out, struct shmt_error *e) {
    struct shmt_need need;
    int rc = plan(spec, &need, e);
    if (rc < 0) return rc;
    struct shmt_store *store = calloc(1, sizeof *store);
    if (!store) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a store");
    store->spec = *spec;
    rc = shmt_shm_layout_plan(spec, &store->layout, e);
    if (rc < 0) {
        free(store);
        return rc;
    }
    *out = store;
    return 0;
}

static int make_segment(struct shmt_store *store, const struct shmt_home *home, struct shmt_error *e) {
    struct shmt_memory_range *range;
    struct shmt_segment_wish wish = {.name = home->name ? home->name : "store",
                                     .fd = home->has_fd ? home->fd : -1,
                                     .bytes = store->layout.bytes,
                                     .fingerprint = shmt_shm_layout_fingerprint(),
                                     .page_bytes = store->spec.placement.transparent ? 0 : store->layout.page_bytes,
                                     .transparent = store->spec.placement.transparent,
                                     .topo = home->topo,
                                     .log = home->log};
    int rc = shmt_shm_ranges_make(&store->spec, &store->layout, &range, &wish.n_ranges, e);
    if (rc < 0) return rc;
    wish.range = range;
    rc = shmt_segment_create(&wish, &store->segment, e);
    if (rc == 0 && home->page_bytes_out) *home->page_bytes_out = store->segment.page_bytes;
    free(range);
    return rc;
}

static int create(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e) {
    static const struct shmt_home ANYWHERE = {0};
    struct shmt_store *store = NULL;
    int rc = prepare(spec, &store, e);
    if (rc < 0) return rc;
    rc = make_segment(store, home ? home : &ANYWHERE, e);
    if (rc == 0) rc = locate(store, e);
    if (rc < 0) {
        destroy(store);
        return rc;
    }
    begin_words(store);
    *out = store;
    return 0;
}

int shmt_shm_attach(const struct shmt_spec *spec, int fd, int flags, struct shmt_store **out, struct shmt_error *e) {
    struct shmt_store *store = NULL;
    int rc = prepare(spec, &store, e);
    if (rc < 0) return rc;
    rc = shmt_segment_attach(fd, shmt_shm_layout_fingerprint(), flags, &store->segment, e);
    if (rc == 0) rc = locate(store, e);
    if (rc < 0) {
        destroy(store);
        return rc;
    }
    *out = store;
    return 0;
}

int shmt_shm_check(int fd, int flags, struct shmt_error *e) {
    return shmt_segment_check(fd, shmt_shm_layout_fingerprint(), flags, e);
}

int shmt_shm_fd(const struct shmt_store *store) { return store->segment.fd; }

/* ---- seats ---- */

/* From so many on, one word in which they tell one another that all have met saves more than its line costs. */
#define MANY_SEATS 32

static struct shmt_gates gates_of(struct shmt_store *store, uint32_t rank, const _Atomic uint32_t *member) {
    return (struct shmt_gates){
        .met = store->spec.n_seats >= MANY_SEATS ? &store->control->met : NULL,
        .gate = &store->front[0].gate,
        .stride_bytes = sizeof *store->front,
        .n = store->spec.n_seats,
        .self = rank,
        .watch = {.abort = &store->control->abort, .member = member, .member_stride = sizeof *store->front / sizeof(uint32_t)}};
}

/* What this worker will use goes into its page table now, not fault by fault in its first epoch. */
static void populate(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_layout *l = &store->layout;
    shmt_segment_populate(&store->segment, l->control_off, sizeof *store->control, 1);
    shmt_segment_populate(&store->segment, l->fronts_off + p->seat.rank * sizeof *p->front, sizeof *p->front, 1);
    shmt_segment_populate(&store->segment, l->slots_off + p->seat.rank * sizeof *p->slot, sizeof *p->slot, 1);
    shmt_segment_populate(&store->segment, l->slices_off, l->weight_off + l->flat.n * sizeof(float) - l->slices_off, 1);
    shmt_segment_populate(&store->segment, l->grad_off + p->seat.rank * l->seat_grad_bytes, l->seat_grad_bytes, 1);
    shmt_segment_populate(&store->segment, l->replica_off + shmt_replicas_of(&store->spec, p->seat.rank) * l->replica_bytes,
                          l->n_replicas ? l->replica_bytes : 0, 1);
    shmt_segment_populate(&store->segment, l->touched_off + p->seat.rank * l->seat_map_bytes, l->seat_map_bytes, 1);
    shmt_segment_populate(&store->segment, l->trace_off + p->seat.rank * l->seat_trace_bytes, l->seat_trace_bytes, 1);
}

static struct shmt_ring *ring_of(const struct shmt_store *store, uint32_t rank) {
    return (struct shmt_ring *)(void *)(store->rings + rank * store->layout.seat_trace_bytes);
}

static void begin_trace(struct shmt_shm_seat *p) {
    const uint32_t room = p->store->spec.trace_events;
    if (room == 0) return;
    shmt_trace_begin(&p->trace, ring_of(p->store, p->seat.rank), room);
    p->seat.trace = &p->trace;
}

static void leave(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    /* Who leaves before the end keeps counting: without its gradients the others must not go on, and the abort word ends them.
     * relaxed: nobody reads anything of mine on the strength of it. */
    SHMT_POINT("leave:before");
    if (p->over && !p->guest) store_relaxed(&p->front->alive, 0);
    SHMT_POINT("leave:after");
    if (p->engine->leave) p->engine->leave(p);                      /* while the seat is mine */
    if (p->over && p->guest && !p->not_mine) shmt_shm_give_back(p); /* else it may be somebody else's already */
    free(p->scratch);
    free(p);
}

static const struct shmt_shm_engine *engine_of(const struct shmt_policy *policy) {
    if (shmt_policy_has_replicas(policy)) return &SHMT_SHM_REPLICAS;
    if (shmt_policy_is_live(policy)) return &SHMT_SHM_LIVE;
    return shmt_policy_is_batched(policy) ? &SHMT_SHM_BATCHES : &SHMT_SHM_ROUNDS;
}

static int enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    if (rank >= store->spec.n_seats) return shmt_fail(e, SHMTRAIN_E_USAGE, "seat %u does not exist", rank);
    struct shmt_shm_seat *p = calloc(1, sizeof *p);
    if (!p) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a seat");
    p->store = store;
    p->front = &store->front[rank];
    p->slot = &store->slot[rank];
    p->seat.rank = rank;
    p->seat.life = life;
    p->epoch = store->spec.first_epoch;
    p->seat.counters = &p->slot->counters;
    p->engine = engine_of(&store->spec.policy);
    p->guest = rank >= store->spec.n_seats - store->spec.n_guests;
    p->undo = shmt_shm_undo(store, rank, 0);
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
    const int rc = p->engine->claim(p);
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
                              .l2_share = store->spec.l2_shares ? store->l2_share + start : NULL,
                              .state = m.state ? m.state + start : NULL,
                              .plane = store->layout.flat.n,
                              .counted = store->spec.count_lost ? store->counted + start : NULL,
                              .locks = shmt_shm_locks(p, shmt_replicas_of(&store->spec, p->seat.rank), (uint32_t)t),
                              .undo = shmt_shm_undo(store, p->seat.rank, start),
                              .rows = table->rows,
                              .width = table->width};
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
        *out = m.sink + start;
        return 0;
    }
    if (!p->scratch) p->scratch = calloc(flat->n, sizeof *p->scratch);
    if (!p->scratch)
        return shmt_fail(&seat->error, SHMTRAIN_E_MEMORY, "not enough memory for a gradient of %llu floats",
                         (unsigned long long)flat->n);
    *out = p->scratch + start;
    return 0;
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

/* ---- the end of an epoch ---- */

static enum shmt_task stage(struct shmt_seat *seat, enum shmt_run_stage which) {
    return shmt_shm_stage(shmt_shm_seat_of(seat), which);
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
    if (!chief->pausing) store_relaxed(&control->over, !more || load_relaxed(&control->stop));
    SHMT_POINT("lead-on:over");
    store_relaxed(&control->pause_step, SHMT_NO_LIMIT);
    SHMT_POINT("lead-on:pause-step");
    if (load_relaxed(&control->over)) return;
    if (!chief->pausing) store_relaxed(&control->step, 0);
    shmt_shm_admit_all(chief);
}

static int turn(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const bool is_met = shmt_shm_stage(p, SHMT_STAGE_TURN) == SHMT_TASK_MEET; /* an earlier life has done what follows */
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

static float *weight(struct shmt_store *store, int t) { return rows_at(store, t, 0); }

static float *state(struct shmt_store *store, int t, uint32_t plane) {
    const struct shmt_shm_layout *l = &store->layout;
    return plane < l->planes ? store->state + plane * l->flat.n + l->flat.start[t] : NULL;
}

static int lost(struct shmt_store *store, bool ended, uint64_t *counted_out) {
    const bool counts = store->spec.count_lost;
    const uint64_t n = store->layout.flat.n;
    if (counts && ended) shmt_counted_settle(store->counted, store->weight, n);
    *counted_out = counts ? shmt_counted_sum(store->counted, n) : 0;
    return counts;
}

static void *head(struct shmt_store *store) { return store->head; }

static float *l2_share(struct shmt_store *store, int t) {
    return store->spec.l2_shares ? store->l2_share + store->layout.flat.start[t] : NULL;
}

static uint32_t *row_place(struct shmt_store *store) { return store->spec.row_places ? store->row_place : NULL; }

static float *curvature(struct shmt_store *store) { return store->spec.curvatures ? store->curvature : NULL; }

static void *board(struct shmt_store *store) { return store->board; }

static const struct shmt_counters *counters(struct shmt_store *store, uint32_t rank) {
    return rank < store->spec.n_seats ? &store->slot[rank].counters : NULL;
}

static int in_hand(struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *step_out) {
    if (shmt_shm_is_at(store, rank, epoch, step_out)) return 1;
    if (shmt_policy_is_batched(&store->spec.policy)) return 0;
    return shmt_ledger_in_hand(store->ledger, shmt_spec_pieces(&store->spec), epoch, rank, step_out);
}

static const struct shmt_ring *ring(struct shmt_store *store, uint32_t rank) {
    return store->spec.trace_events > 0 && rank < store->spec.n_seats ? ring_of(store, rank) : NULL;
}

static void stop(struct shmt_store *store) {
    store_relaxed(&store->control->stop, 1); /* a flag that carries nothing but itself */
}
static _Atomic uint32_t *stop_word(struct shmt_store *store) { return &store->control->stop; }
static _Atomic uint32_t *abort_word(struct shmt_store *store) { return &store->control->abort; }

static void rouse(struct shmt_store *store) {
    const struct shmt_gates gates = gates_of(store, 0, &store->front[0].alive);
    shmt_gates_mourn(&gates); /* who calls has set the abort word, or has counted a dead guest out */
}

const struct shmt_backend_ops SHMT_BACKEND_SHM = {
    .name = "shm",
    .about = "worker processes (or threads) over one shared memory segment",
    .caps = SHMT_CAP_MANY | SHMT_CAP_PROCESSES | SHMT_CAP_JOIN | SHMT_CAP_PAUSE,
    .plan = plan,
    .create = create,
    .destroy = destroy,
    .enter = enter,
    .leave = leave,
    .bury = shmt_shm_bury,
    .stage = stage,
    .claim = claim,
    .bind = bind,
    .lend = lend,
    .report = report,
    .publish = publish,
    .meet = meet,
    .tally = tally,
    .turn = turn,
    .pause = shmt_shm_pause,
    .copy = shmt_shm_copy,
    .ask = shmt_shm_ask,
    .snapshot = shmt_shm_snapshot,
    .release = shmt_shm_release,
    .stand = shmt_shm_stand,
    .resume = shmt_shm_resume,
    .read = read_rows,
    .write = write_rows,
    .reserve = shmt_shm_reserve,
    .unreserve = shmt_shm_unreserve,
    .admit = shmt_shm_admit,
    .part = shmt_shm_part,
    .occupied = shmt_shm_occupied,
    .occupant = shmt_shm_occupant,
    .mourn = shmt_shm_mourn,
    .weight = weight,
    .l2_share = l2_share,
    .curvature = curvature,
    .row_place = row_place,
    .state = state,
    .lost = lost,
    .head = head,
    .board = board,
    .counters = counters,
    .in_hand = in_hand,
    .ring = ring,
    .stop = stop,
    .stop_word = stop_word,
    .abort_word = abort_word,
    .rouse = rouse,
};
