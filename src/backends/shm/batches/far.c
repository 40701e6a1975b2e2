/* The link's seat (ps/far.h): it comes last to the meeting "all gradients are in", with the sums of other hosts' subtrees, which stand
 * in a part of the segment that it alone writes. From then on it is a seat whose slice of the update is empty.
 *
 * The workers' gradients are read while all workers wait in that meeting, or of a table for which all of them have said that theirs is
 * complete (ready.c). Those of other hosts are written as they come: the workers read them behind that meeting, up to the one that all
 * have added them up in, "all slices are applied" (equal copies: "summed"). Behind that one what was put is cleared. */
#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/point.h"
#include "update/kernels.h"

_Static_assert(SHMT_FAR_BLOCK == SHMT_SHM_BLOCK, "an exchanged block is one of an update");

static float *far_of(const struct shmt_store *store, uint32_t node) {
    return (float *)(void *)((unsigned char *)store->far + node * store->layout.far.each);
}

static uint8_t *far_map(const struct shmt_store *store, uint32_t node) {
    return store->layout.touched ? store->far_map + node * store->layout.far_map.each : NULL;
}

const float *shmt_shm_far_sum(const struct shmt_store *store, uint32_t node, uint64_t at, uint64_t n) {
    const uint8_t *map = far_map(store, node);
    return shmt_shm_is_touched(map, at, n) ? far_of(store, node) + at : NULL;
}

/* In meetings, and where it waits for who is at a slice (rounds). */
static void pulse(struct shmt_seat *seat, uint64_t pulse_ns, void (*call)(void *arg), void *arg) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    struct shmt_gates *const waits[] = {&p->meeting, &p->clocks};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        waits[i]->pulse = call;
        waits[i]->pulse_arg = arg;
        waits[i]->pulse_ns = pulse_ns;
    }
}

static int claim(struct shmt_seat *seat, struct shmt_far_batch *out) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    int rc = shmt_shm_begin_work(p);
    if (rc == 1) rc = shmt_shm_has_batch(p);
    if (rc != 1) return rc;
    *out = (struct shmt_far_batch){.epoch = p->epoch, .step = p->step, .number = shmt_shm_global_step(p)};
    return 1;
}

static int ready(struct shmt_seat *seat, uint64_t below, struct shmt_far_ready *out) {
    return shmt_shm_wait_for_ready(shmt_shm_seat_of(seat), below, out);
}

static bool holds(struct shmt_seat *seat, uint64_t stamp) { return shmt_shm_holds(shmt_shm_seat_of(seat), stamp); }

static int gather(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const int rc = shmt_shm_wait_for_workers(p);                      /* in the meeting at the end of stage _WORK */
    return rc < 0 ? rc : load_relaxed(&p->store->control->stop) != 0; /* relaxed: it carries nothing but itself */
}

static bool sum(struct shmt_seat *seat, struct shmt_subtree of, uint64_t block, float *out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const uint64_t at = block * SHMT_SHM_BLOCK, n = shmt_min_u64(SHMT_SHM_BLOCK, p->store->layout.flat.n - at);
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    const float *found = shmt_shm_sum_of(p, of.level, of.first >> of.level, at, n, scratch);
    if (found) memcpy(out, found, n * sizeof *out);
    return found != NULL;
}

static void put(struct shmt_seat *seat, uint32_t node, uint64_t block, const float *values) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const uint64_t at = block * SHMT_SHM_BLOCK, n = shmt_min_u64(SHMT_SHM_BLOCK, p->store->layout.flat.n - at);
    uint8_t *map = far_map(p->store, node);
    memcpy(far_of(p->store, node) + at, values, n * sizeof *values);
    if (map) memset(map + at / SHMT_TOUCH_FLOATS, 1, shmt_ceil_div(n, SHMT_TOUCH_FLOATS));
}

