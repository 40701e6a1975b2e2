/* The plain backend and its copying variant: see plain.h.
 *
 * One seat, so nothing is shared and nothing waits. In `aggregate` it keeps one gradient buffer per chunk and adds them by a
 * plain recursion over the complete tree: more memory than others need, but nothing to get wrong. One list of terms serves all
 * chunks, because each is summed when its chunk is done, and they come in order. Written apart from the shm backend on purpose:
 * what both compute in different ways is compared bit by bit. */
#include "backends/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "consistency/chunks.h"
#include "math/tree.h"
#include "ps/flat.h"
#include "store/counted.h"
#include "store/kernels.h"

struct plain_seat {
    struct shmt_seat seat;
    struct shmt_store *store;
    uint32_t epoch;
    uint64_t next;  /* the next piece of this epoch */
    uint64_t piece; /* the one in hand */
    struct shmtrain_work work;
    float *copy[SHMT_MAX_TABLES]; /* `copy`: what views show for this piece; NULL when not bound */
    float *scratch;               /* live: lent gradients */
    struct shmt_trace trace;
};

struct shmt_store {
    struct shmt_spec spec;
    struct shmt_flat flat;
    bool copies;
    float *weight; /* (flat.n) */
    float *grad;   /* aggregate: (n_chunks, flat.n) */
    struct shmt_terms_head terms;
    uint32_t *terms_id;        /* (shmt_flat_terms) */
    float *terms_value;        /* likewise */
    float *listed;             /* (flat.n) the sum of this batch's lists so far; NULL: there are none */
    float *l2_share;           /* (flat.n), or NULL */
    float *curvature;          /* (flat.n), or NULL: nobody merges here, but it may be filled as anywhere */
    float *state;              /* (planes, flat.n), or NULL */
    _Atomic uint64_t *counted; /* (flat.n), or NULL */
    uint32_t *row_place;       /* (rows of table 0), or NULL */
    void *head;
    void *board;
    double *loss;      /* (pieces) of this epoch */
    uint64_t *handled; /* (pieces) examples */
    struct shmt_counters counters;
    struct shmt_ring *ring; /* of events; NULL: none is kept */
    _Atomic uint32_t stop, abort;
    struct plain_seat *taken;
};

static struct plain_seat *mine(struct shmt_seat *seat) { return (struct plain_seat *)(void *)seat; }
static bool is_live(const struct shmt_store *store) { return shmt_policy_is_live(&store->spec.policy); }

static uint64_t row_place_bytes(const struct shmt_spec *spec) {
    return spec->row_places ? spec->table[0].rows * sizeof(uint32_t) : 0;
}

