/* Collectives of a session: checks what a worker asks for, once, and hands it to coll, in the memory of the store. */
#include "ps/collective.h"

#include <shmtrain/collective.h>

#include "base/checked.h"
#include "base/sized.h"
#include "ps/session.h"

void shmt_collective_plan(struct shmt_spec *spec, bool named, uint64_t lend_bytes) {
    spec->coll = (struct shmt_coll_room){.lend_bytes = shmt_ceil_div(lend_bytes, SHMT_LINE) * SHMT_LINE};
    if (spec->n_seats > 1 && !named) spec->coll.half_bytes = shmt_coll_half_bytes(spec->n_seats);
    if (spec->coll.half_bytes == 0 && spec->n_seats > 1) spec->coll.lend_bytes = 0;
}

/* This session's part in collectives, made by its first call. */
static int open_coll(struct shmtrain_session *s, const char *call) {
    struct shmt_coll_place place = {.room = s->spec->coll, .n = 1};
    if (s->error.status < 0 || shmt_session_check_inside(s, call) < 0) return s->error.status;
    if (s->coll) return 0;
    if (s->spec->n_seats > 1 && s->spec->coll.half_bytes == 0)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE,
                         "%s: this run has no collectives: it trains a model, has a name, or more than %d workers", call,
                         SHMTRAIN_COLLECTIVE_WORKERS);
    if (s->spec->n_seats > 1) s->backend->seat->collective(s->seat, &place);
    if (place.n > 1 &&
        load_acquire(&shmt_coll_presence(place.words, place.self)->present) == 0) /* pairs with shmt_coll_leave */
        return shmt_fail(&s->error, SHMTRAIN_E_DIED,
                         "%s: worker %u has died after it had taken part in collectives: they are closed", call, s->seat->rank);
    return shmt_coll_open(&place, &s->error, &s->coll);
}

/* ---- what is asked for ---- */

static bool is_rooted(uint32_t kind) {
    return kind == SHMTRAIN_BROADCAST || kind == SHMTRAIN_SCATTER || kind == SHMTRAIN_GATHER || kind == SHMTRAIN_REDUCE;
}
static bool is_reduction(uint32_t kind) {
    return kind == SHMTRAIN_REDUCE || kind == SHMTRAIN_ALL_REDUCE || kind == SHMTRAIN_REDUCE_SCATTER;
}

static int refuse(struct shmtrain_session *s, uint32_t kind, const char *what) {
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: %s", shmt_coll_kind_name(kind), what);
}

static int check_how(struct shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how) {
    if (shmt_coll_type_bytes(how->type) == 0) return refuse(s, kind, "there is no such type of elements");
    if (!is_reduction(kind)) return 0;
    if (how->op > SHMTRAIN_OWN) return refuse(s, kind, "there is no such operator");
    return how->op == SHMTRAIN_OWN && !how->combine ? refuse(s, kind, "an own operator needs its function") : 0;
}

/* Which buffers a member needs. */
static bool needs_in(const struct shmt_coll_op *op) {
    const bool root = op->group->me == op->root;
    if (op->kind == SHMTRAIN_BROADCAST || op->kind == SHMTRAIN_SCATTER) return root;
    return op->kind != SHMTRAIN_BARRIER;
}
static bool needs_out(const struct shmt_coll_op *op) {
    const bool root = op->group->me == op->root;
    if (op->kind == SHMTRAIN_BROADCAST) return !root;
    if (op->kind == SHMTRAIN_GATHER || op->kind == SHMTRAIN_REDUCE) return root;
    return op->kind != SHMTRAIN_BARRIER;
}

static int check_buffers(struct shmtrain_session *s, const struct shmt_coll_op *op) {
    uint64_t bytes;
    if (!shmt_mul_u64(op->n, op->each, &bytes) || !shmt_mul_u64(bytes, op->group->n, &bytes) || bytes > INT64_MAX)
        return refuse(s, op->kind, "n is beyond all memory");
    if (op->n == 0) return 0;
    if ((needs_in(op) && !op->in) || (needs_out(op) && !op->out)) return refuse(s, op->kind, "a buffer is missing");
    if ((needs_in(op) && (uintptr_t)op->in % op->each) || (op->out && (uintptr_t)op->out % op->each))
        return refuse(s, op->kind, "a buffer is not aligned to its elements");
    return 0;
}

