/* The steps of the textbook's algorithms: see messages_priv.h, and docs/collectives.md, which draws them.
 *
 * m members, me; v is the place counted from the root. Trees and their distances d = 1, 2, 4, ... as in Thakur, Rabenseifner and Gropp,
 * "Optimization of collective communication operations in MPICH" (2005); the ring as in Patarasuk and Yuan (2009), Bruck's algorithms as in
 * Bruck et al. (1997). */
#include "coll/messages_priv.h"

#include "base/checked.h"

static bool is_power(uint32_t m) { return (m & (m - 1)) == 0; }

static uint32_t log2_up(uint32_t m) {
    uint32_t k = 0;
    while ((UINT64_C(1) << k) < m) k++;
    return k;
}

/* Each kind's algorithms, as bits. */
static const uint32_t HAS[] = {
    [SHMTRAIN_BARRIER] = 1 << SHMTRAIN_BRUCK,
    [SHMTRAIN_BROADCAST] = 1 << SHMTRAIN_BINOMIAL,
    [SHMTRAIN_SCATTER] = 1 << SHMTRAIN_BINOMIAL,
    [SHMTRAIN_GATHER] = 1 << SHMTRAIN_BINOMIAL,
    [SHMTRAIN_ALL_GATHER] = 1 << SHMTRAIN_RING | 1 << SHMTRAIN_DOUBLING | 1 << SHMTRAIN_BRUCK,
    [SHMTRAIN_REDUCE] = 1 << SHMTRAIN_BINOMIAL,
    [SHMTRAIN_ALL_REDUCE] = 1 << SHMTRAIN_RING | 1 << SHMTRAIN_DOUBLING | 1 << SHMTRAIN_HALVING | 1 << SHMTRAIN_BINOMIAL,
    [SHMTRAIN_REDUCE_SCATTER] = 1 << SHMTRAIN_RING | 1 << SHMTRAIN_HALVING | 1 << SHMTRAIN_PAIRWISE,
    [SHMTRAIN_ALL_TO_ALL] = 1 << SHMTRAIN_PAIRWISE | 1 << SHMTRAIN_BRUCK,
};

bool shmt_coll_messages_has(uint32_t kind, uint32_t algorithm) { return algorithm < 32 && (HAS[kind] >> algorithm & 1); }

bool shmt_coll_messages_can(uint32_t kind, uint32_t algorithm, uint32_t members) {
    const bool pairs = algorithm == SHMTRAIN_DOUBLING || algorithm == SHMTRAIN_HALVING;
    return shmt_coll_messages_has(kind, algorithm) && (!pairs || is_power(members));
}

/* ---- blocks ---- */

static bool is_cut(const struct shmt_coll_op *op) {
    return op->kind == SHMTRAIN_ALL_REDUCE && (op->algorithm == SHMTRAIN_RING || op->algorithm == SHMTRAIN_HALVING);
}

uint64_t shmt_coll_block_begin(const struct shmt_coll_op *op, uint32_t b) {
    const uint64_t m = op->group->n;
    if (!is_cut(op)) return b * op->n;
    return op->n / m * b + op->n % m * b / m;
}

uint64_t shmt_coll_block_most(const struct shmt_coll_op *op) { return is_cut(op) ? shmt_ceil_div(op->n, op->group->n) : op->n; }

/* ---- from member to member ---- */

static void send_to(struct shmt_coll_step *step, uint32_t to, uint32_t first, uint32_t n) {
    step->to = to;
    step->send = (struct shmt_coll_blocks){first, n};
}

static void receive_from(struct shmt_coll_step *step, uint32_t from, uint32_t first, uint32_t n) {
    step->from = from;
    step->recv = (struct shmt_coll_blocks){first, n};
}

/* At least one: nobody calls collectives of a group without members. */
static uint32_t members(const struct shmt_coll_op *op) { return op->group->n > 0 ? op->group->n : 1; }

static uint32_t around(const struct shmt_coll_op *op, uint64_t i) { return (uint32_t)(i % members(op)); }

/* ---- trees ---- */

/* Who has it sends it to those at distance d, for d = 1, 2, 4, ... */
static void broadcast_tree(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t m = op->group->n, v = around(op, op->group->me + m - op->root), d = 1u << s;
    step->most = 1;
    if (v < d && v + d < m) send_to(step, around(op, op->group->me + d), 0, 1);
    if (v >= d && v < 2 * d) receive_from(step, around(op, op->group->me + m - d), 0, 1);
}

/* Each second one of those that are left sends what it has to the one before; `width` blocks of each place below it (reduce: one). */
static void gather_tree(const struct shmt_coll_op *op, uint32_t s, bool folds, struct shmt_coll_step *step) {
    const uint32_t m = op->group->n, v = around(op, op->group->me + m - op->root), d = 1u << s;
    const uint32_t end = (uint32_t)shmt_min_u64(m, UINT64_C(2) * d + v);
    step->most = folds ? 1 : d;
    step->folds = folds;
    if (v % (2 * d) == d)
        send_to(step, around(op, op->group->me + m - d), folds ? 0 : v, folds ? 1 : (uint32_t)shmt_min_u64(d, m - v));
    if (v % (2 * d) == 0 && v + d < m)
        receive_from(step, around(op, op->group->me + d), folds ? 0 : v + d, folds ? 1 : end - v - d);
}

/* The way back: the far half of what it has to the one at distance d, for d = ..., 4, 2, 1. */
static void scatter_tree(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    struct shmt_coll_step back = *step;
    gather_tree(op, log2_up(op->group->n) - 1 - s, false, &back);
    step->most = back.most;
    step->to = back.from;
    step->send = back.recv;
    step->from = back.to;
    step->recv = back.send;
}

/* ---- rings ---- */