static int plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e) {
    const int rc = shmt_spec_check(spec, e);
    if (rc < 0) return rc;
    if (spec->n_seats != 1)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the plain backend has one worker with one thread: use -w 1 -t 1, or --backend shm");
    if (spec->pauses.allowed || spec->first_epoch > 0 || spec->first_step > 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the plain backend cannot pause or resume: use --backend shm");
    if (shmt_policy_has_rounds(&spec->policy) || shmt_policy_has_replicas(&spec->policy))
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the plain backend keeps one copy of the parameters and never waits: use --backend shm");
    struct shmt_flat flat;
    shmt_flat_plan(spec, &flat);
    const uint64_t table_bytes = flat.n * sizeof(float);
    out->parameter_bytes = table_bytes * (1 + (uint64_t)spec->l2_shares + spec->curvatures);
    out->state_bytes = table_bytes * (shmt_flat_planes(spec) + UINT64_C(2) * spec->count_lost);
    const uint64_t terms = shmt_flat_terms(spec);
    out->gradient_bytes =
        shmt_policy_is_live(&spec->policy) ? table_bytes : table_bytes * (spec->n_chunks + UINT64_C(1) * (terms > 0));
    out->gradient_bytes += terms * (sizeof(uint32_t) + sizeof(float));
    out->other_bytes = shmt_spec_pieces(spec) * 16 + spec->board_bytes + spec->head_bytes + shmt_ring_bytes(spec->trace_events);
    out->other_bytes += row_place_bytes(spec);
    out->total_bytes = out->parameter_bytes + out->state_bytes + out->gradient_bytes + out->other_bytes;
    return 0;
}

static void *zeros(uint64_t bytes) {
    void *p = aligned_alloc(4096, (bytes + 4096) & ~UINT64_C(4095));
    if (p) memset(p, 0, bytes);
    return p;
}

static void destroy(struct shmt_store *store) {
    if (!store) return;
    free(store->weight);
    free(store->grad);
    free(store->terms_id);
    free(store->terms_value);
    free(store->listed);
    free(store->l2_share);
    free(store->curvature);
    free(store->state);
    free(store->counted);
    free(store->row_place);
    free(store->head);
    free(store->board);
    free(store->loss);
    free(store->handled);
    free(store->ring);
    free(store);
}

static int create(const struct shmt_spec *spec, bool copies, struct shmt_store **out, struct shmt_error *e) {
    struct shmt_need need;
    const int rc = plan(spec, &need, e);
    if (rc < 0) return rc;
    struct shmt_store *store = zeros(sizeof *store);
    if (!store) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a store");
    store->spec = *spec;
    store->copies = copies;
    shmt_flat_plan(spec, &store->flat);
    const uint64_t floats = store->flat.n, pieces = shmt_spec_pieces(spec);
    store->weight = zeros(floats * sizeof(float));
    store->grad = zeros(floats * sizeof(float) * (is_live(store) ? 1 : spec->n_chunks));
    store->terms_id = zeros(shmt_flat_terms(spec) * sizeof *store->terms_id);
    store->terms_value = zeros(shmt_flat_terms(spec) * sizeof *store->terms_value);
    if (shmt_flat_terms(spec) > 0) store->listed = zeros(floats * sizeof(float));
    store->l2_share = zeros(spec->l2_shares ? floats * sizeof(float) : 1);
    store->curvature = zeros(spec->curvatures ? floats * sizeof(float) : 1);
    const uint32_t planes = shmt_flat_planes(spec);
    if (planes > 0) store->state = zeros(planes * floats * sizeof(float));
    if (spec->count_lost) store->counted = zeros(floats * sizeof *store->counted);
    if (spec->row_places) store->row_place = zeros(row_place_bytes(spec));
    store->head = zeros(spec->head_bytes);
    store->board = zeros(spec->board_bytes);
    store->loss = zeros(pieces * sizeof(double));
    store->handled = zeros(pieces * sizeof(uint64_t));
    if (spec->trace_events > 0) store->ring = zeros(shmt_ring_bytes(spec->trace_events));
    if (!store->weight || !store->grad || !store->l2_share || !store->curvature || !store->head || !store->board ||
        !store->loss || !store->handled || (planes > 0 && !store->state) || (spec->count_lost && !store->counted) ||
        (spec->trace_events > 0 && !store->ring) || (spec->row_places && !store->row_place) || !store->terms_id ||
        !store->terms_value || (shmt_flat_terms(spec) > 0 && !store->listed)) {
        destroy(store);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a store of %llu bytes",
                         (unsigned long long)need.total_bytes);
    }
    *out = store;
    return 0;
}

static int create_plain(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out,
                        struct shmt_error *e) {
    (void)home;
    return create(spec, false, out, e);
}
static int create_copy(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out,
                       struct shmt_error *e) {
    (void)home;
    return create(spec, true, out, e);
}

static int enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    if (rank != 0 || store->taken) return shmt_fail(e, SHMTRAIN_E_USAGE, "the plain backend has one seat");
    struct plain_seat *p = zeros(sizeof *p);
    if (!p) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a seat");
    p->seat.life = life;
    p->seat.n_present = 1;
    p->seat.counters = &store->counters;
    p->store = store;
    p->scratch = is_live(store) ? store->grad : NULL;
    if (store->ring) {
        shmt_trace_begin(&p->trace, store->ring, store->spec.trace_events);
        p->seat.trace = &p->trace;
    }
    store->taken = p;
    *out = &p->seat;
    return 0;
}

