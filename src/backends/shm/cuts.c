/* Where the parameters are cut into slices, one for each seat, in batches whose gradients are lists: called by batches.c and
 * apply.c.
 *
 * A line costs about as much to update as three terms cost to sum, and in the order of frequency half of all terms are those of
 * a few lines: slices of equal length would leave nearly all sums to the first seat. So the chief counts the terms of its own
 * chunks now and then. Where the cuts are changes no bit (store/terms.h).
 *
 * The chief writes them before the meeting "all gradients are in", and all read them between that one and the next. */
#include <stdlib.h>
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/checked.h"

#define EVERY     64   /* batches */
#define MOST_BINS 4096 /* that terms are counted in; each a line, or of large tables some */
#define LINE      SHMT_TOUCH_FLOATS

struct bins {
    uint64_t n, floats; /* of them, and of each */
    uint32_t *terms;    /* (n) */
};

static struct bins bins_of(const struct shmt_shm_seat *p) {
    const uint64_t lines = shmt_ceil_div(p->store->layout.flat.n, LINE), each = shmt_ceil_div(lines, MOST_BINS);
    return (struct bins){.n = shmt_ceil_div(lines, each), .floats = each * LINE, .terms = p->bins};
}

int shmt_shm_cuts_enter(struct shmt_shm_seat *p) {
    if (p->store->layout.terms == 0 || p->seat.rank != 0) return 0;
    p->bins = malloc(MOST_BINS * sizeof *p->bins);
    return p->bins ? 0 : shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY, "not enough memory to count terms");
}

void shmt_shm_cuts_leave(struct shmt_shm_seat *p) { free(p->bins); }

/* What the floats of a bin cost, in thirds of a line. */
static uint64_t cost_of(const struct bins *bins, uint64_t i, uint32_t n_present) {
    return 3 * bins->floats / LINE + bins->terms[i] * (uint64_t)n_present;
}

/* As much for each as can be, in whole bins. */
static void cut(const struct bins *bins, uint32_t n_present, uint64_t *cut_out) {
    uint64_t all = 0, before = 0;
    uint32_t next = 0;
    for (uint64_t i = 0; i < bins->n; i++) all += cost_of(bins, i, n_present);
    for (uint64_t i = 0; i < bins->n; i++) {
        for (; next < n_present && before >= all * next / n_present; next++) cut_out[next] = i * bins->floats;
        before += cost_of(bins, i, n_present);
    }
    for (; next < n_present; next++) cut_out[next] = bins->n * bins->floats;
}

void shmt_shm_cuts_make(struct shmt_shm_seat *chief) {
    const struct bins bins = bins_of(chief);
    if (!chief->bins || chief->cut_step == chief->step) return;
    if (chief->cut_step != SHMT_NO_LIMIT && chief->step % EVERY != 0) return;
    memset(bins.terms, 0, bins.n * sizeof *bins.terms);
    for (uint32_t chunk = chief->from; chunk < chief->to; chunk++)
        shmt_shm_count_listed(chief->store, chunk, bins.floats, bins.terms);
    cut(&bins, chief->seat.n_present, chief->store->cut);
    chief->cut_step = chief->step;
}

/* What stands in the store is believed as far as slices lie within the parameters, and do not overlap mine. */
void shmt_shm_my_slice(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out) {
    const struct shmt_store *store = p->store;
    const uint64_t n = store->layout.flat.n;
    const uint32_t i = p->seat.index;
    if (store->layout.terms == 0) {
        shmt_slice(n, i, p->seat.n_present, from_out, to_out);
        return;
    }
    *from_out = shmt_min_u64(n, store->cut[i] / LINE * LINE);
    *to_out = i + 1 == p->seat.n_present ? n : shmt_max_u64(*from_out, shmt_min_u64(n, store->cut[i + 1] / LINE * LINE));
}
