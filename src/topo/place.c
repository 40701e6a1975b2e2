/* Which worker goes where, and binding it there: see topo.h. */
#include <stdlib.h>

#include "topo/topo_priv.h"

void shmt_topo_plan(const struct shmt_topo *topo, uint32_t n, struct shmt_place *out) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = topo->seats[i % topo->cpus].place;
        out[i].shared = i >= topo->cpus || n - i > topo->cpus;
    }
}

/* ---- groups ---- */

/* A plan of groups in the making. */
struct plan {
    const struct shmt_topo *topo;
    uint32_t *taken; /* (cpus) how many threads a seat has */
    uint32_t round;  /* a seat with more threads than this is taken */
};

static int is_free(const struct plan *p, uint32_t seat) { return p->taken[seat] <= p->round; }

/* Free seats on the node of `seat`, `seat` and those behind it. */
static uint32_t free_beside(const struct plan *p, uint32_t seat) {
    const uint32_t node = p->topo->seats[seat].place.node;
    uint32_t n = 0;
    for (uint32_t i = seat; i < p->topo->cpus; i++) n += is_free(p, i) && p->topo->seats[i].place.node == node;
    return n;
}

/* The first free seat, of the node `node` only where `only` is set; cpus: there is none. */
static uint32_t first_free(const struct plan *p, int only, uint32_t node) {
    uint32_t i = 0;
    while (i < p->topo->cpus && !(is_free(p, i) && (!only || p->topo->seats[i].place.node == node))) i++;
    return i;
}

/* Where a group begins: the first free seat of a node that has room for all of it, else the first free seat. */
static uint32_t begin_group(struct plan *p, uint32_t each) {
    uint32_t seat = first_free(p, 0, 0);
    if (seat == p->topo->cpus) { /* from the start again */
        p->round++;
        seat = 0;
    }
    for (uint32_t i = seat; i < p->topo->cpus; i++)
        if (is_free(p, i) && free_beside(p, i) >= each) return i;
    return seat;
}

static uint32_t next_of_group(struct plan *p, uint32_t node) {
    uint32_t seat = first_free(p, 1, node);
    if (seat == p->topo->cpus) seat = first_free(p, 0, 0);
    if (seat < p->topo->cpus) return seat;
    p->round++;
    return first_free(p, 1, node);
}

int shmt_topo_plan_groups(const struct shmt_topo *topo, uint32_t n, uint32_t each, struct shmt_place *out,
                          struct shmt_error *e) {
    if (each <= 1) {
        shmt_topo_plan(topo, n, out);
        return 0;
    }
    struct plan p = {.topo = topo, .taken = calloc(topo->cpus, sizeof *p.taken)};
    uint32_t *seat_of = calloc((size_t)n * each + 1, sizeof *seat_of);
    if (!p.taken || !seat_of) {
        free(p.taken);
        free(seat_of);
        return shmt_no_memory(e, "for a plan of %u workers of %u threads", n, each);
    }
    for (uint32_t i = 0; i < n * each; i++) {
        const uint32_t seat = i % each == 0 ? begin_group(&p, each) : next_of_group(&p, out[i - 1].node);
        p.taken[seat]++;
        seat_of[i] = seat;
        out[i] = topo->seats[seat].place;
    }
    for (uint32_t i = 0; i < n * each; i++) out[i].shared = p.taken[seat_of[i]] > 1;
    free(p.taken);
    free(seat_of);
    return 0;
}

/* ---- binding ---- */

static int bind_thread(const struct shmt_topo *topo, hwloc_const_bitmap_t set, const char *what, uint32_t number,
                       struct shmt_error *e) {
    if (hwloc_set_cpubind(topo->hwloc, set, HWLOC_CPUBIND_THREAD) == 0) return 0;
    return shmt_fail_errno(e, "cannot bind a worker to %s %u, so it runs unbound", what, number);
}

static hwloc_bitmap_t empty_set(struct shmt_error *e) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) shmt_no_memory(e, "for binding a worker");
    return set;
}

int shmt_topo_bind_group(const struct shmt_topo *topo, const struct shmt_place *place, uint32_t n, struct shmt_error *e) {
    hwloc_bitmap_t set = empty_set(e);
    if (!set) return SHMTRAIN_E_MEMORY;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        if (hwloc_bitmap_set(set, place[i].cpu) != 0) rc = shmt_no_memory(e, "for binding a worker");
    if (rc == 0) rc = bind_thread(topo, set, "processor", place->cpu, e);
    hwloc_bitmap_free(set);
    return rc;
}

int shmt_topo_may_bind(const struct shmt_topo *topo, struct shmt_error *e) {
    hwloc_bitmap_t set = empty_set(e);
    if (!set) return SHMTRAIN_E_MEMORY;
    int rc = 0;
    if (hwloc_get_cpubind(topo->hwloc, set, HWLOC_CPUBIND_THREAD) != 0 ||
        hwloc_set_cpubind(topo->hwloc, set, HWLOC_CPUBIND_THREAD) != 0)
        rc = shmt_fail_errno(e, "workers run unbound, because the system refuses to bind threads to processors");
    hwloc_bitmap_free(set);
    return rc;
}

int shmt_topo_bind_node(const struct shmt_topo *topo, const struct shmt_place *place, struct shmt_error *e) {
    hwloc_bitmap_t set = empty_set(e);
    if (!set) return SHMTRAIN_E_MEMORY;
    int rc = 0;
    for (uint32_t i = 0; i < topo->cpus && rc == 0; i++) {
        if (topo->seats[i].place.node != place->node) continue;
        if (hwloc_bitmap_set(set, topo->seats[i].place.cpu) != 0) rc = shmt_no_memory(e, "for binding a worker");
    }
    if (rc == 0) rc = bind_thread(topo, set, "the processors of node", place->node, e);
    hwloc_bitmap_free(set);
    return rc;
}
