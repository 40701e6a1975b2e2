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

#include "base/checked.h"
#include "consistency/chunks.h"
#include "math/tree.h"
#include "ps/flat.h"
#include "ps/norm.h"
#include "ps/pull_cache.h"
#include "update/counted.h"
#include "update/kernels.h"

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

/* All memory of a store: PART(name, type, which need it counts into, bytes; 0: it is NULL). */
#define PARTS(PART)                                                                                                        \
    PART(weight, float, parameter, array)                                                                                  \
    PART(l2_share, float, parameter, array * spec->l2_shares)                                                              \
    PART(curvature, float, parameter, array * spec->curvatures) /* nobody merges here, but it may be filled as anywhere */ \
    PART(state, float, state, shmt_flat_planes(spec) * array)                                                              \
    PART(counted, _Atomic uint64_t, state, spec->count_lost * flat->n * sizeof(uint64_t))                                  \
    PART(grad, float, gradient, (shmt_policy_is_live(&spec->policy) ? 1 : spec->n_chunks) * array)                         \
    PART(terms_id, uint32_t, gradient, terms * sizeof(uint32_t))                                                           \
    PART(terms_value, float, gradient, terms * sizeof(float))                                                              \
    PART(norm, double, other, shmt_norm_parts(spec, flat) * sizeof(double))                                                \
    PART(listed, float, gradient, terms > 0 ? array : 0)      /* the sum of this batch's lists so far */                   \
    PART(loss, double, other, pieces * sizeof(double))        /* of this epoch */                                          \
    PART(handled, uint64_t, other, pieces * sizeof(uint64_t)) /* examples */                                               \
    PART(row_place, uint32_t, other, spec->row_places ? spec->table[0].rows * sizeof(uint32_t) : 0)                        \
    PART(ring, struct shmt_ring, other, shmt_ring_bytes(spec->trace_events))                                               \
    PART(head, unsigned char, other, spec->head_bytes)                                                                     \
    PART(board, unsigned char, other, spec->board_bytes)

struct shmt_store {
    struct shmt_spec spec;
    struct shmt_flat flat;
    bool copies;
    struct shmt_terms_head terms;
    struct shmt_counters counters;
    _Atomic uint32_t stop, abort;
    struct plain_seat *taken;
#define POINTER(name, type, kind, bytes) type *name;
    PARTS(POINTER)
};

struct sizes {
#define SIZE(name, type, kind, bytes) uint64_t name;
    PARTS(SIZE)
};

static void measure(const struct shmt_spec *spec, const struct shmt_flat *flat, struct sizes *out) {
    const uint64_t array = flat->n * sizeof(float), pieces = shmt_spec_pieces(spec), terms = shmt_flat_terms(spec);
#define MEASURE(name, type, kind, bytes) out->name = bytes;
    PARTS(MEASURE)
}

static struct plain_seat *mine(struct shmt_seat *seat) { return (struct plain_seat *)(void *)seat; }
static bool is_live(const struct shmt_store *store) { return shmt_policy_is_live(&store->spec.policy); }

static int plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e) {
    const int rc = shmt_spec_check(spec, e);
    if (rc < 0) return rc;
    if (spec->n_seats != 1)
        return shmt_refuse(e, "the plain backend has one worker with one thread: use -w 1 -t 1, or --backend shm");
    if (shmt_spec_is_linked(spec)) return shmt_refuse(e, "the plain backend is of one host: use --backend shm");
    if (spec->pauses.allowed || spec->first_epoch > 0 || spec->first_step > 0)
        return shmt_refuse(e, "the plain backend cannot pause or resume: use --backend shm");
    if (shmt_policy_has_rounds(&spec->policy) || shmt_policy_merges_replicas(&spec->policy))
        return shmt_refuse(e, "the plain backend keeps one copy of the parameters and never waits: use --backend shm");
    struct shmt_flat flat;
    struct sizes sizes;
    shmt_flat_plan(spec, &flat);
    measure(spec, &flat, &sizes);
    *out = (struct shmt_need){0};
#define COUNT(name, type, kind, bytes) out->kind##_bytes += sizes.name;
    PARTS(COUNT)
    out->total_bytes = out->parameter_bytes + out->state_bytes + out->gradient_bytes + out->other_bytes;
    const uint64_t copy_to_read = shmt_pull_caches_bytes(spec); /* the session's */
    if (!shmt_add_u64(out->other_bytes, copy_to_read, &out->other_bytes) ||
        !shmt_add_u64(out->total_bytes, copy_to_read, &out->total_bytes))
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "the worker's copy of the parameters would be larger than any memory");
    return 0;
}

static void *zeros(uint64_t bytes) {
    void *p = aligned_alloc(4096, (bytes + 4096) & ~UINT64_C(4095));
    if (p) memset(p, 0, bytes);
    return p;
}

static void destroy(struct shmt_store *store) {
    if (!store) return;
#define FREE(name, type, kind, bytes) free((void *)store->name);
    PARTS(FREE)
    free(store);
}

