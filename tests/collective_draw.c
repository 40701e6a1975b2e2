/* Operations drawn from a seed: see collective_draw.h. */
#include "collective_draw.h"

static uint64_t pick(struct hall *hall, uint64_t number, uint64_t what, uint64_t below) {
    return shmt_below(shmt_hash64(hall->seed, number, what, 77), below);
}

bool is_rooted(uint32_t kind) {
    return kind == SHMTRAIN_BROADCAST || kind == SHMTRAIN_SCATTER || kind == SHMTRAIN_GATHER || kind == SHMTRAIN_REDUCE;
}

bool has_algorithm(uint32_t kind, uint32_t algorithm, uint32_t members) {
    const bool sliced = algorithm == SHMTRAIN_SLICED && (kind == SHMTRAIN_REDUCE || kind == SHMTRAIN_ALL_REDUCE);
    return algorithm <= SHMTRAIN_FLAT || sliced || shmt_coll_messages_can(kind, algorithm, members);
}

/* The same for all members; false: the algorithm cannot do it. */
static bool draw(struct hall *hall, struct shmtrain_group *g, uint64_t number, struct draw *out) {
    static const uint64_t AROUND[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 65, 127, 300, 1000};
    *out = (struct draw){.number = number, .type = (uint32_t)pick(hall, number, 0, 4)};
    struct shmt_coll_op *op = &out->op;
    op->kind = (uint32_t)pick(hall, number, 1, SHMTRAIN_ALL_TO_ALL + 1);
    op->algorithm = (uint32_t)pick(hall, number, 2, SHMTRAIN_PAIRWISE + 1);
    op->group = g;
    op->root = is_rooted(op->kind) ? (uint32_t)pick(hall, number, 3, g->n) : 0;
    op->n = op->kind == SHMTRAIN_BARRIER ? 0 : AROUND[pick(hall, number, 4, sizeof AROUND / sizeof *AROUND)];
    op->fold = (struct shmt_coll_fold){.type = out->type, .op = (uint32_t)pick(hall, number, 5, 5), .combine = own};
    op->each = shmt_coll_type_bytes(out->type);
    out->in_place = (op->kind == SHMTRAIN_REDUCE || op->kind == SHMTRAIN_ALL_REDUCE) && pick(hall, number, 6, 2);
    out->lent = pick(hall, number, 7, 2);
    out->started = pick(hall, number, 8, 3) == 0;
    return has_algorithm(op->kind, op->algorithm, g->n);
}

static bool in_has_all(uint32_t kind) {
    return kind == SHMTRAIN_SCATTER || kind == SHMTRAIN_ALL_TO_ALL || kind == SHMTRAIN_REDUCE_SCATTER;
}
static bool out_has_all(uint32_t kind) {
    return kind == SHMTRAIN_GATHER || kind == SHMTRAIN_ALL_GATHER || kind == SHMTRAIN_ALL_TO_ALL;
}

/* The member with which the order of element i begins. */
static uint32_t begins_with(const struct draw *d, uint64_t i) {
    const struct shmt_coll_op *op = &d->op;
    const uint32_t m = op->group->n;
    if (op->algorithm == SHMTRAIN_BINOMIAL) return op->kind == SHMTRAIN_REDUCE ? op->root : 0;
    if (op->algorithm == SHMTRAIN_PAIRWISE) return op->group->me;
    if (op->algorithm != SHMTRAIN_RING) return 0;
    if (op->kind == SHMTRAIN_REDUCE_SCATTER) return (op->group->me + 1) % m;
    for (uint32_t b = 0; b < m; b++) /* blocks are n / m elements, and the first whole multiples of m / (n % m) have one more */
        if (i >= op->n / m * b + op->n % m * b / m && i < op->n / m * (b + 1) + op->n % m * (b + 1) / m) return b;
    return 0;
}

/* Element i of my result. */
static union number expected(struct hall *hall, const struct draw *d, uint64_t i) {
    const struct shmt_coll_op *op = &d->op;
    const uint32_t me = op->group->me;
    union number x[MOST];
#define GIVEN(who, at) input(d->type, hall->seed, d->number, op->group->rank[who], (at))
    if (op->kind == SHMTRAIN_BROADCAST) return GIVEN(op->root, i);
    if (op->kind == SHMTRAIN_SCATTER) return GIVEN(op->root, me * op->n + i);
    if (op->kind == SHMTRAIN_GATHER || op->kind == SHMTRAIN_ALL_GATHER) return GIVEN(i / op->n, i % op->n);
    if (op->kind == SHMTRAIN_ALL_TO_ALL) return GIVEN(i / op->n, me * op->n + i % op->n);
    for (uint32_t j = 0; j < op->group->n; j++) x[j] = GIVEN(j, (op->kind == SHMTRAIN_REDUCE_SCATTER ? me * op->n : 0) + i);
    return reduced(d->type, op->fold.op, op->algorithm, op->group->n, begins_with(d, i), x);
}

