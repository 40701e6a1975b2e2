/* Collectives that use shared memory as it is: members lay out what they have, and each reads what it wants.
 *
 * Laid out is a buffer that is lent, where it lies, all at once; or piece by piece a copy in staging memory, whose two halves take turns,
 * so that the next piece is laid out while one is read; or a few bytes beside the words. A tick of the operation is one piece.
 * Reductions are folded in the order of the members by each that wants the result.
 *
 * Cost for m members and n bytes of a block: one wait for each piece; a member copies its own bytes once (lent: not at all) and reads
 * those that it wants. */
#include <string.h>

#include "base/checked.h"
#include "coll/member.h"

/* Who lays out, who reads, and what: `blocks`, one for each member, of which the reader takes its own; else one for all. */
static const struct rule {
    bool all_lay, all_read, blocks, folds;
} RULES[] = {
    [SHMTRAIN_BARRIER] = {true, true, false, false},    [SHMTRAIN_BROADCAST] = {false, true, false, false},
    [SHMTRAIN_SCATTER] = {false, true, true, false},    [SHMTRAIN_GATHER] = {true, false, false, false},
    [SHMTRAIN_ALL_GATHER] = {true, true, false, false}, [SHMTRAIN_REDUCE] = {true, false, false, true},
    [SHMTRAIN_ALL_REDUCE] = {true, true, false, true},  [SHMTRAIN_REDUCE_SCATTER] = {true, true, true, true},
    [SHMTRAIN_ALL_TO_ALL] = {true, true, true, false},
};

static bool lays(const struct shmt_coll_op *op) { return RULES[op->kind].all_lay || op->group->me == op->root; }
static bool reads(const struct shmt_coll_op *op) { return RULES[op->kind].all_read || op->group->me == op->root; }
static uint32_t blocks_of(const struct shmt_coll_op *op) {
    return RULES[op->kind].blocks && op->group->n > 1 ? op->group->n : 1;
}

bool shmt_coll_pull_is_inline(const struct shmt_coll_op *op) { return op->n <= SHMT_COLL_INLINE / op->each / blocks_of(op); }

void shmt_coll_pull_plan(const struct shmt_coll *c, struct shmt_coll_op *op) {
    op->piece = op->n;
    if (!shmt_coll_pull_is_inline(op)) op->piece = shmt_min_u64(op->n, c->place.room.half_bytes / op->each / blocks_of(op));
    op->pieces = op->n == 0 ? 1 : shmt_ceil_div(op->n, op->piece);
}

static uint64_t piece_of(const struct shmt_coll_op *op, uint64_t i) { return shmt_min_u64(op->piece, op->n - i * op->piece); }

/* ---- laying out ---- */

/* My piece i into staging memory, its blocks one behind the other. */
static bool stage(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t i = op->laid, tick = op->base + i;
    if (!shmt_coll_half_is_free(c, tick)) return false;
    unsigned char *half = shmt_coll_half_of(c, c->place.self, tick);
    shmt_coll_call(op);
    const uint32_t blocks = blocks_of(op);
    for (uint32_t b = 0; b < blocks; b++)
        memcpy(half + b * op->piece * op->each, op->in + (b * op->n + i * op->piece) * op->each, piece_of(op, i) * op->each);
    shmt_coll_half_take(c, op->group, tick, RULES[op->kind].all_read ? SHMT_COLL_ALL : op->root, tick + 1,
                        op->base + op->pieces);
    return true;
}

/* False: c->wait says for whom. */
static bool lay_next(struct shmt_coll *c, struct shmt_coll_op *op) {
    const struct shmt_coll_note *mine = shmt_coll_note_of(op, op->group->me);
    if (!lays(op) || shmt_coll_pull_is_inline(op) || mine->is.lent.in_at > 0) {
        shmt_coll_lay(op, op->pieces);
        return true;
    }
    if (!stage(c, op)) return false;
    shmt_coll_lay(op, op->laid + 1);
    return true;
}

/* ---- reading ---- */

