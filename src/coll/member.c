/* One worker's view of collectives: opening it, waiting for members, staging memory. See member.h.
 *
 * Order in memory: what a member lays out (staging memory, notes) stands before it sets its clock, and what it has read before it sets
 * `read`; both pair with the acquire in shmt_coll_reached. So whoever has seen a clock may read, and whoever has seen that all have read
 * may write again. */
#include "coll/member.h"

#include <string.h>

#include "base/checked.h"
#include "base/own.h"
#include "base/point.h"

int shmt_coll_open(const struct shmt_coll_place *place, struct shmt_error *e, struct shmt_coll **out) {
    uint32_t rank[SHMTRAIN_COLLECTIVE_WORKERS];
    struct shmt_coll *c = shmt_own_calloc(1, sizeof *c);
    if (!c) return shmt_no_memory(e, "for collectives");
    c->place = *place;
    c->error = e;
    if (place->n == 1) c->place.room.half_bytes = 0;
    for (uint32_t i = 0; i < place->n; i++) rank[i] = i;
    const int rc = shmt_coll_group_make(c, rank, place->n, &c->all);
    if (rc < 0) {
        shmt_coll_close(c);
        return rc;
    }
    c->slots = 1;
    *out = c;
    return 0;
}

void shmt_coll_close(struct shmt_coll *c) {
    if (!c) return;
    for (struct shmtrain_group *g = c->groups, *next; g; g = next) {
        next = g->next;
        shmt_own_free(g);
    }
    for (uint64_t i = c->done; i < c->started; i++) {
        struct shmt_coll_op *op = &c->op[i % SHMTRAIN_COLLECTIVE_STARTED];
        if (op->owns_work) shmt_own_free(op->work);
    }
    shmt_own_free(c->own);
    shmt_own_free(c);
}

bool shmt_coll_reached(struct shmt_coll *c, struct shmtrain_group *g, enum shmt_gate_word word, uint32_t i, uint64_t target) {
    if (i == g->me || g->seen[word][i] >= target) return true;
    g->seen[word][i] = load_acquire(shmt_gate_word(&g->gates.gate[g->rank[i]], word)); /* pairs with shmt_gate_set */
    if (g->seen[word][i] >= target) return true;
    c->wait = (struct shmt_coll_wait){.group = g, .word = word, .i = i, .target = target};
    return false;
}

/* Downwards from me, as in sync/gate.c: workers are started upwards. */
bool shmt_coll_all_reached(struct shmt_coll *c, struct shmtrain_group *g, enum shmt_gate_word word, uint64_t target) {
    for (uint32_t k = 1, i = g->me; k < g->n; k++) {
        i = (i > 0 ? i : g->n) - 1;
        if (!shmt_coll_reached(c, g, word, i, target)) return false;
    }
    return true;
}

bool shmt_coll_comes_at_once(const struct shmt_coll *c) {
    const struct shmt_coll_wait *w = &c->wait;
    return shmt_gate_comes_at_once(&w->group->gates, w->word, w->target, w->group->rank[w->i]);
}

int shmt_coll_block(struct shmt_coll *c, bool look) {
    struct shmtrain_group *g = c->wait.group;
    const uint32_t rank = g->rank[c->wait.i];
    if (!look && shmt_gates_wait_for(&g->gates, c->wait.word, c->wait.target, rank))
        return shmt_fail(c->error, SHMTRAIN_E_STOPPED, "the run was stopped");
    /* acquire: what it had laid out before it left; pairs with the release in shmt_coll_leave */
    if (load_acquire(&shmt_coll_presence(c->place.words, rank)->present)) return 0;
    if (shmt_coll_reached(c, g, c->wait.word, c->wait.i, c->wait.target)) return 0;
    return shmt_fail(c->error, SHMTRAIN_E_DIED,
                     "worker %u has died, or has left its worker function, and is waited for in a collective", rank);
}

/* ---- staging memory ---- */

/* All have been seen to have begun an operation behind that in which it was laid out, and so have ended that one. */
static bool is_long_ago(const struct shmt_coll_half *half) {
    const struct shmtrain_group *g = half->group;
    uint32_t i = 0;
    while (i < g->n && (i == g->me || g->seen[SHMT_GATE_CLOCK][i] > half->end)) i++;
    return i == g->n;
}

bool shmt_coll_half_is_free(struct shmt_coll *c, uint64_t turn) {
    const struct shmt_coll_half *half = &c->half[turn & 1];
    if (!half->group || is_long_ago(half)) return true;
    if (half->reader != SHMT_COLL_ALL) return shmt_coll_reached(c, half->group, SHMT_GATE_READ, half->reader, half->target);
    return shmt_coll_all_reached(c, half->group, SHMT_GATE_READ, half->target);
}