static void drop_copies(struct plain_seat *p) {
    for (uint32_t t = 0; t < SHMT_MAX_TABLES; t++) {
        free(p->copy[t]);
        p->copy[t] = NULL;
    }
}

static void leave(struct shmt_seat *seat) {
    struct plain_seat *p = mine(seat);
    p->store->taken = NULL;
    drop_copies(p);
    free(p);
}

/* The next piece that has examples; a short last batch leaves chunks empty. The run ends between batches only. */
static int claim(struct shmt_seat *seat, struct shmtrain_work *out) {
    struct plain_seat *p = mine(seat);
    const struct shmt_spec *spec = &p->store->spec;
    const uint32_t per_step = is_live(p->store) ? 1 : spec->n_chunks;
    for (; p->next < shmt_spec_pieces(spec); p->next++) {
        const uint64_t step = p->next / per_step;
        const uint32_t chunk = (uint32_t)(p->next % per_step);
        uint64_t from = 0, to = shmt_spec_examples_of_step(spec, step);
        if (!shmt_spec_has_step(spec, p->epoch, step) || (chunk == 0 && load_relaxed(&p->store->stop))) return 0;
        if (!is_live(p->store)) shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, to, &from, &to);
        if (from == to) continue;
        p->piece = p->next++;
        p->work = (struct shmtrain_work){.first = step * shmt_spec_step_examples(spec) + from,
                                         .n = to - from,
                                         .step = p->epoch * shmt_spec_steps(spec) + step,
                                         .chunk = chunk,
                                         .epoch = p->epoch,
                                         .life = seat->life};
        *out = p->work;
        return 1;
    }
    return 0;
}

static float *grad_of(struct shmt_store *store, uint32_t chunk) { return store->grad + chunk * store->flat.n; }

/* `copy`: fresh memory for each piece, so that a stale pointer into an old one shows. */
static int bind_copy(struct plain_seat *p, int t, const float *weight, uint64_t floats) {
    if (p->copy[t]) return 0;
    p->copy[t] = zeros(floats * sizeof(float));
    if (!p->copy[t]) return shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY, "not enough memory for a copy of table %d", t);
    memcpy(p->copy[t], weight, floats * sizeof(float));
    return 0;
}

static struct shmt_terms terms_of(struct shmt_store *store, uint64_t first) {
    const uint32_t most = shmt_flat_terms(&store->spec);
    if (most == 0) return (struct shmt_terms){0};
    return (struct shmt_terms){
        .head = &store->terms, .id = store->terms_id, .value = store->terms_value, .most = most, .first = (uint32_t)first};
}

static int bind(struct shmt_seat *seat, int t, struct shmt_span *out, int *live_out) {
    struct plain_seat *p = mine(seat);
    struct shmt_store *store = p->store;
    const struct shmt_table_spec *table = &store->spec.table[t];
    const uint64_t at = store->flat.start[t];
    float *weight = store->weight + at;
    if (store->copies) {
        const int rc = bind_copy(p, t, weight, shmt_table_floats(table));
        if (rc < 0) return rc;
        weight = p->copy[t];
    }
    *out = (struct shmt_span){.weight = weight,
                              .sink = is_live(store) ? weight : grad_of(store, p->work.chunk) + at,
                              .terms = terms_of(store, at),
                              .l2_share = store->spec.l2_shares ? store->l2_share + at : NULL,
                              .state = is_live(store) && store->state ? store->state + at : NULL,
                              .plane = store->flat.n,
                              .counted = store->counted ? store->counted + at : NULL,
                              .rows = table->rows,
                              .width = table->width};
    *live_out = is_live(store);
    return 0;
}

static int lend(struct shmt_seat *seat, int t, float **out) {
    struct plain_seat *p = mine(seat);
    float *buffer = is_live(p->store) ? p->scratch : grad_of(p->store, p->work.chunk);
    *out = buffer + p->store->flat.start[t];
    return 0;
}