/* The block that I want of member j, from element `at` of it on, n elements; NULL: a failure, with its sentence. */
static const void *source(struct shmt_coll *c, const struct shmt_coll_op *op, uint32_t j, uint64_t at, uint64_t n) {
    const uint64_t block = RULES[op->kind].blocks ? op->group->me : 0;
    if (j == op->group->me) return op->in + (block * op->n + at) * op->each;
    const struct shmt_coll_note *note = shmt_coll_note_of(op, j);
    if (shmt_coll_check(c, op, j) < 0) return NULL;
    if (shmt_coll_pull_is_inline(op)) return note->is.data + (block * op->n + at) * op->each;
    if (note->is.lent.in_at == 0)
        return shmt_coll_half_of(c, op->group->rank[j], op->base + op->read) + block * op->piece * op->each;
    const unsigned char *lent = shmt_coll_lent_of(c, op, j, note->is.lent.in_at, ((block * op->n + at) + n) * op->each);
    return lent ? lent + (block * op->n + at) * op->each : NULL;
}

static int read_from(struct shmt_coll *c, struct shmt_coll_op *op, uint32_t j, uint64_t at, uint64_t n, unsigned char *to) {
    const void *from = source(c, op, j, at, n);
    if (!from) return c->error->status;
    if (n > 0 && to && to != from) memcpy(to, from, n * op->each);
    return 0;
}

static int fold_from_all(struct shmt_coll *c, struct shmt_coll_op *op, uint64_t at, uint64_t n) {
    const void *x[SHMTRAIN_COLLECTIVE_WORKERS];
    for (uint32_t j = 0; j < op->group->n; j++)
        if (!(x[j] = source(c, op, j, at, n)) && (n > 0 || c->error->status)) return c->error->status;
    if (n > 0) shmt_coll_fold_all(&op->fold, op->out + at * op->each, x, op->group->n, n);
    return 0;
}

static int read_piece(struct shmt_coll *c, struct shmt_coll_op *op) {
    const struct rule *rule = &RULES[op->kind];
    const uint64_t at = op->read * op->piece, n = op->n == 0 ? 0 : piece_of(op, op->read);
    if (rule->folds) return fold_from_all(c, op, at, n);
    if (!rule->all_lay) return read_from(c, op, op->root, at, n, op->out ? op->out + at * op->each : NULL);
    for (uint32_t j = 0; j < op->group->n; j++) {
        unsigned char *to = op->out ? op->out + (j * op->n + at) * op->each : NULL;
        if (op->kind == SHMTRAIN_BARRIER) to = NULL;
        if ((j != op->group->me || to) && read_from(c, op, j, at, n, to) < 0) return c->error->status;
    }
    return 0;
}

static bool is_laid_out(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t target = op->base + op->read + 1;
    if (RULES[op->kind].all_lay) return shmt_coll_all_reached(c, op->group, SHMT_GATE_CLOCK, target);
    return shmt_coll_reached(c, op->group, SHMT_GATE_CLOCK, op->root, target);
}

/* Of small operations the next one says that this one's data were read. */
static void note_piece(struct shmt_coll_op *op) {
    if (shmt_coll_pull_is_inline(op))
        op->read++;
    else
        shmt_coll_note_read(op, op->read + 1);
}

/* What I lend is mine again when its readers have read it. */
static bool is_given_back(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t end = op->base + op->pieces;
    if (!lays(op) || shmt_coll_pull_is_inline(op) || shmt_coll_note_of(op, op->group->me)->is.lent.in_at == 0) return true;
    if (RULES[op->kind].all_read) return shmt_coll_all_reached(c, op->group, SHMT_GATE_READ, end);
    return shmt_coll_reached(c, op->group, SHMT_GATE_READ, op->root, end);
}

/* One piece is laid out ahead of the one that is read. */
int shmt_coll_pull(struct shmt_coll *c, struct shmt_coll_op *op) {
    if (!reads(op)) op->read = op->pieces;
    while (op->laid < op->pieces || op->read < op->pieces) {
        const bool may_lay = op->laid < op->pieces && op->laid < op->read + 2;
        if (may_lay && lay_next(c, op)) continue;
        if (may_lay && op->laid <= op->read) return 0;
        if (!is_laid_out(c, op)) return 0;
        if (!shmt_coll_pull_is_inline(op) || op->fold.op == SHMTRAIN_OWN) shmt_coll_call(op); /* it takes a while */
        if (read_piece(c, op) < 0) return c->error->status;
        note_piece(op);
    }
    return is_given_back(c, op);
}
