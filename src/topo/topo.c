/* The machine by hwloc: see topo.h. Plans and binding of threads are place.c's matter, nodes node.c's, their memory memory.c's.
 *
 * Everything that a plan needs is worked out once, at open: an array of the usable processors in the order in which workers
 * take them. The hwloc topology stays open for binding and for cache sizes only. */
#include "topo/topo.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "topo/cgroup.h"
#include "topo/topo_priv.h"

/* hwloc's default filters: no devices, but all of the tree's levels, because NUMA nodes hang on them and vanish with them;
 * also what a cpuset forbids, so that a plan can show the whole machine. Nothing that needs binding threads to look around,
 * which would disturb an application's threads; and where hwloc knows how (2.8), without the tables that nobody reads here. */
static int load(hwloc_topology_t hwloc) {
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020800
    flags |= HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES;
#endif
    if (hwloc_topology_set_flags(hwloc, flags) != 0) return -1;
    return hwloc_topology_load(hwloc);
}

/* The processors that the caller may use. hwloc tells what the cpuset allows; the affinity mask comes on top (for a
 * machine that is not this one hwloc answers with all of it). */
static hwloc_bitmap_t usable_set(hwloc_topology_t hwloc) {
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    hwloc_const_bitmap_t all = hwloc_topology_get_allowed_cpuset(hwloc);
    if (!mask) return NULL;
    if (hwloc_get_cpubind(hwloc, mask, HWLOC_CPUBIND_THREAD) != 0) hwloc_bitmap_fill(mask);
    hwloc_bitmap_and(mask, mask, all);
    if (hwloc_bitmap_iszero(mask)) hwloc_bitmap_copy(mask, all); /* processors that went away since: better unbound than none */
    return mask;
}

/* The NUMA node that a processor is local to. Where there are several kinds of memory, hwloc lists ordinary memory first. */
static hwloc_obj_t node_of(hwloc_topology_t hwloc, hwloc_obj_t pu) {
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node))) {
        if (hwloc_bitmap_isincluded(pu->cpuset, node->cpuset)) return node;
    }
    return NULL;
}

/* Who sits where: place, and the numbers of node and core. Machines without core objects have one core per processor. */
static void fill_seat(hwloc_topology_t hwloc, hwloc_obj_t pu, struct shmt_topo_seat *seat) {
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, pu);
    hwloc_obj_t node = node_of(hwloc, pu);
    seat->place.cpu = pu->os_index;
    seat->place.core = core ? core->logical_index : pu->logical_index;
    seat->place.node = node ? node->os_index : 0;
    seat->place.shared = 0;
    seat->node_turn = node ? node->logical_index : 0;
}

static int by_turn(const void *a, const void *b) {
    const struct shmt_topo_seat *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->core_turn != y->core_turn) return x->core_turn < y->core_turn ? -1 : 1;
    return (x->node_turn > y->node_turn) - (x->node_turn < y->node_turn);
}

/* Counts threads within cores and cores within nodes. hwloc lists processors core by core, so a core's threads are neighbours;
 * a node's cores need not be, hence `cores_of` (one counter per node). */
static void count_turns(struct shmt_topo *topo, uint32_t *cores_of) {
    for (uint32_t i = 0; i < topo->cpus; i++) {
        struct shmt_topo_seat *seat = &topo->seats[i];
        const struct shmt_topo_seat *before = i > 0 ? seat - 1 : NULL;
        if (before && before->place.core == seat->place.core) {
            seat->thread = before->thread + 1;
            seat->core_turn = before->core_turn;
            continue;
        }
        seat->thread = 0;
        if (cores_of[seat->node_turn] == 0) topo->nodes++;
        seat->core_turn = cores_of[seat->node_turn]++;
        topo->cores++;
    }
}

static int make_seats(struct shmt_topo *topo, hwloc_const_bitmap_t usable, struct shmt_error *e) {
    const int n_nodes = hwloc_get_nbobjs_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE);
    const size_t n_cpus = (size_t)hwloc_bitmap_weight(usable);
    uint32_t *cores_of = calloc((size_t)(n_nodes > 0 ? n_nodes : 1), sizeof *cores_of);
    topo->seats = calloc(n_cpus, sizeof *topo->seats);
    if (!cores_of || !topo->seats) {
        free(cores_of);
        return shmt_no_memory(e, "for a plan of %zu processors", n_cpus);
    }
    hwloc_obj_t pu = NULL;
    while (topo->cpus < n_cpus && (pu = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_PU, pu))) {
        if (hwloc_bitmap_isset(usable, pu->os_index)) fill_seat(topo->hwloc, pu, &topo->seats[topo->cpus++]);
    }
    if (topo->cpus == 0) {
        free(cores_of);
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "hwloc finds no processors that this process may use: check taskset and cpusets");
    }
    count_turns(topo, cores_of);
    free(cores_of);
    qsort(topo->seats, topo->cpus, sizeof *topo->seats, by_turn);
    return 0;
}

static void apply_quota(struct shmt_topo *topo) {
    const uint64_t millis = topo->root ? shmt_cgroup_cpu_millis(topo->root) : 0;
    if (millis > 0) topo->cores = (uint32_t)shmt_min_u64(topo->cores, shmt_ceil_div(millis, 1000));
}