void shmt_coll_half_take(struct shmt_coll *c, struct shmtrain_group *g, uint64_t turn, uint32_t reader, uint64_t target,
                         uint64_t end) {
    c->half[turn & 1] = (struct shmt_coll_half){.group = g, .reader = reader, .target = target, .end = end};
}

unsigned char *shmt_coll_half_of(const struct shmt_coll *c, uint32_t rank, uint64_t turn) {
    return c->place.exchange + rank * c->place.exchange_stride + (turn & 1) * c->place.room.half_bytes;
}

/* ---- my words ---- */

static void set(struct shmt_coll_op *op, enum shmt_gate_word word, uint64_t ticks) {
    op->group->owes = true;
    shmt_gate_set(&op->group->gates, word, op->base + ticks);
}

void shmt_coll_lay(struct shmt_coll_op *op, uint64_t ticks) {
    SHMT_POINT("coll:lay");
    op->laid = ticks;
    set(op, SHMT_GATE_CLOCK, ticks);
    SHMT_POINT("coll:laid");
}

void shmt_coll_note_read(struct shmt_coll_op *op, uint64_t ticks) {
    SHMT_POINT("coll:read");
    op->read = ticks;
    set(op, SHMT_GATE_READ, ticks);
    SHMT_POINT("coll:noted");
}

void shmt_coll_note_reduced(struct shmt_coll_op *op) {
    SHMT_POINT("coll:reduced");
    op->read = 1;
    set(op, SHMT_GATE_PHASE, 1);
}

void shmt_coll_call(struct shmt_coll_op *op) {
    if (!op->group->owes) return;
    op->group->owes = false;
    shmt_gate_call(&op->group->gates);
}

struct shmt_coll_note *shmt_coll_note_of(const struct shmt_coll_op *op, uint32_t i) {
    struct shmt_gate *gate = &op->group->gates.gate[op->group->rank[i]];
    return (struct shmt_coll_note *)(void *)gate->beside + op->parity;
}

int shmt_coll_check(struct shmt_coll *c, const struct shmt_coll_op *op, uint32_t i) {
    if (i == op->group->me || shmt_coll_note_of(op, i)->sign == op->sign) return 0;
    return shmt_fail(c->error, SHMTRAIN_E_USAGE,
                     "%s: worker %u makes another call: kind, algorithm, type, operator, root, size, or a buffer that is lent",
                     shmt_coll_kind_name(op->kind), op->group->rank[i]);
}

/* ---- what is lent ---- */

static unsigned char *lent_of(const struct shmt_coll *c, uint32_t rank) {
    if (c->own) return c->own;
    return c->place.exchange + rank * c->place.exchange_stride + UINT64_C(2) * c->place.room.half_bytes;
}

unsigned char *shmt_coll_lent_of(struct shmt_coll *c, const struct shmt_coll_op *op, uint32_t i, uint64_t at, uint64_t bytes) {
    const uint64_t room = c->place.room.lend_bytes, off = at - 1;
    if (at > 0 && off <= room && bytes <= room - off && off % op->each == 0) return lent_of(c, op->group->rank[i]) + off;
    shmt_fail(c->error, SHMTRAIN_E_USAGE, "%s: the store is damaged: worker %u lends what it does not have",
              shmt_coll_kind_name(op->kind), op->group->rank[i]);
    return NULL;
}

uint64_t shmt_coll_lent_at(const struct shmt_coll *c, const void *at, uint64_t bytes) {
    const uintptr_t first = (uintptr_t)lent_of(c, c->place.self), here = (uintptr_t)at;
    if (!at || c->place.n == 1 || here < first || here - first > c->lent_bytes || bytes > c->lent_bytes - (here - first))
        return 0;
    return 1 + (here - first);
}

int shmt_coll_lend(struct shmt_coll *c, uint64_t bytes, void **out) {
    uint64_t whole;
    if (!shmt_round_up_u64(bytes, SHMT_LINE, &whole) || whole > c->place.room.lend_bytes - c->lent_bytes)
        return shmt_fail(c->error, SHMTRAIN_E_MEMORY,
                         "shmtrain_collective_lend: %llu bytes are wanted, and %llu are left: shmtrain_store_lend plans more",
                         (unsigned long long)bytes, (unsigned long long)(c->place.room.lend_bytes - c->lent_bytes));
    if (c->place.n == 1 && !c->own) { /* nobody else reads it */
        const uint64_t all = shmt_ceil_div(c->place.room.lend_bytes, SHMT_LINE) * SHMT_LINE;
        c->own = shmt_own_calloc(1, all + SHMT_LINE);
        if (!c->own) return shmt_no_memory(c->error, "to lend %llu bytes", (unsigned long long)all);
    }
    *out = lent_of(c, c->place.self) + c->lent_bytes;
    c->lent_bytes += whole;
    return 0;
}
