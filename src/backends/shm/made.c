/* The store of a run, as one process sees it: made with its segment, or around one that another process has made. What stands
 * where says layout.h. Nothing in a segment is a pointer: its addresses here are found by the layout, in `locate` alone. */
#include <stdlib.h>

#include "backends/shm/shm.h"
#include "backends/shm/shm_priv.h"
#include "base/checked.h"
#include "ps/pull_cache.h"

/* In the link's own memory: copies of its own and what comes of each host (link/rounds.c), or what each host's copies come to
 * (link/merges.c). */
static uint64_t link_bytes(const struct shmt_spec *spec, const struct shmt_shm_layout *l) {
    const bool rests = spec->hosts.wire != SHMT_WIRE_F32 || (spec->hosts.top_k > 0 && spec->hosts.top_k < 1);
    if (shmt_spec_has_rounds_of_hosts(spec)) return (3 + rests + spec->hosts.n) * l->flat.n * sizeof(float);
    if (shmt_spec_rounds_sums(spec))
        return (1 + SHMT_MAX_STACK) * l->flat.n * sizeof(float); /* of each subtree, and of lists */
    return shmt_spec_merges_over_hosts(spec)
               ? spec->hosts.n * (UINT64_C(1) + l->planes) * l->flat.n * sizeof(struct shmt_merge_part) / SHMT_PART_FLOATS
               : 0;
}

int shmt_shm_plan(const struct shmt_spec *spec, struct shmt_need *out, struct shmt_error *e) {
    struct shmt_shm_layout layout;
    int rc = shmt_spec_check(spec, e);
    if (rc == 0) rc = shmt_shm_layout_plan(spec, &layout, e);
    if (rc != 0) return rc;
    /* Of what follows, all is in the layout, whose size has been checked. */
    if (!shmt_add_u64(layout.bytes, SHMT_SEGMENT_HEADER_BYTES, &out->total_bytes))
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "the store would be larger than any memory");
    const struct shmt_shm_layout *l = &layout;
    const uint64_t held = l->cover.n * sizeof(float), copies = held * l->n_replicas * (l->base ? UINT64_C(2) : 1);
    out->parameter_bytes =
        shmt_shm_part_bytes(&l->weight) + shmt_shm_part_bytes(&l->l2_share) + shmt_shm_part_bytes(&l->curvature) + copies;
    out->state_bytes = shmt_shm_part_bytes(&l->state) + shmt_shm_part_bytes(&l->counted) + copies * l->planes;
    out->gradient_bytes = shmt_shm_part_bytes(&l->grad) + shmt_shm_part_bytes(&l->map) + shmt_shm_part_bytes(&l->terms_id) +
                          shmt_shm_part_bytes(&l->terms_value);
    out->other_bytes = out->total_bytes - out->parameter_bytes - out->state_bytes - out->gradient_bytes;
    const uint64_t elsewhere = shmt_pull_caches_bytes(spec) + link_bytes(spec, l);
    if (!shmt_add_u64(out->other_bytes, elsewhere, &out->other_bytes) ||
        !shmt_add_u64(out->total_bytes, elsewhere, &out->total_bytes))
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "the workers' copies of the parameters would be larger than any memory");
    return 0;
}

/* Addresses of this process for the parts of the layout. */
static int locate(struct shmt_store *store, struct shmt_error *e) {
    const struct shmt_shm_layout *l = &store->layout;
    bool fits = true;
#define LOCATE(name, type, n, each, alignment)                                                  \
    store->name = shmt_segment_at(&store->segment, l->name.off, shmt_shm_part_bytes(&l->name)); \
    fits = fits && store->name;
    SHMT_SHM_PARTS(LOCATE)
#undef LOCATE
    return fits ? 0 : shmt_fail(e, SHMTRAIN_E_SYSTEM, "the segment is smaller than its layout");
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
    /* of all hosts, one counts what was done before */
    if (store->layout.n_slices && spec->hosts.self == 0) store_relaxed(&store->offer[0].items, spec->first_step);
    if (spec->coll.half_bytes) shmt_coll_begin(store->coll_words, spec->n_seats);
    for (uint32_t seat = 0; seat < store->spec.n_seats - store->spec.n_guests; seat++) {
        store_relaxed(&store->front[seat].alive, 1);
        store_relaxed(&store->front[seat].working, 1);
    }
    if (store->layout.links > 0) {
        store_relaxed(&store->front[spec->n_seats].alive, 1);
        for (int i = 0; i < 2; i++) shmt_shares_equal(spec->hosts.n, &store->shares[i]);
    }
    if (store->layout.links > 0 && shmt_shm_is_live(store)) store_relaxed(&store->front[spec->n_seats].working, 1);
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