static bool terms(struct shmt_seat *seat, uint32_t chunk, struct shmt_far_terms *out) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    if (store->layout.terms == 0) return false;
    const struct shmt_terms list = shmt_shm_list(store, chunk);
    *out = (struct shmt_far_terms){
        .n = list.head->n, .summed = list.head->summed, .id = list.id, .value = list.value}; /* their owners have met me */
    return true;
}

static bool put_terms(struct shmt_seat *seat, uint32_t chunk, const struct shmt_far_terms *of) {
    const struct shmt_store *store = shmt_shm_seat_of(seat)->store;
    const struct shmt_terms list = shmt_shm_list(store, chunk);
    if (of->n > list.most) return false; /* also where no lists are kept */
    if (of->n > 0 && of->id != list.id) memcpy(list.id, of->id, of->n * sizeof *list.id);
    if (of->n > 0) memcpy(list.value, of->value, of->n * sizeof *list.value);
    if (list.head) *list.head = (struct shmt_terms_head){.n = of->n, .summed = of->summed};
    return list.head != NULL;
}

static struct shmt_shm_piece *piece_of(const struct shmt_shm_seat *p, uint32_t chunk) {
    return &p->store->ledger[p->step * p->store->spec.n_chunks + chunk];
}

static void piece(struct shmt_seat *seat, uint32_t chunk, struct shmt_far_piece *out) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_shm_piece *of = piece_of(p, chunk);
    const uint64_t examples = shmt_ledger_examples(of, p->epoch);
    *out = (struct shmt_far_piece){.examples = examples, .loss = examples > 0 ? of->loss : 0};
}

static void put_piece(struct shmt_seat *seat, uint32_t chunk, const struct shmt_far_piece *of) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    if (of->examples == 0) return; /* as workers leave chunks without examples */
    piece_of(p, chunk)->loss = of->loss;
    shmt_ledger_done(piece_of(p, chunk), p->epoch, of->examples);
}

/* Also the lists of other hosts' chunks: those of this one begin anew with each chunk. */
static void clear(const struct shmt_store *store) {
    const struct shmt_spec *spec = &store->spec;
    uint32_t from, to;
    shmt_chunk_share(spec->n_chunks, spec->hosts.self, spec->hosts.n, &from, &to);
    for (uint32_t chunk = 0; chunk < spec->n_chunks; chunk++)
        if (chunk < from || chunk >= to) shmt_shm_list_begin(store, chunk);
    for (uint32_t node = 0; node < store->layout.far_nodes; node++)
        shmt_clear(far_of(store, node), far_map(store, node), store->layout.flat.n);
}

static int publish(struct shmt_seat *seat, bool stop) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    /* relaxed: published by the meeting, to which all others have come */
    if (stop) store_relaxed(&p->store->control->end_step, shmt_shm_global_step(p) + 1);
    SHMT_POINT("far:put");
    const int rc = shmt_shm_finish_batch(p);
    if (rc == 0) clear(p->store);
    return rc;
}

static struct shmt_far_traffic *traffic(struct shmt_store *store) { return store->layout.links > 0 ? store->traffic : NULL; }

static struct shmt_ring *ring(struct shmt_store *store) {
    return store->layout.links > 0 && store->spec.trace_events > 0 ? shmt_shm_ring(store, store->spec.n_seats) : NULL;
}

/* clang-format off */
const struct shmt_far_ops SHMT_SHM_FAR = {
    .live = &SHMT_SHM_FAR_LIVE, .merges = &SHMT_SHM_FAR_MERGES, .passing = &SHMT_SHM_FAR_PASSING,
    .quorums = &SHMT_SHM_FAR_QUORUMS, .pulse = pulse, .traffic = traffic, .ring = ring,
    .claim = claim, .ready = ready, .holds = holds, .gather = gather, .sum = sum, .put = put,
    .terms = terms, .put_terms = put_terms, .piece = piece, .put_piece = put_piece,
    .publish = publish};
/* clang-format on */
