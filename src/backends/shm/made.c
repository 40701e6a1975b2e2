/* The store of a run, as one process sees it: made with its segment, or around one that another process has made. What stands
 * where says layout.h. Nothing in a segment is a pointer: its addresses here are found by the layout, in `locate` alone. */
#include <stdlib.h>

#include "backends/shm/shm.h"
#include "backends/shm/shm_priv.h"
#include "base/checked.h"

int shmt_shm_plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e) {
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
    out->gradient_bytes += (uint64_t)spec->n_chunks * layout.terms * (sizeof(uint32_t) + sizeof(float));
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
    const uint64_t lists = l->terms ? spec->n_chunks : 0;
    store->terms_head = at(store, l->terms_head_off, lists * sizeof *store->terms_head);
    store->cut = at(store, l->cut_off, (lists ? spec->n_seats : 0) * sizeof *store->cut);
    store->terms_id = at(store, l->terms_id_off, lists * l->terms * sizeof *store->terms_id);
    store->terms_value = at(store, l->terms_value_off, lists * l->terms * sizeof *store->terms_value);
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
    if (!store->terms_head || !store->cut || !store->terms_id || !store->terms_value || !store->control || !store->slot ||
        !store->offer || !store->slice || !store->ledger || !store->weight || !store->l2_share || !store->curvature ||
        !store->board || !store->head || !store->locks || !store->merge_locks || !store->replicas || !store->state ||
        !store->counted || !store->rings || !store->old || !store->row_place || !store->snapshot_clock ||
        !store->snapshot_loss || !store->snapshot_done || !store->snapshot)
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

void shmt_shm_destroy(struct shmt_store *store) {
    if (!store) return;
    if (store->segment.base) shmt_segment_detach(&store->segment);
    free(store);
}

/* A store of this process without its segment: the spec and where everything will stand. */
static int prepare(const struct shmt_spec *spec, struct shmt_store **out, struct shmt_error *e) {
    struct shmt_need need;
    int rc = shmt_shm_plan(spec, &need, e);
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

int shmt_shm_create(const struct shmt_spec *spec, const struct shmt_home *home, struct shmt_store **out, struct shmt_error *e) {
    static const struct shmt_home ANYWHERE = {0};
    struct shmt_store *store = NULL;
    int rc = prepare(spec, &store, e);
    if (rc < 0) return rc;
    rc = make_segment(store, home ? home : &ANYWHERE, e);
    if (rc == 0) rc = locate(store, e);
    if (rc < 0) {
        shmt_shm_destroy(store);
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
        shmt_shm_destroy(store);
        return rc;
    }
    *out = store;
    return 0;
}

int shmt_shm_check(int fd, int flags, struct shmt_error *e) {
    return shmt_segment_check(fd, shmt_shm_layout_fingerprint(), flags, e);
}

int shmt_shm_fd(const struct shmt_store *store) { return store->segment.fd; }
