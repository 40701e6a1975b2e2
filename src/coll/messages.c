/* The textbook's algorithms as what they are: messages between members, of an array of one's own.
 *
 * A message is copied into a half of the sender's staging memory, piece by piece if it is larger, and from there into the receiver's array,
 * or folded into it. A tick is a piece; all members count as many for a step as its largest message has, also those that neither send nor
 * receive. So a step costs one wait, and twice the copying of shared memory as it is. */
#include <string.h>

#include "base/checked.h"
#include "base/own.h"
#include "coll/messages_priv.h"

/* ---- the array ---- */

static void copy(void *to, const void *from, uint64_t bytes) {
    if (bytes > 0 && to != from) memcpy(to, from, bytes);
}

/* What becomes of the blocks of `in` in the array, and of the array in `out`. */
enum form {
    AS_IT_IS,  /* the array is `out` */
    OWN_BLOCK, /* likewise, and `in` is my block of it */
    TURNED,    /* of all members' blocks, from me or from the root on */
    WHOLE      /* all members' blocks, of which one is the result */
};

static enum form form_of(const struct shmt_coll_op *op) {
    switch (op->kind) {
        case SHMTRAIN_SCATTER:
        case SHMTRAIN_GATHER:
            return TURNED;
        case SHMTRAIN_ALL_GATHER:
            return op->algorithm == SHMTRAIN_BRUCK ? TURNED : OWN_BLOCK;
        case SHMTRAIN_ALL_TO_ALL:
            return op->algorithm == SHMTRAIN_BRUCK ? TURNED : OWN_BLOCK;
        case SHMTRAIN_REDUCE_SCATTER:
            return op->algorithm == SHMTRAIN_PAIRWISE ? AS_IT_IS : WHOLE;
        default:
            return AS_IT_IS;
    }
}

/* Whether `in`, or `out`, has a block for each member, or one. */
static bool in_has_all(const struct shmt_coll_op *op) {
    return op->kind == SHMTRAIN_SCATTER || op->kind == SHMTRAIN_ALL_TO_ALL || op->kind == SHMTRAIN_REDUCE_SCATTER;
}
static bool out_has_all(const struct shmt_coll_op *op) {
    return op->kind == SHMTRAIN_GATHER || op->kind == SHMTRAIN_ALL_GATHER || op->kind == SHMTRAIN_ALL_TO_ALL;
}

static bool is_rooted(const struct shmt_coll_op *op) {
    return op->kind == SHMTRAIN_SCATTER || op->kind == SHMTRAIN_GATHER || op->kind == SHMTRAIN_REDUCE ||
           op->kind == SHMTRAIN_BROADCAST;
}

static int take_room(struct shmt_coll *c, struct shmt_coll_op *op) {
    const bool is_root = op->group->me == op->root;
    const enum form form = form_of(op);
    uint64_t bytes;
    op->work = op->out;
    if (op->kind == SHMTRAIN_BARRIER || form == OWN_BLOCK) return 0;
    if (op->kind == SHMTRAIN_BROADCAST && is_root) op->work = op->out ? op->out : (unsigned char *)(uintptr_t)op->in;
    if (form == AS_IT_IS && (op->kind != SHMTRAIN_REDUCE || is_root)) return 0;
    bytes = op->n * op->each * (form == AS_IT_IS ? 1 : op->group->n); /* checked where the call came in */
    op->work = shmt_own_malloc(bytes, 1);
    if (!op->work) return shmt_no_memory(c->error, "for a collective of %llu bytes", (unsigned long long)bytes);
    op->owns_work = true;
    return 0;
}

static int begin(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint32_t m = op->group->n, me = op->group->me;
    const uint64_t block = op->n * op->each;
    if (take_room(c, op) < 0) return c->error->status;
    if (op->kind == SHMTRAIN_BARRIER || (op->kind == SHMTRAIN_BROADCAST && me != op->root)) return 0;
    if (form_of(op) == AS_IT_IS) copy(op->work, op->in + (in_has_all(op) ? me * block : 0), block);
    if (form_of(op) == OWN_BLOCK) copy(op->work + me * block, op->in + (in_has_all(op) ? me * block : 0), block);
    if (form_of(op) == WHOLE) copy(op->work, op->in, m * block);
    if (form_of(op) != TURNED) return 0;
    const uint32_t from = is_rooted(op) ? op->root : me;
    if (!in_has_all(op)) copy(op->work + (uint64_t)((me + m - from) % m) * block, op->in, block);
    for (uint32_t b = 0; b < m && in_has_all(op) && (op->kind != SHMTRAIN_SCATTER || me == op->root); b++)
        copy(op->work + b * block, op->in + (uint64_t)((from + b) % m) * block, block);
    return 0;
}