/* Whoever leaves the group out may mean the workers of all hosts. */
static int check_hosts(struct shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how) {
    if (how->group || !shmt_spec_is_linked(s->spec)) return 0;
    return shmt_fail(
        &s->error, SHMTRAIN_E_USAGE,
        "%s: the run has %u hosts, and collectives are among the workers of one: push what all hosts are to add up, or "
        "name a group, whose ranks are this host's (shmtrain_group_of_range)",
        shmt_coll_kind_name(kind), s->spec->hosts.n);
}

static int ask(struct shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how, uint32_t root, const void *in,
               void *out, uint64_t n, uint64_t *ticket_out) {
    static const struct shmtrain_collective USUAL = {.size = sizeof USUAL};
    struct shmtrain_collective room;
    const char *const name = shmt_coll_kind_name(kind);
    if (open_coll(s, name) < 0) return s->error.status;
    if (kind > SHMTRAIN_ALL_TO_ALL) return refuse(s, kind, "there is no such kind");
    if (!how) how = &USUAL;
    if (how->size != sizeof *how &&
        shmt_sized_take(&room, sizeof room, how, SHMT_FIRST_SIZE(struct shmtrain_collective, combine_arg), name, &s->error) < 0)
        return s->error.status;
    if (how->size != sizeof *how) how = &room;
    if (check_hosts(s, kind, how) < 0) return s->error.status;
    struct shmtrain_group *const group = how->group ? how->group : s->coll->all;
    if (group->of != s->coll || group->me == UINT32_MAX) return refuse(s, kind, "this worker is no member of the group");
    if (is_rooted(kind) && root >= group->n) return refuse(s, kind, "there is no such root in the group");
    if (check_how(s, kind, how) < 0) return s->error.status;
    const struct shmt_coll_op op = {
        .kind = kind,
        .algorithm = how->algorithm,
        .fold = {.type = how->type, .op = how->op, .combine = how->combine, .arg = how->combine_arg},
        .group = group,
        .root = is_rooted(kind) ? root : 0,
        .each = shmt_coll_type_bytes(how->type),
        .in = in,
        .out = out,
        .n = n};
    if (check_buffers(s, &op) < 0) return s->error.status;
    return shmt_coll_start(s->coll, &op, ticket_out);
}

/* ---- started ---- */

int shmtrain_collective_start(shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how, uint32_t root,
                              const void *in, void *out, uint64_t n, uint64_t *ticket_out) {
    uint64_t ticket = 0;
    int rc = ask(s, kind, how, root, in, out, n, &ticket);
    if (rc == 0) rc = shmt_coll_test(s->coll, ticket);
    if (rc < 0) return rc;
    if (ticket_out) *ticket_out = ticket;
    return 0;
}

static int check_ticket(struct shmtrain_session *s, const char *call, uint64_t ticket) {
    if (s->error.status < 0) return s->error.status;
    if (s->coll && ticket >= 1 && ticket <= s->coll->started) return 0;
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: no collective was started with ticket %llu", call,
                     (unsigned long long)ticket);
}

int shmtrain_collective_test(shmtrain_session *s, uint64_t ticket) {
    const int rc = check_ticket(s, "shmtrain_collective_test", ticket);
    return rc < 0 ? rc : shmt_coll_test(s->coll, ticket);
}

int shmtrain_collective_wait(shmtrain_session *s, uint64_t ticket) {
    const int rc = check_ticket(s, "shmtrain_collective_wait", ticket);
    return rc < 0 ? rc : shmt_coll_wait_for(s->coll, ticket);
}

/* ---- blocking ---- */

static int run(struct shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how, uint32_t root, const void *in,
               void *out, uint64_t n) {
    uint64_t ticket = 0;
    const int rc = ask(s, kind, how, root, in, out, n, &ticket);
    return rc < 0 ? rc : shmt_coll_wait_for(s->coll, ticket);
}

int shmtrain_barrier(shmtrain_session *s, struct shmtrain_group *group) {
    const struct shmtrain_collective how = {.size = sizeof how, .group = group};
    return run(s, SHMTRAIN_BARRIER, &how, 0, NULL, NULL, 0);
}

#define ROOTED(name, kind)                                                                                         \
    int name(shmtrain_session *s, const struct shmtrain_collective *how, uint32_t root, const void *in, void *out, \
             uint64_t n) {                                                                                         \
        return run(s, kind, how, root, in, out, n);                                                                \
    }
#define UNROOTED(name, kind)                                                                                      \
    int name(shmtrain_session *s, const struct shmtrain_collective *how, const void *in, void *out, uint64_t n) { \
        return run(s, kind, how, 0, in, out, n);                                                                  \
    }

