/* The lists of a batch's terms (update/terms.h), and the slices of the parameters that follow from them, one for each seat: see
 * batches_priv.h. Called by batches.c and update.c.
 *
 * A line costs about as much to update as three terms cost to sum, and in the order of frequency half of all terms are those of
 * a few lines: slices of equal length would leave nearly all sums to the first seat. So the chief counts the terms of its own
 * chunks now and then. Where the cuts are changes no bit (update/terms.h). */
#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/checked.h"
#include "ps/norm.h"
#include "sync/host.h"
#include "update/path.h"

#define EVERY     64   /* batches */
#define MOST_BINS 4096 /* that terms are counted in; each a line, or of large tables some */
#define LINE      SHMT_TOUCH_FLOATS
#define CUT       SHMT_NORM_FLOATS /* slices are whole parts of the norm */

static bool are_kept(const struct shmt_store *store) { return store->layout.terms > 0; }

/* Of chunk `chunk`, as one who reads it sees it: memory of the store is believed as far as it goes. */
static uint32_t n_of(const struct shmt_store *store, uint32_t chunk) {
    const uint32_t n = store->terms_head[chunk].head.n;
    return n < store->layout.terms ? n : store->layout.terms;
}
static const uint32_t *ids_of(const struct shmt_store *store, uint32_t chunk) {
    return store->terms_id + (uint64_t)chunk * store->layout.terms;
}
static const float *values_of(const struct shmt_store *store, uint32_t chunk) {
    return store->terms_value + (uint64_t)chunk * store->layout.terms;
}

void shmt_shm_list_begin(const struct shmt_store *store, uint32_t chunk) {
    if (are_kept(store)) store->terms_head[chunk].head = (struct shmt_terms_head){0};
}

struct shmt_terms shmt_shm_list(const struct shmt_store *store, uint32_t chunk) {
    if (!are_kept(store)) return (struct shmt_terms){0};
    return (struct shmt_terms){.head = &store->terms_head[chunk].head,
                               .id = store->terms_id + (uint64_t)chunk * store->layout.terms,
                               .value = store->terms_value + (uint64_t)chunk * store->layout.terms,
                               .most = store->layout.terms};
}

void shmt_shm_touch_list(const struct shmt_store *store, uint32_t chunk, bool writes) {
    if (!are_kept(store) || !shmt_host_touches()) return;
    const uint64_t n = n_of(store, chunk);
    shmt_touch(&store->terms_head[chunk].head, sizeof(struct shmt_terms_head), writes);
    if (n == 0) return;
    shmt_touch(ids_of(store, chunk), n * sizeof(uint32_t), writes);
    shmt_touch(values_of(store, chunk), n * sizeof(float), writes);
}

bool shmt_shm_is_summed(const struct shmt_store *store, uint32_t chunk) {
    return !are_kept(store) || store->terms_head[chunk].head.summed;
}

void shmt_shm_sum_lists(const struct shmt_shm_seat *p, uint64_t from, uint64_t to) {
    const struct shmt_store *store = p->store;
    const uint32_t slot = store->layout.stack, rank = p->seat.rank;
    const struct shmt_path *path = shmt_path_of(store->spec.cpu);
    float *sum = shmt_shm_buffer(store, rank, slot);
    uint8_t *touched = shmt_shm_map(store, rank, slot);
    for (uint32_t chunk = 0; chunk < store->spec.n_chunks; chunk++) {
        shmt_shm_touch_list(store, chunk, false);
        path->terms_sum(ids_of(store, chunk), values_of(store, chunk), n_of(store, chunk), (uint32_t)from, (uint32_t)to, sum,
                        touched);
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* ---- slices ---- */

/* Counts a chunk's terms in bins of so many floats. */
static void count_terms(const struct shmt_store *store, uint32_t chunk, uint64_t floats, uint32_t *terms) {
    const uint32_t *id = ids_of(store, chunk), n = n_of(store, chunk);
    for (uint32_t k = 0; k < n; k++)
        if (id[k] < store->layout.flat.n) terms[id[k] / floats]++;
}

void shmt_shm_cut_slices(struct shmt_shm_seat *chief) {
    const struct shmt_store *store = chief->store;
    const uint64_t lines = shmt_ceil_div(store->layout.flat.n, LINE), each = shmt_ceil_div(lines, MOST_BINS);
    const uint64_t n = shmt_ceil_div(lines, each);
    const uint32_t n_present = chief->seat.n_present;
    uint32_t terms[MOST_BINS];
    if (!are_kept(store) || chief->seat.rank != 0 || chief->cut_step == chief->step) return;
    if (chief->cut_step != SHMT_NO_LIMIT && chief->step % EVERY != 0) return;
    memset(terms, 0, n * sizeof *terms);
    for (uint32_t chunk = chief->from; chunk < chief->to; chunk++) count_terms(store, chunk, each * LINE, terms);
    shmt_cut_evenly(terms, n, 3 * each, n_present, n_present, store->cut); /* in thirds of what a line costs */
    for (uint32_t i = 0; i < n_present; i++) store->cut[i] *= each * LINE;
    chief->cut_step = chief->step;
}

/* What stands in the store is believed as far as slices lie within the parameters, and do not overlap mine. */
void shmt_shm_my_slice(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out) {
    const struct shmt_store *store = p->store;
    const uint64_t n = store->layout.flat.n;
    const uint32_t i = p->seat.index;
    if (!are_kept(store)) {
        shmt_slice(n, i, p->seat.n_present, from_out, to_out);
        return;
    }
    *from_out = *to_out = n;
    if (shmt_shm_is_link(p)) return;
    *from_out = shmt_min_u64(n, store->cut[i] / CUT * CUT);
    *to_out = i + 1 == p->seat.n_present ? n : shmt_max_u64(*from_out, shmt_min_u64(n, store->cut[i + 1] / CUT * CUT));
}