static void end(struct shmt_coll_op *op) {
    const uint32_t m = op->group->n, me = op->group->me;
    const uint64_t block = op->n * op->each;
    const uint32_t from = is_rooted(op) ? op->root : me;
    if (form_of(op) == WHOLE) copy(op->out, op->work + me * block, block);
    if (form_of(op) == TURNED && !out_has_all(op)) copy(op->out, op->work + (uint64_t)((me + m - from) % m) * block, block);
    for (uint32_t b = 0; b < m && form_of(op) == TURNED && out_has_all(op) && (op->kind != SHMTRAIN_GATHER || me == op->root);
         b++) {
        const uint32_t to = op->kind == SHMTRAIN_ALL_TO_ALL ? (me + m - b) % m : (from + b) % m;
        copy(op->out + to * block, op->work + b * block, block);
    }
    if (op->owns_work) shmt_own_free(op->work);
    op->owns_work = false;
}

/* ---- messages ---- */

static uint32_t next_block(const struct shmt_coll_op *op, const struct shmt_coll_step *step, uint32_t b) {
    if (!step->bit) return (b + 1) % op->group->n;
    do b++;
    while (!(b & step->bit));
    return b;
}

/* Elements from .. to - 1 of the message of these blocks, which stand at `half`: copied there, or from there, or folded. */
static void move(const struct shmt_coll_op *op, const struct shmt_coll_step *step, bool out, uint64_t from, uint64_t to,
                 unsigned char *half) {
    const struct shmt_coll_blocks *blocks = out ? &step->send : &step->recv;
    const unsigned char *const source = step->sends_in ? op->in : op->work;
    uint64_t at = 0; /* of the message, where block b begins */
    uint32_t b = step->bit ? next_block(op, step, 0) : blocks->first;
    for (uint32_t k = 0; k < blocks->n; k++) {
        const uint64_t begins = shmt_coll_block_begin(op, b), n = shmt_coll_block_begin(op, b + 1) - begins;
        const uint64_t lo = shmt_max_u64(at, from), hi = shmt_min_u64(at + n, to);
        if (lo < hi) {
            const uint64_t mine = (begins + lo - at) * op->each, bytes = (hi - lo) * op->each;
            unsigned char *const there = half + (lo - from) * op->each;
            if (out)
                memcpy(there, source + mine, bytes);
            else if (!step->folds)
                memcpy(op->work + mine, there, bytes);
            else if (!step->first)
                shmt_coll_fold(&op->fold, op->work + mine, op->work + mine, there, hi - lo);
            else {
                const void *const both[] = {there, op->work + mine};
                shmt_coll_fold_all(&op->fold, op->work + mine, both, 2, hi - lo);
            }
        }
        at += n;
        if (k + 1 < blocks->n) b = next_block(op, step, b);
    }
}

static bool send(struct shmt_coll *c, struct shmt_coll_op *op, const struct shmt_coll_step *step) {
    const uint64_t tick = op->base + op->read, q = c->place.room.half_bytes / op->each;
    if (step->to != SHMT_COLL_NOBODY) {
        if (!shmt_coll_half_is_free(c, tick)) return false;
        shmt_coll_call(op);
        move(op, step, true, op->chunk * q, (op->chunk + 1) * q, shmt_coll_half_of(c, c->place.self, tick));
        shmt_coll_half_take(c, op->group, tick, step->to, tick + 1, UINT64_MAX);
    }
    shmt_coll_lay(op, op->read + 1);
    return true;
}

/* 1, 0: not yet, or a status. */
static int receive(struct shmt_coll *c, struct shmt_coll_op *op, const struct shmt_coll_step *step) {
    const uint64_t tick = op->base + op->read, q = c->place.room.half_bytes / op->each;
    if (step->from == SHMT_COLL_NOBODY) {
        op->read++;
        return 1;
    }
    if (!shmt_coll_reached(c, op->group, SHMT_GATE_CLOCK, step->from, tick + 1)) return 0;
    if (shmt_coll_check(c, op, step->from) < 0) return c->error->status;
    shmt_coll_call(op);
    move(op, step, false, op->chunk * q, (op->chunk + 1) * q, shmt_coll_half_of(c, op->group->rank[step->from], tick));
    shmt_coll_note_read(op, op->read + 1);
    return 1;
}

static uint64_t chunks_of(const struct shmt_coll *c, const struct shmt_coll_op *op, const struct shmt_coll_step *step) {
    const uint64_t most = step->most * shmt_coll_block_most(op);
    return shmt_max_u64(1, shmt_ceil_div(most, c->place.room.half_bytes / op->each));
}

int shmt_coll_messages(struct shmt_coll *c, struct shmt_coll_op *op) {
    struct shmt_coll_step step;
    if (op->laid == 0 && !op->work && begin(c, op) < 0) return c->error->status;
    while (shmt_coll_step_of(op, op->step, &step)) {
        if (!op->sent && !send(c, op, &step)) return 0;
        op->sent = true;
        const int rc = receive(c, op, &step);
        if (rc != 1) return rc;
        op->sent = false;
        if (++op->chunk < chunks_of(c, op, &step)) continue;
        op->chunk = 0;
        op->step++;
    }
    end(op);
    return 1;
}
