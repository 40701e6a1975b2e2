/* Groups: see <shmtrain/collective.h>.
 *
 * A group takes a slot that is free at all its members: what is free, and who asks for what, all workers tell each other by an all-gather
 * in the group of all. A slot's words stand where earlier groups have left them, at each member elsewhere, so the new group counts from the
 * largest: everybody looks at them while nobody writes them, and a barrier ends that. */
#include <string.h>

#include "base/checked.h"
#include "base/own.h"
#include "base/random.h"
#include "coll/member.h"

#define NOT_IN SHMT_COLL_ALL

/* What a worker says of the group that it asks for. */
struct claim {
    uint64_t list; /* a hash of its members, in their order */
    uint32_t slots, is_member;
    uint32_t colour, reserved;
};
#define CLAIM_WORDS (sizeof(struct claim) / sizeof(int64_t))

static void attach(struct shmt_coll *c, struct shmtrain_group *g, uint32_t slot) {
    const struct shmt_coll_place *p = &c->place;
    g->slot = slot;
    if (p->n == 1) return;
    g->gates = (struct shmt_gates){.gate = shmt_coll_gates(p->words, p->n, slot),
                                   .stride_bytes = sizeof(struct shmt_gate),
                                   .n = p->n,
                                   .self = p->self,
                                   .watch = {.abort = p->abort,
                                             .member = &shmt_coll_presence(p->words, 0)->present,
                                             .member_stride = sizeof(struct shmt_coll_presence) / sizeof(uint32_t),
                                             .spin_ns = p->spin_ns},
                                   .tell = p->tell,
                                   .tell_arg = p->tell_arg};
}

int shmt_coll_group_make(struct shmt_coll *c, const uint32_t *rank, uint32_t n, struct shmtrain_group **out) {
    struct shmtrain_group *g = shmt_own_calloc(1, sizeof *g + n * (SHMT_GATE_WORDS * sizeof(uint64_t) + sizeof(uint32_t)));
    if (!g) return shmt_no_memory(c->error, "for a group of %u members", n);
    g->of = c;
    g->n = n;
    g->me = NOT_IN;
    g->seen[0] = (uint64_t *)(void *)(g + 1);
    for (uint32_t word = 1; word < SHMT_GATE_WORDS; word++) g->seen[word] = g->seen[word - 1] + n;
    g->rank = (uint32_t *)(void *)(g->seen[SHMT_GATE_WORDS - 1] + n);
    for (uint32_t i = 0; i < n; i++) {
        g->rank[i] = rank[i];
        if (rank[i] == c->place.self) g->me = i;
    }
    attach(c, g, 0);
    g->next = c->groups;
    c->groups = g;
    *out = g;
    return 0;
}

static void forget(struct shmt_coll *c, struct shmtrain_group *g) {
    struct shmtrain_group **at = &c->groups;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    shmt_own_free(g);
}

/* ---- all workers tell each other ---- */

static int run_to_end(struct shmt_coll *c, const struct shmt_coll_op *op) {
    uint64_t ticket;
    const int rc = shmt_coll_start(c, op, &ticket);
    return rc < 0 ? rc : shmt_coll_wait_for(c, ticket);
}

static int exchange(struct shmt_coll *c, const struct claim *mine, struct claim *all) {
    const struct shmt_coll_op op = {.kind = SHMTRAIN_ALL_GATHER,
                                    .algorithm = SHMTRAIN_FLAT,
                                    .fold = {.type = SHMTRAIN_INT64},
                                    .group = c->all,
                                    .each = sizeof(int64_t),
                                    .in = (const unsigned char *)mine,
                                    .out = (unsigned char *)all,
                                    .n = CLAIM_WORDS};
    return run_to_end(c, &op);
}

static int meet(struct shmt_coll *c) {
    const struct shmt_coll_op op = {.kind = SHMTRAIN_BARRIER, .algorithm = SHMTRAIN_FLAT, .group = c->all, .each = 1};
    return run_to_end(c, &op);
}

/* ---- lists ---- */

static uint64_t list_of(const struct shmtrain_group *g) {
    uint64_t h = shmt_mix64(g->n);
    for (uint32_t i = 0; i < g->n; i++) h = shmt_mix64(h ^ g->rank[i]);
    return h;
}

static int check_list(struct shmt_coll *c, const uint32_t *rank, uint32_t n) {
    unsigned char seen[SHMTRAIN_COLLECTIVE_WORKERS] = {0};
    if (n > c->place.n)
        return shmt_fail(c->error, SHMTRAIN_E_USAGE, "a group of %u members: the run has %u workers", n, c->place.n);
    for (uint32_t i = 0; i < n; i++) {
        if (rank[i] >= c->place.n)
            return shmt_fail(c->error, SHMTRAIN_E_USAGE, "there is no worker %u for a group: the run has %u", rank[i],
                             c->place.n);
        if (seen[rank[i]]++) return shmt_fail(c->error, SHMTRAIN_E_USAGE, "worker %u is twice in the list of a group", rank[i]);
    }
    return 0;
}

