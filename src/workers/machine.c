/* Deciding what a run does with the machine: see machine.h. */
#include "workers/machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- threads ---- */

/* With more threads than processors the system's scheduler knows better, but not where their memory lies. */
static enum shmt_bound_to binding_of(const struct shmt_config *c, const struct shmt_topo *topo, uint64_t n_threads,
                                     const struct shmt_log *log) {
    struct shmt_error e = {0};
    enum shmt_bound_to bind = SHMT_BIND_NONE;
    if (c->bind == SHMT_BINDING_NONE) return bind;
    if (c->bind == SHMT_BINDING_NODE || n_threads > shmt_topo_cores(topo))
        bind = shmt_topo_all_nodes(topo) > 1 || c->bind == SHMT_BINDING_NODE ? SHMT_BIND_NODE : SHMT_BIND_NONE;
    else
        bind = SHMT_BIND_CORE;
    if (bind == SHMT_BIND_NONE || shmt_topo_may_bind(topo, &e) == 0) return bind;
    shmt_log(log, "%s", e.text);
    return SHMT_BIND_NONE;
}

void shmt_machine_bind(const struct shmt_machine *machine, uint32_t seat) {
    const struct shmt_place *place = &machine->place[seat * machine->threads_per_seat];
    struct shmt_error e = {0}; /* refused though it was allowed a moment ago: it runs all the same */
    if (machine->bind == SHMT_BIND_CORE) (void)shmt_topo_bind_group(machine->topo, place, machine->threads_per_seat, &e);
    if (machine->bind == SHMT_BIND_NODE) (void)shmt_topo_bind_node(machine->topo, place, &e);
}

void shmt_machine_share_cache(const struct shmt_machine *machine, uint32_t level, struct shmt_cache_share *out) {
    shmt_topo_share_cache(machine->topo, level, machine->place, machine->n_workers, machine->n_threads, machine->bind, out);
}

/* ---- memory ---- */

static int has_place(const struct shmt_machine *m, uint32_t node) {
    for (uint32_t i = 0; i < m->n_workers * m->n_threads; i++)
        if (m->place[i].node == node) return 1;
    return 0;
}

/* The nodes that workers are on and memory may be taken of, in the machine's order; where these are none (a cpuset may give
 * processors of one node and memory of another), any that memory may be taken of. */
static void find_nodes(struct shmt_machine *m) {
    struct shmt_placement *p = &m->placement;
    for (int any = 0; any <= 1 && p->n_nodes == 0; any++) {
        for (uint32_t i = 0; i < shmt_topo_all_nodes(m->topo) && p->n_nodes < SHMT_MAX_NODES; i++) {
            struct shmt_node node;
            shmt_topo_node(m->topo, i, &node);
            if (node.usable && (any || has_place(m, node.node))) p->node[p->n_nodes++] = node.node;
        }
    }
}

/* Seats whose own node has no memory for them count as the first node's. */
static void seat_nodes(struct shmt_machine *m, uint32_t n_seats) {
    struct shmt_placement *p = &m->placement;
    for (uint32_t seat = 0; seat < n_seats; seat++)
        for (uint32_t i = 0; i < p->n_nodes; i++)
            if (p->node[i] == m->place[seat * m->threads_per_seat].node) p->seat_node[seat] = (uint8_t)i;
}

/* auto: what all use is spread over all nodes, what one uses is its own. On a machine of several nodes of which one is used,
 * everything belongs on that one, whichever node the application happens to be on. */
static void policy_of_config(const struct shmt_config *c, struct shmt_machine *m) {
    struct shmt_placement *p = &m->placement;
    struct shmt_error e = {0};
    const int wanted = c->numa != SHMT_NUMA_OFF && p->n_nodes > 0 && shmt_topo_all_nodes(m->topo) > 1;
    const int refused = wanted && shmt_topo_may_place(m->topo, p->node, p->n_nodes, &e) != 0;
    if (refused) shmt_log(m->log, "%s", e.text);
    p->policy = SHMT_PLACE_OFF;
    if (!wanted || refused) {
        p->n_nodes = 1; /* nothing is told apart */
        memset(p->seat_node, 0, sizeof p->seat_node);
        return;
    }
    p->policy = p->n_nodes == 1 || c->numa == SHMT_NUMA_BIND ? SHMT_PLACE_BIND : SHMT_PLACE_INTERLEAVE;
    /* Threads that wander are nowhere at home. */
    p->private_local = c->numa != SHMT_NUMA_INTERLEAVE && m->bind != SHMT_BIND_NONE;
}