static void fill(struct hall *hall, struct draw *d, const struct buffers *b) {
    struct shmt_coll_op *op = &d->op;
    const uint64_t n = op->n * (in_has_all(op->kind) ? op->group->n : 1);
    /* Where all read in place, all lend; else every second one does. */
    const bool lends = d->lent && (op->kind == SHMTRAIN_ALL_REDUCE || op->group->me % 2);
    unsigned char *in = lends ? b->lent_in : b->in;
    op->out = lends ? b->lent_out : b->out;
    if (d->in_place)
        in = op->out;
    else
        memset(op->out, 0x5a, op->n * op->each * (out_has_all(op->kind) ? op->group->n : 1));
    for (uint64_t i = 0; i < n; i++) {
        const union number x = input(d->type, hall->seed, d->number, op->group->rank[op->group->me], i);
        memcpy(in + i * op->each, &x, op->each);
    }
    op->in = in;
    op->fold.arg = &d->type;
}

static bool check(struct hall *hall, const struct draw *d) {
    const struct shmt_coll_op *op = &d->op;
    const bool mine =
        !is_rooted(op->kind) || op->kind == SHMTRAIN_BROADCAST || op->kind == SHMTRAIN_SCATTER || op->group->me == op->root;
    const uint64_t n = op->n * (out_has_all(op->kind) ? op->group->n : 1);
    for (uint64_t i = 0; i < n && mine; i++) {
        const union number x = expected(hall, d, i);
        if (memcmp(op->out + i * op->each, &x, op->each) == 0) continue;
        complain(
            hall,
            "operation %llu: %s, algorithm %u, type %u, operator %u, n %llu, root %u, %u members, me %u, in place %d, lent %d:"
            " element %llu",
            (unsigned long long)d->number, shmt_coll_kind_name(op->kind), op->algorithm, d->type, op->fold.op,
            (unsigned long long)op->n, op->root, op->group->n, op->group->me, d->in_place, d->lent, (unsigned long long)i);
        return false;
    }
    return true;
}

bool run_one(struct hall *hall, struct shmt_coll *c, struct draw *d, const struct buffers *b) {
    uint64_t ticket;
    fill(hall, d, b);
    if (shmt_coll_start(c, &d->op, &ticket) < 0) return false;
    for (int rc = 0, looks = 0; d->started && looks < 3 && rc == 0; looks++)
        if ((rc = shmt_coll_test(c, ticket)) < 0) return false;
    return shmt_coll_wait_for(c, ticket) == 0 && check(hall, d);
}

/* ---- groups: all; a permutation; a range; two colours; a union of what others have ---- */

static int make_group(struct hall *hall, struct shmt_coll *c, uint64_t number, struct shmtrain_group **out) {
    uint32_t rank[MOST], n = 0;
    const uint32_t self = c->place.self;
    *out = c->all;
    switch (pick(hall, number, 20, 5)) {
        case 0:
            return 0;
        case 1: /* backwards, without one */
            for (uint32_t i = hall->n; i-- > 0;)
                if (i != pick(hall, number, 21, hall->n) || hall->n == 1) rank[n++] = i;
            return shmt_coll_group_join(c, rank, n, out);
        case 2:
            for (uint32_t i = (uint32_t)pick(hall, number, 21, hall->n); i < hall->n; i += 2) rank[n++] = i;
            return shmt_coll_group_join(c, rank, n, out);
        case 3:
            return shmt_coll_group_of_colour(c, (self * 7 + (uint32_t)number) % 3 == 0, out);
        default:
            return shmt_coll_group_of_colour(c, self == 0 ? UINT32_MAX : self % 2, out);
    }
}

enum { GROUPS = 10, EACH = 12 };

static struct buffers g_stage[MOST]; /* of each member its own */

static void leave_stage(struct buffers *b) {
    free(b->in);
    free(b->out);
    *b = (struct buffers){0};
}

void play_all(struct hall *hall, struct shmt_coll *c) {
    struct buffers *b = &g_stage[c->place.self];
    void *in = NULL, *out = NULL;
    *b = (struct buffers){.in = malloc(ROOM), .out = malloc(ROOM)};
    bool good = b->in && b->out && shmt_coll_lend(c, ROOM, &in) == 0 && shmt_coll_lend(c, ROOM, &out) == 0;
    b->lent_in = in;
    b->lent_out = out;
    for (uint64_t k = 0; k < GROUPS && good; k++) {
        struct shmtrain_group *g;
        good = make_group(hall, c, k, &g) == 0;
        if (!good || g->me == UINT32_MAX) continue;
        for (uint64_t i = 0; i < EACH && good; i++) {
            struct draw d;
            if (draw(hall, g, 1000 * k + i, &d)) good = run_one(hall, c, &d, b);
        }
        if (good && g != c->all) good = shmt_coll_group_leave(c, g) == 0;
    }
    leave_stage(b);
}

void clear_stage(void) {
    for (uint32_t i = 0; i < MOST; i++) leave_stage(&g_stage[i]);
}