static void report(struct shmt_seat *seat, double loss) { mine(seat)->store->loss[mine(seat)->piece] = loss; }

/* `copy`: my own pushes reach the parameters, and the views that showed them are poisoned. */
static void deliver_copies(struct plain_seat *p) {
    struct shmt_store *store = p->store;
    for (uint32_t t = 0; t < store->spec.n_tables; t++) {
        if (!p->copy[t]) continue;
        const uint64_t floats = shmt_table_floats(&store->spec.table[t]);
        if (is_live(store)) memcpy(store->weight + store->flat.start[t], p->copy[t], floats * sizeof(float));
        for (uint64_t i = 0; i < floats; i++) p->copy[t][i] = NAN;
    }
    drop_copies(p);
}

/* The sum over 2^level chunks from `first`, left in the buffer of `first`. */
static void add_tree(struct shmt_store *store, uint32_t first, uint32_t level) {
    if (level == 0) return;
    const uint32_t half = 1u << (level - 1);
    add_tree(store, first, level - 1);
    add_tree(store, first + half, level - 1);
    shmt_fold(grad_of(store, first), NULL, grad_of(store, first + half), NULL, store->flat.n);
}

/* The terms of a chunk that is done. */
static void add_listed(struct shmt_store *store) {
    for (uint32_t k = 0; k < store->terms.n; k++) store->listed[store->terms_id[k]] += store->terms_value[k];
    store->terms.n = 0;
}

static void apply(struct plain_seat *p, uint64_t examples) {
    struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    uint32_t level = 0;
    while ((1u << level) < spec->n_chunks) level++;
    shmt_trace_to(p->seat.trace, SHMT_EVENT_AGGREGATE);
    add_tree(store, 0, level);
    if (store->listed) shmt_fold(store->grad, NULL, store->listed, NULL, store->flat.n);
    shmt_trace_to(p->seat.trace, SHMT_EVENT_UPDATE);
    const uint64_t step = p->work.step - p->epoch * shmt_spec_steps(spec);
    struct shmt_update u;
    shmt_spec_update(spec, p->epoch, step, &u);
    u.scale = 1.0f / (float)examples;
    shmt_flat_apply(spec, &store->flat, store->weight, store->state, store->grad, 0, store->flat.n, &u);
    shmt_clear(store->grad, NULL, store->flat.n);
    shmt_trace_to(p->seat.trace, SHMT_EVENT_NONE);
    bump_relaxed(&store->counters.updates, 1);
}

static int publish(struct shmt_seat *seat, struct shmtrain_fate *out) {
    struct plain_seat *p = mine(seat);
    const struct shmt_spec *spec = &p->store->spec;
    deliver_copies(p);
    p->store->handled[p->piece] = p->work.n;
    add_listed(p->store);
    if (!is_live(p->store)) {
        const uint64_t step = p->piece / spec->n_chunks, n = shmt_spec_examples_of_step(spec, step);
        const bool last = p->work.first + p->work.n == step * spec->batch + n;
        if (last) apply(p, n);
    }
    *out = (struct shmtrain_fate){.clock = p->work.step + 1, .applied = (uint32_t)p->work.n};
    return 0;
}

static int meet(struct shmt_seat *seat) {
    deliver_copies(mine(seat)); /* what was looked at outside of items */
    return 0;
}

static int tally(struct shmt_seat *seat, struct shmt_tally *out) {
    const struct shmt_store *store = mine(seat)->store;
    const uint64_t pieces = shmt_spec_pieces(&store->spec);
    *out = (struct shmt_tally){.loss = shmt_tree_sum(store->loss, pieces)};
    for (uint64_t i = 0; i < pieces; i++) {
        out->examples += store->handled[i];
        out->pieces += store->handled[i] != 0;
    }
    return 0;
}

