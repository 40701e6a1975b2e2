/* Operations of one member, one after the other: what is common to all algorithms, which of them `auto` is, and the queue of those that
 * are started. */
#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "coll/member.h"
#include "sync/host.h"

/* Of m members and n bytes of a reduction to all, `auto` is sliced from so many bytes on: below it one wait costs less than two, and above
 * it reading all of everybody's costs more. Chosen, not tuned: bench/bench_collective shows both sides of it. */
#define SLICED_FROM 8192u

const char *shmt_coll_kind_name(uint32_t kind) {
    static const char *const NAME[] = {"barrier", "broadcast",  "scatter",        "gather",    "all-gather",
                                       "reduce",  "all-reduce", "reduce-scatter", "all-to-all"};
    return kind < sizeof NAME / sizeof *NAME ? NAME[kind] : "collective";
}

static bool reduces(uint32_t kind) {
    return kind == SHMTRAIN_REDUCE || kind == SHMTRAIN_ALL_REDUCE || kind == SHMTRAIN_REDUCE_SCATTER;
}

static bool has_slices(uint32_t kind) { return kind == SHMTRAIN_REDUCE || kind == SHMTRAIN_ALL_REDUCE; }

/* ---- which algorithm ---- */

static const char *const ALGORITHM[] = {"auto",    "flat",     "sliced", "ring",    "doubling",
                                        "halving", "binomial", "Bruck",  "pairwise"};

static int check_algorithm(struct shmt_coll *c, const struct shmt_coll_op *op) {
    const uint32_t a = op->algorithm;
    if (a <= SHMTRAIN_FLAT || (a == SHMTRAIN_SLICED && has_slices(op->kind)) ||
        shmt_coll_messages_can(op->kind, a, op->group->n))
        return 0;
    if (a > SHMTRAIN_PAIRWISE) return shmt_fail(c->error, SHMTRAIN_E_USAGE, "there is no algorithm %u for collectives", a);
    if (!shmt_coll_messages_has(op->kind, a))
        return shmt_fail(c->error, SHMTRAIN_E_USAGE, "%s has no algorithm %s", shmt_coll_kind_name(op->kind), ALGORITHM[a]);
    return shmt_fail(c->error, SHMTRAIN_E_USAGE, "%s by %s needs a power of two of members, and the group has %u",
                     shmt_coll_kind_name(op->kind), ALGORITHM[a], op->group->n);
}

/* Of two members each would read the other's half for its own, and one wait more. */
static uint32_t fastest(const struct shmt_coll_op *op) {
    const uint64_t bytes = op->n * op->each;
    if (op->lent) return SHMTRAIN_SLICED;
    if (!has_slices(op->kind) || op->group->n == 2) return SHMTRAIN_FLAT;
    return bytes >= SLICED_FROM ? SHMTRAIN_SLICED : SHMTRAIN_FLAT;
}

static void settle(struct shmt_coll *c, struct shmt_coll_op *op) {
    const uint64_t bytes = op->n * op->each;
    const bool named = op->algorithm == SHMTRAIN_SLICED;
    op->lent = op->kind == SHMTRAIN_ALL_REDUCE && (named || op->algorithm == SHMTRAIN_AUTO) &&
               bytes > (named ? 0 : SHMT_COLL_INLINE) && shmt_coll_lent_at(c, op->in, bytes) > 0 &&
               shmt_coll_lent_at(c, op->out, bytes) > 0;
    if (op->algorithm == SHMTRAIN_AUTO) op->algorithm = fastest(op);
    if (op->algorithm == SHMTRAIN_FLAT) shmt_coll_pull_plan(c, op);
    if (op->algorithm == SHMTRAIN_SLICED) shmt_coll_slices_plan(c, op);
}

/* ---- one operation ---- */

static uint64_t sign_of(const struct shmt_coll_op *op) {
    const uint64_t what = (uint64_t)op->kind << 32 | op->algorithm << 16 | op->lent;
    return shmt_hash64(what, op->n, (uint64_t)op->root << 32 | op->fold.type << 8 | (reduces(op->kind) ? op->fold.op : 0),
                       op->group->n);
}

/* Where `in` lies, of those kinds that read it in place. Not where it is `out` of an operation in which others may still read it. */
static uint64_t lent_in(const struct shmt_coll *c, const struct shmt_coll_op *op) {
    const bool all = op->kind == SHMTRAIN_SCATTER || op->kind == SHMTRAIN_ALL_TO_ALL || op->kind == SHMTRAIN_REDUCE_SCATTER;
    if (op->kind == SHMTRAIN_ALL_REDUCE && op->in == op->out && !op->lent) return 0;
    return shmt_coll_lent_at(c, op->in, op->n * op->each * (all ? op->group->n : 1));
}

