/* Reductions in which each member reduces a slice, so that nobody reads all of everybody's.
 *
 * Private buffers, piece by piece: all copy their piece into staging memory (tick 2 i), each reduces its slice of all copies into its own
 * copy (tick 2 i + 1), and the slices are read from there. Lent buffers, at once: each reduces its slice of all buffers where they lie, and
 * writes the result into all of them; nothing is copied. Both fold in the order of the members.
 *
 * Cost for m members and n bytes: private: two waits for each piece, n copied in, n read and folded (a slice of each), n copied out. Lent:
 * two waits, n read, n written. */
#include <string.h>

#include "base/checked.h"
#include "coll/member.h"

#define LENT_BLOCK 4096 /* bytes of a slice that are written to all while they are in the first cache */

void shmt_coll_slices_plan(const struct shmt_coll *c, struct shmt_coll_op *op) {
    op->piece = op->lent ? op->n : shmt_min_u64(op->n, c->place.room.half_bytes / op->each);
    op->pieces = op->n == 0 ? 1 : shmt_ceil_div(op->n, op->piece);
}

/* Element at which slice i of n elements begins: on a line of the cache, where there are enough. */
static uint64_t slice_begin(const struct shmt_coll_op *op, uint64_t n, uint32_t i) {
    const uint64_t line = SHMT_LINE / op->each, lines = shmt_ceil_div(n, line);
    return shmt_min_u64(n, lines * i / op->group->n * line);
}

/* ---- lent ---- */

static int reduce_lent(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint32_t m = op->group->n;
    const uint64_t from = slice_begin(op, op->n, op->group->me), to = slice_begin(op, op->n, op->group->me + 1);
    const unsigned char *in[SHMTRAIN_COLLECTIVE_WORKERS];
    unsigned char *out[SHMTRAIN_COLLECTIVE_WORKERS];
    const void *x[SHMTRAIN_COLLECTIVE_WORKERS];
    for (uint32_t j = 0; j < m; j++) {
        if (shmt_coll_check(c, op, j) < 0) return c->error->status;
        const struct shmt_coll_note note = *shmt_coll_note_of(op, j);
        in[j] = shmt_coll_lent_of(c, op, j, note.is.lent.in_at, op->n * op->each);
        out[j] = shmt_coll_lent_of(c, op, j, note.is.lent.out_at, op->n * op->each);
        if (!in[j] || !out[j]) return c->error->status;
    }
    unsigned char *const mine = out[op->group->me];
    for (uint64_t at = from, n; at < to; at += n) {
        n = shmt_min_u64(LENT_BLOCK / op->each, to - at);
        for (uint32_t j = 0; j < m; j++) x[j] = in[j] + at * op->each;
        shmt_coll_fold_all(&op->fold, mine + at * op->each, x, m, n);
        for (uint32_t j = 0; j < m; j++)
            if (out[j] != mine) memcpy(out[j] + at * op->each, mine + at * op->each, n * op->each);
    }
    return 0;
}

static int lent(struct shmt_coll *c, struct shmt_coll_op *op) {
    if (op->laid == 0) shmt_coll_lay(op, 1);
    if (op->read == 0) {
        if (!shmt_coll_all_reached(c, op->group, SHMT_GATE_CLOCK, op->base + 1)) return 0;
        shmt_coll_call(op);
        if (reduce_lent(c, op) < 0) return c->error->status;
        shmt_coll_note_reduced(op);
    }
    return shmt_coll_all_reached(c, op->group, SHMT_GATE_PHASE, op->base + 1);
}

/* ---- private ---- */

/* Pieces take halves by turns that all members count alike. */
static uint64_t turn_of(const struct shmt_coll_op *op) { return op->read / 2; }

static uint64_t elements(const struct shmt_coll_op *op) {
    return op->n == 0 ? 0 : shmt_min_u64(op->piece, op->n - op->read / 2 * op->piece);
}

static bool stage(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t turn = turn_of(op);
    if (!shmt_coll_half_is_free(c, turn)) return false;
    shmt_coll_call(op);
    if (op->n > 0)
        memcpy(shmt_coll_half_of(c, c->place.self, turn), op->in + op->read / 2 * op->piece * op->each,
               elements(op) * op->each);
    shmt_coll_half_take(c, op->group, turn, SHMT_COLL_ALL, op->base + op->read + 2, op->base + 2 * op->pieces);
    shmt_coll_lay(op, op->laid + 1);
    return true;
}

static int reduce_slice(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t n = elements(op), from = slice_begin(op, n, op->group->me), to = slice_begin(op, n, op->group->me + 1);
    const void *x[SHMTRAIN_COLLECTIVE_WORKERS];
    for (uint32_t j = 0; j < op->group->n; j++) {
        if (shmt_coll_check(c, op, j) < 0) return c->error->status;
        x[j] = shmt_coll_half_of(c, op->group->rank[j], turn_of(op)) + from * op->each;
    }
    if (to > from)
        shmt_coll_fold_all(&op->fold, shmt_coll_half_of(c, c->place.self, turn_of(op)) + from * op->each, x, op->group->n,
                           to - from);
    shmt_coll_lay(op, op->laid + 1);
    return 0;
}

static void read_slices(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t n = elements(op), first = op->read / 2 * op->piece;
    for (uint32_t j = 0; j < op->group->n; j++) {
        const uint64_t from = slice_begin(op, n, j), to = slice_begin(op, n, j + 1);
        if (to == from) continue;
        memcpy(op->out + (first + from) * op->each, shmt_coll_half_of(c, op->group->rank[j], turn_of(op)) + from * op->each,
               (to - from) * op->each);
    }
}

int shmt_coll_slices(struct shmt_coll *c, struct shmt_coll_op *op) {
    const bool wants = op->kind == SHMTRAIN_ALL_REDUCE || op->group->me == op->root;
    if (op->lent) return lent(c, op);
    while (op->read < 2 * op->pieces) {
        if (op->laid == op->read && !stage(c, op)) return 0;
        if (op->laid == op->read + 1) {
            if (!shmt_coll_all_reached(c, op->group, SHMT_GATE_CLOCK, op->base + op->laid)) return 0;
            shmt_coll_call(op);
            if (reduce_slice(c, op) < 0) return c->error->status;
        }
        if (wants && !shmt_coll_all_reached(c, op->group, SHMT_GATE_CLOCK, op->base + op->laid)) return 0;
        shmt_coll_call(op);
        if (wants) read_slices(c, op);
        shmt_coll_note_read(op, op->read + 2);
    }
    return 1;
}