int shmt_machine_make(const struct shmt_config *config, const struct shmt_topo *topo, uint32_t n_workers, uint32_t n_guests,
                      uint32_t n_threads, uint32_t n_seats, const struct shmt_log *log, struct shmt_machine *out,
                      struct shmt_error *e) {
    const uint32_t n_all = n_workers + n_guests;
    struct shmt_machine m = {.topo = topo,
                             .n_workers = n_workers,
                             .n_threads = n_threads,
                             .threads_per_seat = n_all * n_threads / n_seats,
                             .hugepages = config->hugepages,
                             .log = log};
    m.place = calloc((size_t)n_all * n_threads, sizeof *m.place);
    if (!m.place) return shmt_no_memory(e, "for the places of %u workers", n_all);
    const int rc = shmt_topo_plan_groups(topo, n_all, n_threads, m.place, e);
    if (rc < 0) {
        shmt_machine_free(&m);
        return rc;
    }
    m.bind = binding_of(config, topo, (uint64_t)n_workers * n_threads, log);
    find_nodes(&m);
    seat_nodes(&m, n_seats);
    policy_of_config(config, &m);
    m.placement.strategy = (enum shmt_strategy)config->placement;
    m.placement.parts = config->shards ? (uint32_t)config->shards : m.placement.n_nodes;
    m.placement.page_bytes = shmt_pages_bytes(SHMT_PAGES_ORDINARY);
    *out = m;
    return 0;
}

void shmt_machine_free(struct shmt_machine *machine) {
    free(machine->place);
    *machine = (struct shmt_machine){0};
}

enum shmt_pages shmt_machine_pages(struct shmt_machine *machine, uint64_t bytes, const char *what) {
    const struct shmt_placement *p = &machine->placement;
    const uint32_t n_nodes = p->policy == SHMT_PLACE_OFF ? 0 : p->n_nodes;
    uint64_t with_given;
    if (!shmt_add_u64(bytes, machine->huge_bytes, &with_given)) with_given = bytes;
    /* One line says that there are too few of them, whatever they are wanted for. */
    const struct shmt_log *log = machine->lacks_huge ? NULL : machine->log;
    const enum shmt_pages pages = shmt_pages_choose(machine->hugepages, machine->topo, with_given, p->node, n_nodes, what, log);
    if (pages == SHMT_PAGES_2M)
        machine->huge_bytes = with_given;
    else
        machine->lacks_huge = 1;
    return pages;
}

/* What replicas hold of the parameters is mapped in ordinary pages, which reserved huge ones are not made of. */
static enum shmt_pages store_pages(struct shmt_machine *machine, const struct shmt_spec *spec, uint64_t bytes) {
    if (spec->hot_floats > 0) return shmt_pages_unreserved(machine->hugepages, machine->topo, bytes);
    return shmt_machine_pages(machine, bytes, "store");
}

int shmt_machine_settle(struct shmt_machine *machine, const struct shmt_backend *backend, struct shmt_spec *spec,
                        struct shmt_error *e) {
    struct shmt_need need = {0}, huge = {0};
    spec->placement = machine->placement;
    if (!(backend->caps & SHMT_CAP_MANY)) { /* ordinary memory of this process */
        spec->placement.policy = SHMT_PLACE_OFF;
        return 0;
    }
    int rc = backend->plan(spec, &need, e);
    /* Each part of the segment begins at a whole page, so huge ones make it larger: that size has to fit. */
    spec->placement.page_bytes = (uint32_t)SHMT_HUGE_BYTES;
    spec->placement.transparent = spec->hot_floats > 0;
    if (rc == 0) rc = backend->plan(spec, &huge, e);
    if (rc < 0) return rc;
    const int wasteful = huge.total_bytes - need.total_bytes > need.total_bytes / 4;
    const enum shmt_pages pages =
        wasteful && strcmp(machine->hugepages, "2M") != 0 ? SHMT_PAGES_ORDINARY : store_pages(machine, spec, huge.total_bytes);
    spec->placement.page_bytes = pages == SHMT_PAGES_ORDINARY ? shmt_pages_bytes(pages) : (uint32_t)SHMT_HUGE_BYTES;
    spec->placement.transparent = pages == SHMT_PAGES_TRANSPARENT;
    return 0;
}

/* ---- names ---- */

const char *shmt_machine_numa_name(const struct shmt_placement *placement) {
    static const char *const NAME[] = {
        [SHMT_PLACE_OFF] = "off", [SHMT_PLACE_INTERLEAVE] = "interleave", [SHMT_PLACE_BIND] = "bind"};
    return NAME[placement->policy];
}

const char *shmt_machine_bind_name(enum shmt_bound_to bind) {
    static const char *const NAME[] = {[SHMT_BIND_NONE] = "none", [SHMT_BIND_NODE] = "node", [SHMT_BIND_CORE] = "core"};
    return NAME[bind];
}