/* A note takes the place of the one before the last: all have read that when they have begun the last operation. */
static bool begin(struct shmt_coll *c, struct shmt_coll_op *op) {
    struct shmtrain_group *g = op->group;
    if (g->operations >= 2 && !shmt_coll_all_reached(c, g, SHMT_GATE_CLOCK, g->begun)) return false;
    op->parity = (uint32_t)(g->operations++ & 1);
    op->base = g->tick;
    g->begun = op->base + 1;
    op->sign = sign_of(op);
    op->begun = true;
    struct shmt_coll_note *note = shmt_coll_note_of(op, g->me);
    note->sign = op->sign;
    if (op->algorithm == SHMTRAIN_FLAT && shmt_coll_pull_is_inline(op)) {
        const uint64_t blocks =
            op->kind == SHMTRAIN_SCATTER || op->kind == SHMTRAIN_ALL_TO_ALL || op->kind == SHMTRAIN_REDUCE_SCATTER ? g->n : 1;
        if (op->in && op->n > 0) memcpy(note->is.data, op->in, blocks * op->n * op->each);
        return true;
    }
    note->is.lent.in_at = op->algorithm <= SHMTRAIN_SLICED ? lent_in(c, op) : 0;
    note->is.lent.out_at = op->lent ? shmt_coll_lent_at(c, op->out, op->n * op->each) : 0;
    return true;
}

/* A group of one: the result is a copy. */
static int alone(struct shmt_coll_op *op) {
    if (op->kind != SHMTRAIN_BARRIER && op->out && op->out != op->in && op->n > 0) memmove(op->out, op->in, op->n * op->each);
    return 1;
}

static int advance(struct shmt_coll *c, struct shmt_coll_op *op) {
    if (op->group->n == 1) return alone(op);
    if (!op->begun && !begin(c, op)) return 0;
    int rc;
    if (op->algorithm == SHMTRAIN_FLAT)
        rc = shmt_coll_pull(c, op);
    else if (op->algorithm == SHMTRAIN_SLICED)
        rc = shmt_coll_slices(c, op);
    else
        rc = shmt_coll_messages(c, op);
    if (rc == 1) op->group->tick = op->base + op->laid;
    return rc;
}

/* ---- the queue ---- */

int shmt_coll_start(struct shmt_coll *c, const struct shmt_coll_op *op, uint64_t *ticket_out) {
    if (c->error->status < 0) return c->error->status;
    if (c->started - c->done == SHMTRAIN_COLLECTIVE_STARTED)
        return shmt_fail(c->error, SHMTRAIN_E_USAGE, "%d collectives are under way: wait for one before the next is started",
                         SHMTRAIN_COLLECTIVE_STARTED);
    if (check_algorithm(c, op) < 0) return c->error->status;
    struct shmt_coll_op *mine = &c->op[c->started % SHMTRAIN_COLLECTIVE_STARTED];
    *mine = *op;
    if (op->group->n > 1) settle(c, mine);
    op->group->busy++;
    *ticket_out = ++c->started;
    return 0;
}

/* Operations of the queue's head, as far as they can be done; who waits for the ticket looks a few times for what is missing. Then those
 * are called who sleep for what I have done. */
static int proceed(struct shmt_coll *c, uint64_t ticket, bool waits) {
    int rc = 1;
    while (c->done < c->started && rc == 1) {
        struct shmt_coll_op *op = &c->op[c->done % SHMTRAIN_COLLECTIVE_STARTED];
        while ((rc = advance(c, op)) == 0 && waits && c->done < ticket && shmt_coll_comes_at_once(c)) continue;
        shmt_coll_call(op);
        if (rc != 1) return rc;
        op->group->busy--;
        c->done++;
    }
    return rc;
}

int shmt_coll_test(struct shmt_coll *c, uint64_t ticket) {
    if (c->error->status < 0) return c->error->status;
    int rc = proceed(c, ticket, false);
    if (rc == 0) shmt_spend(SHMT_SPENT_LOOKING, 1);
    if (rc == 0) rc = shmt_coll_block(c, true);
    return rc < 0 ? rc : c->done >= ticket;
}

int shmt_coll_wait_for(struct shmt_coll *c, uint64_t ticket) {
    int rc = c->error->status;
    while (rc >= 0 && c->done < ticket) {
        rc = proceed(c, ticket, true);
        if (rc == 0 && c->done < ticket) rc = shmt_coll_block(c, false); /* else it waits for one that was started later */
    }
    return rc < 0 ? rc : 0;
}