ROOTED(shmtrain_broadcast, SHMTRAIN_BROADCAST)
ROOTED(shmtrain_scatter, SHMTRAIN_SCATTER)
ROOTED(shmtrain_gather, SHMTRAIN_GATHER)
ROOTED(shmtrain_reduce, SHMTRAIN_REDUCE)
UNROOTED(shmtrain_all_gather, SHMTRAIN_ALL_GATHER)
UNROOTED(shmtrain_all_reduce, SHMTRAIN_ALL_REDUCE)
UNROOTED(shmtrain_reduce_scatter, SHMTRAIN_REDUCE_SCATTER)
UNROOTED(shmtrain_all_to_all, SHMTRAIN_ALL_TO_ALL)

int shmtrain_collective_lend(shmtrain_session *s, uint64_t bytes, void **out) {
    const int rc = open_coll(s, "shmtrain_collective_lend");
    return rc < 0 ? rc : shmt_coll_lend(s->coll, bytes, out);
}

/* ---- groups ---- */

int shmtrain_group_of_list(shmtrain_session *s, const uint32_t *rank, uint32_t n, struct shmtrain_group **out) {
    const int rc = open_coll(s, "shmtrain_group_of_list");
    return rc < 0 ? rc : shmt_coll_group_join(s->coll, rank, n, out);
}

int shmtrain_group_of_range(shmtrain_session *s, uint32_t first, uint32_t end, uint32_t step, struct shmtrain_group **out) {
    uint32_t rank[SHMTRAIN_COLLECTIVE_WORKERS], n = 0;
    if (open_coll(s, "shmtrain_group_of_range") < 0) return s->error.status;
    if (step == 0 || end > s->coll->place.n)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE,
                         "shmtrain_group_of_range: ranks %u to %u in steps of %u: the run has %u workers", first, end, step,
                         s->coll->place.n);
    for (uint64_t i = first; i < end; i += step) rank[n++] = (uint32_t)i;
    return shmt_coll_group_join(s->coll, rank, n, out);
}

int shmtrain_group_of_colour(shmtrain_session *s, uint32_t colour, struct shmtrain_group **out) {
    const int rc = open_coll(s, "shmtrain_group_of_colour");
    return rc < 0 ? rc : shmt_coll_group_of_colour(s->coll, colour, out);
}

static bool is_in(const struct shmtrain_group *g, uint32_t rank) {
    for (uint32_t i = 0; i < g->n; i++)
        if (g->rank[i] == rank) return true;
    return false;
}

/* Of a those that are in b, or are not (`wanted`); and, if asked for, those of b that are not in a. */
static int join_sets(struct shmtrain_session *s, const char *call, const struct shmtrain_group *a,
                     const struct shmtrain_group *b, int of_a_in_b, int of_a_outside, int of_b_outside,
                     struct shmtrain_group **out) {
    uint32_t rank[SHMTRAIN_COLLECTIVE_WORKERS], n = 0;
    if (open_coll(s, call) < 0) return s->error.status;
    if (a->of != s->coll || b->of != s->coll)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: a group of another session", call);
    for (uint32_t i = 0; i < a->n; i++)
        if (is_in(b, a->rank[i]) ? of_a_in_b : of_a_outside) rank[n++] = a->rank[i];
    for (uint32_t i = 0; i < b->n && of_b_outside; i++)
        if (!is_in(a, b->rank[i])) rank[n++] = b->rank[i];
    return shmt_coll_group_join(s->coll, rank, n, out);
}

int shmtrain_group_union(shmtrain_session *s, const struct shmtrain_group *a, const struct shmtrain_group *b,
                         struct shmtrain_group **out) {
    return join_sets(s, "shmtrain_group_union", a, b, 1, 1, 1, out);
}
int shmtrain_group_intersection(shmtrain_session *s, const struct shmtrain_group *a, const struct shmtrain_group *b,
                                struct shmtrain_group **out) {
    return join_sets(s, "shmtrain_group_intersection", a, b, 1, 0, 0, out);
}
int shmtrain_group_difference(shmtrain_session *s, const struct shmtrain_group *a, const struct shmtrain_group *b,
                              struct shmtrain_group **out) {
    return join_sets(s, "shmtrain_group_difference", a, b, 0, 1, 0, out);
}

int shmtrain_group_destroy(shmtrain_session *s, struct shmtrain_group *group) {
    if (!group) return 0;
    if (open_coll(s, "shmtrain_group_destroy") < 0) return s->error.status;
    if (group->of != s->coll)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "shmtrain_group_destroy: a group of another session");
    return shmt_coll_group_leave(s->coll, group);
}