/* Everybody passes a block on to the right: at step s the one that began at member me + shift - s. */
static void ring(const struct shmt_coll_op *op, uint32_t s, uint32_t shift, bool folds, struct shmt_coll_step *step) {
    const uint32_t m = members(op), me = op->group->me;
    const uint64_t block = (uint64_t)me + shift + m - s % m;
    step->most = 1;
    step->folds = step->first = folds;
    send_to(step, around(op, me + 1), around(op, block), 1);
    receive_from(step, around(op, me + m - 1), around(op, block + m - 1), 1);
}

/* ---- pairs, of a power of two ---- */

static void exchange_all(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t peer = op->group->me ^ 1u << s;
    step->most = 1;
    step->folds = true;
    step->first = peer < op->group->me;
    send_to(step, peer, 0, 1);
    receive_from(step, peer, 0, 1);
}

/* The blocks of my 2^s neighbours. */
static void exchange_blocks(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t d = 1u << s, peer = op->group->me ^ d;
    step->most = d;
    send_to(step, peer, op->group->me & ~(d - 1), d);
    receive_from(step, peer, peer & ~(d - 1), d);
}

/* The half of my blocks that the partner keeps, for that which I keep. */
static void exchange_halves(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t d = op->group->n >> (s + 1), peer = op->group->me ^ d;
    step->most = d;
    step->folds = true;
    step->first = peer < op->group->me;
    send_to(step, peer, peer & ~(d - 1), d);
    receive_from(step, peer, op->group->me & ~(d - 1), d);
}

/* ---- Bruck, and pairs at a distance ---- */

static void bruck_gather(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t m = op->group->n, me = op->group->me, d = 1u << s, n = (uint32_t)shmt_min_u64(d, m - d);
    step->most = op->kind == SHMTRAIN_BARRIER ? 0 : n;
    send_to(step, around(op, me + m - d), 0, step->most);
    receive_from(step, around(op, me + d), d, step->most);
}

/* Blocks whose distance to go has bit s travel that far. */
static void bruck_all_to_all(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t m = op->group->n, me = op->group->me, d = 1u << s;
    uint32_t n = 0;
    for (uint32_t b = 0; b < m; b++) n += b >> s & 1;
    step->bit = d;
    step->most = n;
    send_to(step, around(op, me + d), 0, n);
    receive_from(step, around(op, me + m - d), 0, n);
}

static void pairwise(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *step) {
    const uint32_t m = op->group->n, me = op->group->me, d = s + 1;
    const bool folds = op->kind == SHMTRAIN_REDUCE_SCATTER;
    step->most = 1;
    step->folds = folds;
    step->sends_in = true;
    send_to(step, around(op, me + d), around(op, me + d), 1);
    receive_from(step, around(op, me + m - d), folds ? 0 : around(op, me + m - d), 1); /* folded: into the result alone */
}

/* ---- all of them ---- */

static uint32_t steps_of(const struct shmt_coll_op *op) {
    const uint32_t m = op->group->n, k = log2_up(m);
    const bool twice = op->kind == SHMTRAIN_ALL_REDUCE && op->algorithm != SHMTRAIN_DOUBLING;
    const bool circle = op->algorithm == SHMTRAIN_RING || op->algorithm == SHMTRAIN_PAIRWISE;
    return (circle ? m - 1 : k) * (twice ? 2 : 1);
}

static void all_reduce_step(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *out) {
    const uint32_t half = steps_of(op) / 2;
    if (op->algorithm == SHMTRAIN_DOUBLING)
        exchange_all(op, s, out);
    else if (op->algorithm == SHMTRAIN_RING)
        ring(op, s < half ? s : s - half, s < half ? 0 : 1, s < half, out);
    else if (op->algorithm == SHMTRAIN_HALVING && s < half)
        exchange_halves(op, s, out);
    else if (op->algorithm == SHMTRAIN_HALVING)
        exchange_blocks(op, s - half, out);
    else if (s < half)
        gather_tree(op, s, true, out);
    else
        broadcast_tree(op, s - half, out);
}

static void reduce_scatter_step(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *out) {
    if (op->algorithm == SHMTRAIN_RING)
        ring(op, s, op->group->n - 1, true, out);
    else if (op->algorithm == SHMTRAIN_HALVING)
        exchange_halves(op, s, out);
    else
        pairwise(op, s, out);
}

bool shmt_coll_step_of(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *out) {
    *out = (struct shmt_coll_step){.to = SHMT_COLL_NOBODY, .from = SHMT_COLL_NOBODY};
    if (s >= steps_of(op)) return false;
    switch (op->kind) {
        case SHMTRAIN_BARRIER:
            bruck_gather(op, s, out);
            break;
        case SHMTRAIN_BROADCAST:
            broadcast_tree(op, s, out);
            break;
        case SHMTRAIN_SCATTER:
            scatter_tree(op, s, out);
            break;
        case SHMTRAIN_GATHER:
            gather_tree(op, s, false, out);
            break;
        case SHMTRAIN_REDUCE:
            gather_tree(op, s, true, out);
            break;
        case SHMTRAIN_ALL_REDUCE:
            all_reduce_step(op, s, out);
            break;
        case SHMTRAIN_REDUCE_SCATTER:
            reduce_scatter_step(op, s, out);
            break;
        case SHMTRAIN_ALL_GATHER:
            if (op->algorithm == SHMTRAIN_RING)
                ring(op, s, 0, false, out);
            else if (op->algorithm == SHMTRAIN_DOUBLING)
                exchange_blocks(op, s, out);
            else
                bruck_gather(op, s, out);
            break;
        default:
            if (op->algorithm == SHMTRAIN_PAIRWISE)
                pairwise(op, s, out);
            else
                bruck_all_to_all(op, s, out);
    }
    return true;
}