/* What hwloc cannot read it passes over, and tells of this machine. Where HWLOC_THISSYSTEM says that the description is this
 * machine's, nobody can tell. */
static int check_description(struct shmt_topo *topo, struct shmt_error *e) {
    const char *same = getenv("HWLOC_THISSYSTEM"), *variable = shmt_topo_variable();
    if (!variable || hwloc_topology_is_thissystem(topo->hwloc) == 0 || (same && strcmp(same, "0") != 0)) return 0;
    return shmt_refuse(e, "%s=%.60s: hwloc finds no description of a machine there", variable, getenv(variable));
}

/* The processors of a synthetic description, "node:2 [numa] core:4(size=1) pu:2": the product of the levels' counts. What stands
 * in brackets is memory or an attribute. Words that are no levels hwloc refuses later. */
static uint64_t processors_of(const char *text) {
    uint64_t n = 1;
    unsigned depth = 0;
    for (const char *at = text; *at;) {
        char *end = NULL;
        depth += *at == '(' || *at == '[';
        depth -= depth > 0 && (*at == ')' || *at == ']');
        const bool begins = depth == 0 && isdigit((unsigned char)*at) && (at == text || at[-1] == ':' || at[-1] == ' ');
        const uint64_t count = begins ? strtoull(at, &end, 0) : 1;
        if (!shmt_mul_u64(n, count, &n)) return UINT64_MAX;
        at = begins ? end : at + 1;
    }
    return n;
}

/* hwloc takes time and memory with the square of the processors, and cannot be stopped. */
static int check_size(struct shmt_error *e) {
    const char *text = getenv("HWLOC_SYNTHETIC");
    const uint64_t n = text ? processors_of(text) : 0;
    if (n <= SHMT_TOPO_MAX_CPUS) return 0;
    return shmt_refuse(e, "HWLOC_SYNTHETIC=%.60s describes %s%" PRIu64 " processors: describe %d at most", text,
                       n == UINT64_MAX ? "more than " : "", n, SHMT_TOPO_MAX_CPUS);
}

/* `root` is NULL for /proc and /sys of this machine. */
static int fill(struct shmt_topo *topo, const char *root, struct shmt_error *e) {
    int rc = check_size(e);
    if (rc < 0) return rc;
    if (load(topo->hwloc) != 0) return shmt_fail_errno(e, "hwloc cannot detect the processors of this machine");
    rc = check_description(topo, e);
    if (rc < 0) return rc;
    if (!root && hwloc_topology_is_thissystem(topo->hwloc)) root = "";
    if (root && !(topo->root = strdup(root))) return shmt_no_memory(e, "for the topology of the machine");
    hwloc_bitmap_t usable = usable_set(topo->hwloc);
    if (!usable) return shmt_no_memory(e, "for the set of usable processors");
    rc = make_seats(topo, usable, e);
    hwloc_bitmap_free(usable);
    if (rc == 0) rc = shmt_topo_find_nodes(topo, e);
    if (rc == 0) apply_quota(topo);
    return rc;
}

int shmt_topo_open_at(const char *root, struct shmt_topo **out, struct shmt_error *e) {
    struct shmt_topo *topo = calloc(1, sizeof *topo);
    if (!topo) return shmt_no_memory(e, "for the topology of the machine");
    if (hwloc_topology_init(&topo->hwloc) != 0) {
        free(topo);
        return shmt_fail_errno(e, "cannot start hwloc");
    }
    const int rc = fill(topo, root, e);
    if (rc != 0) {
        shmt_topo_close(topo);
        return rc;
    }
    *out = topo;
    return 0;
}

int shmt_topo_open(struct shmt_topo **out, struct shmt_error *e) { return shmt_topo_open_at(NULL, out, e); }

void shmt_topo_close(struct shmt_topo *topo) {
    if (!topo) return;
    hwloc_topology_destroy(topo->hwloc);
    free(topo->seats);
    free(topo->node);
    free(topo->root);
    free(topo);
}

uint32_t shmt_topo_cpus(const struct shmt_topo *topo) { return topo->cpus; }
uint32_t shmt_topo_cores(const struct shmt_topo *topo) { return topo->cores; }
uint32_t shmt_topo_nodes(const struct shmt_topo *topo) { return topo->nodes; }

const char *shmt_topo_variable(void) {
    static const char *const VARIABLE[] = {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"};
    for (size_t i = 0; i < sizeof VARIABLE / sizeof *VARIABLE; i++) {
        const char *value = getenv(VARIABLE[i]);
        if (value && value[0] != '\0') return VARIABLE[i];
    }
    return NULL;
}

int shmt_topo_is_this_machine(const struct shmt_topo *topo) { return hwloc_topology_is_thissystem(topo->hwloc) != 0; }

uint64_t shmt_topo_cache_bytes(const struct shmt_topo *topo, uint32_t level) {
    hwloc_obj_t obj = hwloc_get_pu_obj_by_os_index(topo->hwloc, topo->seats[0].place.cpu);
    for (; obj; obj = obj->parent) {
        if (!hwloc_obj_type_is_dcache(obj->type)) continue;
        if (obj->attr->cache.depth == level) return obj->attr->cache.size;
    }
    return 0;
}