static int create(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e) {
    (void)home;
    struct shmt_need need;
    struct sizes sizes;
    bool failed = false;
    const int rc = plan(spec, &need, e);
    if (rc < 0) return rc;
    struct shmt_store *store = zeros(sizeof *store);
    if (!store) return shmt_no_memory(e, "for a store");
    store->spec = *spec;
    shmt_flat_plan(spec, &store->flat);
    measure(spec, &store->flat, &sizes);
#define TAKE(name, type, kind, bytes)                        \
    store->name = sizes.name > 0 ? zeros(sizes.name) : NULL; \
    failed |= sizes.name > 0 && !store->name;
    PARTS(TAKE)
    if (failed) {
        destroy(store);
        return shmt_no_memory(e, "for a store of %llu bytes", (unsigned long long)need.total_bytes);
    }
    *out = store;
    return 0;
}

static int create_copy(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out,
                       struct shmt_error *e) {
    const int rc = create(spec, home, out, e);
    if (rc == 0) (*out)->copies = true;
    return rc;
}

static int enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    if (rank != 0 || store->taken) return shmt_refuse(e, "the plain backend has one seat");
    struct plain_seat *p = zeros(sizeof *p);
    if (!p) return shmt_no_memory(e, "for a seat");
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
    if (!p->copy[t]) return shmt_no_memory(&p->seat.error, "for a copy of table %d", t);
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
                              .l2_share = store->l2_share ? store->l2_share + at : NULL,
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

/* Nobody else has a clock, or updates anything. */
static uint64_t clock_of(const struct shmt_seat *seat) { return ((const struct plain_seat *)(const void *)seat)->work.step; }
static void look(const struct shmt_seat *seat, struct shmt_look *out) { *out = (struct shmt_look){.slowest = clock_of(seat)}; }

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
    struct shmt_norms norms;
    struct shmt_update u;
    shmt_spec_update(spec, p->epoch, step, &u);
    u.scale = 1.0f / (float)examples;
    if (store->norm) {
        shmt_norm_measure(spec, &store->flat, store->weight, store->state, store->grad, 0, store->flat.n, &u, store->norm);
        shmt_norm_take(spec, &store->flat, store->norm, &norms, &u);
    }
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

static struct shmt_array array(struct shmt_store *store, enum shmt_array_name name, int t, uint32_t plane) {
    void *const base[SHMT_ARRAYS] = {
        [SHMT_ARRAY_HEAD] = store->head,           [SHMT_ARRAY_BOARD] = store->board,
        [SHMT_ARRAY_WEIGHT] = store->weight,       [SHMT_ARRAY_STATE] = store->state,
        [SHMT_ARRAY_L2_SHARE] = store->l2_share,   [SHMT_ARRAY_CURVATURE] = store->curvature,
        [SHMT_ARRAY_ROW_PLACE] = store->row_place,
    };
    return shmt_array_of(&store->spec, &store->flat, base, name, t, plane);
}

static int lost(struct shmt_store *store, bool ended, uint64_t *counted_out) {
    if (store->counted && ended) shmt_counted_settle(store->counted, store->weight, store->flat.n);
    *counted_out = store->counted ? shmt_counted_sum(store->counted, store->flat.n) : 0;
    return store->counted != NULL;
}

static const struct shmt_counters *counters(struct shmt_store *store, uint32_t rank) {
    return rank == 0 ? &store->counters : NULL;
}
/* One seat alone decides nothing. */
static struct shmt_tape *tape(struct shmt_store *store, uint32_t rank) {
    (void)store;
    (void)rank;
    return NULL;
}

static const struct shmt_ring *ring(struct shmt_store *store, uint32_t rank) { return rank == 0 ? store->ring : NULL; }
static _Atomic uint32_t *stop_word(struct shmt_store *store) { return &store->stop; }
static _Atomic uint32_t *abort_word(struct shmt_store *store) { return &store->abort; }
static void wake(struct shmt_store *store) { (void)store; /* nobody ever waits */ }

static const struct shmt_seat_ops SEAT = {.enter = enter,
                                          .leave = leave,
                                          .claim = claim,
                                          .bind = bind,
                                          .lend = lend,
                                          .clock = clock_of,
                                          .look = look,
                                          .report = report,
                                          .publish = publish,
                                          .meet = meet,
                                          .tally = tally,
                                          .turn = turn};

static const struct shmt_store_ops STORE = {.destroy = destroy,
                                            .read = read_rows,
                                            .write = write_rows,
                                            .array = array,
                                            .lost = lost,
                                            .counters = counters,
                                            .ring = ring,
                                            .tape = tape,
                                            .stop_word = stop_word,
                                            .abort_word = abort_word,
                                            .wake = wake};

const struct shmt_backend SHMT_BACKEND_PLAIN = {.name = "plain",
                                                .about = "one worker, ordinary memory: the reference",
                                                .seat = &SEAT,
                                                .store = &STORE,
                                                .plan = plan,
                                                .create = create};

const struct shmt_backend SHMT_BACKEND_COPY = {.name = "copy",
                                               .about = "plain, with copied views that are poisoned at each clock",
                                               .caps = SHMT_CAP_STEADY,
                                               .seat = &SEAT,
                                               .store = &STORE,
                                               .plan = plan,
                                               .create = create_copy};
