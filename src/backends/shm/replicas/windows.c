/* Replicas that hold a part of the parameters: the hot ones, which all workers change all the time. Called by replicas.c.
 *
 * A table that no cache holds has its rows by frequency, so the hot ones are its first, and the bias is its last. Copies of all
 * others would serve nobody: an access to them is a miss anyway, and two workers seldom want the same one. So replicas hold
 * the first spec.hot_floats, and the page of the last row; all between has one copy, the master's, on which a push is an update
 * that everybody sees at once, as in plain Hogwild.
 *
 * Kernels know nothing of it. A seat has a window, an array in the shape of the master's, one plane behind the other, of which
 * each page is either its replica's or the master's own:
 *
 *     replica: hot | tail                (weights; then each state plane; then their bases)
 *     window:  hot | master: up to the tail's page | tail | master: what is behind it   (weights; then each state plane)
 *
 * What is merged or evaluated is reached by the segment's own addresses. A seat is one thread, and a merge comes between two
 * pieces of it, so it does not matter that a float has two addresses; others reach the same memory by theirs. */
#include "backends/shm/replicas/replicas_priv.h"

enum { PARTS = 4 }; /* of a plane */

/* The parts of a plane; `mine`, `master`: offsets of float 0 in the replica's plane and in the master's. Returns how many. */
static uint32_t parts_of_plane(const struct shmt_shm_layout *l, uint64_t mine, uint64_t master, struct shmt_window_part *out) {
    const struct shmt_cover *cover = &l->cover;
    const uint64_t each = sizeof(float), tail = cover->n - cover->hot, end = cover->tail + tail;
    uint32_t n = 0;
    out[n++] = (struct shmt_window_part){mine, cover->hot * each};
    out[n++] = (struct shmt_window_part){master + cover->hot * each, (cover->tail - cover->hot) * each};
    out[n++] = (struct shmt_window_part){mine + cover->hot * each, tail * each};
    if (end < l->flat.n) out[n++] = (struct shmt_window_part){master + end * each, (l->flat.n - end) * each};
    return n;
}

int shmt_shm_window_make(struct shmt_shm_seat *p) {
    const struct shmt_shm_layout *l = &p->store->layout;
    const uint64_t replica = l->replica.off + p->merging->mine * l->replica.each;
    struct shmt_window_part part[PARTS * (1 + SHMT_MAX_PLANES)];
    uint32_t n = 0;
    if (p->store->spec.hot_floats == 0) return 0;
    for (uint32_t word = 0; word <= l->planes; word++) {
        const uint64_t master = word == 0 ? l->weight.off : l->state.off + (word - 1) * l->state.each;
        n += parts_of_plane(l, replica + word * l->cover.n * sizeof(float), master, part + n);
    }
    return shmt_segment_open_window(&p->store->segment, part, n, &p->merging->window, &p->seat.error);
}