/* ---- a slot ---- */

/* The first slot that is free at all members. */
static int choose_slot(struct shmt_coll *c, struct shmtrain_group *g, const struct claim *all) {
    uint32_t used = 0, slot = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct claim *its = &all[g->rank[i]];
        if (its->list != all[c->place.self].list || !its->is_member)
            return shmt_fail(c->error, SHMTRAIN_E_USAGE, "worker %u makes another group, and is a member of this one, too",
                             g->rank[i]);
        used |= its->slots;
    }
    while (slot < SHMT_COLL_SLOTS && used >> slot & 1) slot++;
    if (slot == SHMT_COLL_SLOTS)
        return shmt_fail(c->error, SHMTRAIN_E_USAGE, "a worker would be a member of more than %d groups: destroy some",
                         SHMTRAIN_COLLECTIVE_GROUPS);
    c->slots |= 1u << slot;
    attach(c, g, slot);
    return 0;
}

/* acquire: pairs with shmt_gate_set; nobody writes them now */
static void count_on(struct shmtrain_group *g) {
    for (uint32_t i = 0; i < g->n && g->of->place.n > 1; i++) /* no other word of a member is ahead of its clock */
        g->tick = shmt_max_u64(g->tick, load_acquire(&g->gates.gate[g->rank[i]].clock));
}

static int settle(struct shmt_coll *c, struct shmtrain_group *g) {
    const struct claim mine = {.list = list_of(g), .slots = c->slots, .is_member = g->me != NOT_IN};
    struct claim *all = shmt_own_calloc(shmt_max_u64(1, c->place.n), sizeof *all);
    if (!all) return shmt_no_memory(c->error, "for a group of %u members", g->n);
    int rc = exchange(c, &mine, all);
    if (rc == 0 && g->me != NOT_IN) rc = choose_slot(c, g, all);
    shmt_own_free(all);
    if (rc == 0 && g->me != NOT_IN) count_on(g);
    return rc < 0 ? rc : meet(c);
}

int shmt_coll_group_join(struct shmt_coll *c, const uint32_t *rank, uint32_t n, struct shmtrain_group **out) {
    struct shmtrain_group *g;
    int rc = c->error->status < 0 ? c->error->status : check_list(c, rank, n);
    if (rc == 0) rc = shmt_coll_group_make(c, rank, n, &g);
    if (rc < 0) return rc;
    rc = settle(c, g);
    if (rc < 0) {
        forget(c, g);
        return rc;
    }
    *out = g;
    return 0;
}

int shmt_coll_group_of_colour(struct shmt_coll *c, uint32_t colour, struct shmtrain_group **out) {
    uint32_t rank[SHMTRAIN_COLLECTIVE_WORKERS], n = 0;
    const struct claim mine = {.colour = colour};
    if (c->error->status < 0) return c->error->status;
    struct claim *all = shmt_own_calloc(c->place.n, sizeof *all);
    if (!all) return shmt_no_memory(c->error, "for a group");
    const int rc = exchange(c, &mine, all);
    for (uint32_t i = 0; i < c->place.n && colour != UINT32_MAX; i++)
        if (all[i].colour == colour) rank[n++] = i;
    shmt_own_free(all);
    return rc < 0 ? rc : shmt_coll_group_join(c, rank, n, out);
}

/* ---- the end ---- */

/* Nobody reads my staging memory for the group any more. */
static int free_halves(struct shmt_coll *c, const struct shmtrain_group *g) {
    int rc = 0;
    for (uint64_t turn = 0; turn < 2; turn++) {
        while (rc == 0 && c->half[turn].group == g && !shmt_coll_half_is_free(c, turn)) rc = shmt_coll_block(c, false);
        if (c->half[turn].group == g) c->half[turn].group = NULL;
    }
    return rc;
}

int shmt_coll_group_leave(struct shmt_coll *c, struct shmtrain_group *g) {
    if (c->error->status < 0) return c->error->status;
    if (g == c->all || g->busy > 0)
        return shmt_fail(c->error, SHMTRAIN_E_USAGE, "a group with collectives under way cannot be destroyed");
    const int rc = free_halves(c, g);
    if (g->me != NOT_IN) c->slots &= ~(1u << g->slot);
    forget(c, g);
    return rc;
}

uint32_t shmtrain_group_size(const struct shmtrain_group *group) { return group->n; }
uint32_t shmtrain_group_rank(const struct shmtrain_group *group) { return group->me; }
uint32_t shmtrain_group_member(const struct shmtrain_group *group, uint32_t i) {
    return i < group->n ? group->rank[i] : UINT32_MAX;
}