static int turn(struct shmt_seat *seat) {
    struct plain_seat *p = mine(seat);
    const struct shmt_spec *spec = &p->store->spec;
    deliver_copies(p);
    memset(p->store->loss, 0, shmt_spec_pieces(spec) * sizeof(double));
    memset(p->store->handled, 0, shmt_spec_pieces(spec) * sizeof(uint64_t));
    p->epoch++;
    p->next = 0;
    return p->epoch < spec->epochs && shmt_spec_has_step(spec, p->epoch, 0) && !load_relaxed(&p->store->stop);
}

static int read_rows(struct shmt_store *store, int t, uint64_t row, uint64_t n, float *out) {
    const uint64_t width = store->spec.table[t].width;
    memcpy(out, store->weight + store->flat.start[t] + row * width, n * width * sizeof(float));
    return 0;
}

static int write_rows(struct shmt_store *store, int t, uint64_t row, uint64_t n, const float *in) {
    const uint64_t width = store->spec.table[t].width;
    memcpy(store->weight + store->flat.start[t] + row * width, in, n * width * sizeof(float));
    shmt_flat_begin(&store->spec, &store->flat, store->weight, store->state, t, row, n);
    return 0;
}

static float *weight(struct shmt_store *store, int t) { return store->weight + store->flat.start[t]; }

static float *state(struct shmt_store *store, int t, uint32_t plane) {
    return plane < shmt_flat_planes(&store->spec) ? store->state + plane * store->flat.n + store->flat.start[t] : NULL;
}

static int lost(struct shmt_store *store, bool ended, uint64_t *counted_out) {
    if (store->counted && ended) shmt_counted_settle(store->counted, store->weight, store->flat.n);
    *counted_out = store->counted ? shmt_counted_sum(store->counted, store->flat.n) : 0;
    return store->counted != NULL;
}

static void *head(struct shmt_store *store) { return store->head; }

static float *l2_share(struct shmt_store *store, int t) {
    return store->spec.l2_shares ? store->l2_share + store->flat.start[t] : NULL;
}

static uint32_t *row_place(struct shmt_store *store) { return store->row_place; }

static float *curvature(struct shmt_store *store) { return store->spec.curvatures ? store->curvature : NULL; }

static void *board(struct shmt_store *store) { return store->board; }
static const struct shmt_counters *counters(struct shmt_store *store, uint32_t rank) {
    return rank == 0 ? &store->counters : NULL;
}
static const struct shmt_ring *ring(struct shmt_store *store, uint32_t rank) { return rank == 0 ? store->ring : NULL; }
static void stop(struct shmt_store *store) { store_relaxed(&store->stop, 1); } /* one thread, or a signal handler in it */
static _Atomic uint32_t *stop_word(struct shmt_store *store) { return &store->stop; }
static _Atomic uint32_t *abort_word(struct shmt_store *store) { return &store->abort; }
static void rouse(struct shmt_store *store) { (void)store; /* nobody ever waits */ }

#define PLAIN_ENTRIES                                                                                                         \
    .plan = plan, .destroy = destroy, .enter = enter, .leave = leave, .claim = claim, .bind = bind, .lend = lend,             \
    .report = report, .publish = publish, .meet = meet, .tally = tally, .turn = turn, .read = read_rows, .write = write_rows, \
    .weight = weight, .l2_share = l2_share, .curvature = curvature, .row_place = row_place, .state = state, .lost = lost,     \
    .head = head, .board = board, .counters = counters, .ring = ring, .stop = stop, .stop_word = stop_word,                   \
    .abort_word = abort_word, .rouse = rouse

const struct shmt_backend_ops SHMT_BACKEND_PLAIN = {
    .name = "plain", .about = "one worker, ordinary memory: the reference", .create = create_plain, PLAIN_ENTRIES};

const struct shmt_backend_ops SHMT_BACKEND_COPY = {.name = "copy",
                                                   .about = "plain, with copied views that are poisoned at each clock",
                                                   .caps = SHMT_CAP_STEADY,
                                                   .create = create_copy,
                                                   PLAIN_ENTRIES};
