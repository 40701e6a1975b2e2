/* The NUMA nodes of the machine and what memory they have: see topo.h.
 *
 * Which nodes there are is hwloc's word; which of them this process may use is the cpuset's, as hwloc finds it in the control
 * groups and as the kernel says itself (/proc/self/status), because in a container the groups may not be seen. Sizes are read
 * from /sys when they are asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "topo/cgroup.h"
#include "topo/topo_priv.h"

#define PATH_BYTES 4096

static FILE *open_below(const struct shmt_topo *topo, const char *path) {
    char full[PATH_BYTES];
    if (!topo->root) return NULL;
    const int n = snprintf(full, sizeof full, "%s%s", topo->root, path);
    return n < 0 || (size_t)n >= sizeof full ? NULL : fopen(full, "re");
}

/* "Mems_allowed_list:\t0-1,3". Everything, where the kernel does not say. */
static hwloc_bitmap_t allowed_set(const struct shmt_topo *topo) {
    static const char KEY[] = "Mems_allowed_list:";
    hwloc_bitmap_t set = hwloc_bitmap_alloc_full();
    FILE *f = set ? open_below(topo, "/proc/self/status") : NULL;
    if (!f) return set;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, f) > 0) {
        if (strncmp(line, KEY, sizeof KEY - 1) != 0) continue;
        const char *list = line + sizeof KEY - 1 + strspn(line + sizeof KEY - 1, " \t");
        line[strcspn(line, "\n")] = '\0';
        /* hwloc takes any other text for a 0. */
        if (list[strspn(list, "0123456789,-")] != '\0' || hwloc_bitmap_list_sscanf(set, list) != 0) hwloc_bitmap_fill(set);
    }
    free(line);
    fclose(f);
    return set;
}

/* Adds up the usable processors of a node; seats of one core have the same core number. */
static void count_cpus(const struct shmt_topo *topo, struct shmt_node *node) {
    for (uint32_t i = 0; i < topo->cpus; i++) {
        if (topo->seats[i].place.node != node->node) continue;
        node->cpus++;
        node->cores += topo->seats[i].thread == 0;
    }
}

/* "Node 1 MemFree:  515072 kB", of the keys `key` (n), each 0 where it is missing. Returns 0 where there is no such file. */
static int read_meminfo(const struct shmt_topo *topo, uint32_t node, const char *const *key, uint32_t n, uint64_t *out) {
    char path[96], name[64];
    uint64_t kib;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%" PRIu32 "/meminfo", node);
    FILE *f = open_below(topo, path);
    if (!f) return 0;
    memset(out, 0, n * sizeof *out);
    char line[256];
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "Node %*u %63[^:]: %" SCNu64, name, &kib) != 2 || kib > UINT64_MAX / 1024) continue;
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(name, key[i]) == 0) out[i] = kib * 1024;
    }
    fclose(f);
    return 1;
}

static uint64_t read_huge_free(const struct shmt_topo *topo, uint32_t node) {
    char path[128];
    uint64_t n = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%" PRIu32 "/hugepages/hugepages-2048kB/free_hugepages", node);
    FILE *f = open_below(topo, path);
    if (!f) return 0;
    if (fscanf(f, "%" SCNu64, &n) != 1) n = 0;
    fclose(f);
    return n;
}

static void find_node(const struct shmt_topo *topo, hwloc_obj_t obj, hwloc_const_bitmap_t allowed, struct shmt_node *out) {
    static const char *const KEY[] = {"MemTotal"};
    uint64_t total;
    *out = (struct shmt_node){.node = obj->os_index, .memory_bytes = obj->attr->numanode.local_memory};
    if (read_meminfo(topo, out->node, KEY, 1, &total)) out->memory_bytes = total;
    /* A machine that is not this one may leave the sizes out; a node of this one without memory has none. */
    out->usable = hwloc_bitmap_isset(allowed, obj->os_index) && (out->memory_bytes > 0 || !topo->root);
    count_cpus(topo, out);
}

int shmt_topo_find_nodes(struct shmt_topo *topo, struct shmt_error *e) {
    const int n = hwloc_get_nbobjs_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE);
    hwloc_bitmap_t allowed = allowed_set(topo);
    topo->node = calloc((size_t)(n > 0 ? n : 1), sizeof *topo->node);
    if (!topo->node || !allowed) {
        hwloc_bitmap_free(allowed);
        return shmt_no_memory(e, "for a list of %d nodes", n);
    }
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_nodeset(topo->hwloc));
    for (int i = 0; i < n; i++)
        find_node(topo, hwloc_get_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)i), allowed, &topo->node[i]);
    hwloc_bitmap_free(allowed);
    topo->all_nodes = n > 0 ? (uint32_t)n : 1;
    if (n <= 0) topo->node[0] = (struct shmt_node){.usable = 1, .cores = topo->cores, .cpus = topo->cpus};
    return 0;
}

uint32_t shmt_topo_all_nodes(const struct shmt_topo *topo) { return topo->all_nodes; }

/* A single node is the whole machine, whose own figures are better: the node's leave out memory that came later, and know
 * nothing of what the kernel keeps back. */
static void read_machine(const struct shmt_topo *topo, struct shmt_node *out) {
    char path[PATH_BYTES];
    uint64_t total, available;
    if (!topo->root) return;
    const int n = snprintf(path, sizeof path, "%s/proc/meminfo", topo->root);
    if (n < 0 || (size_t)n >= sizeof path) return;
    if (!shmt_keyed_number(path, "MemTotal:", &total) || !shmt_keyed_number(path, "MemAvailable:", &available)) return;
    if (total > UINT64_MAX / 1024 || available > total) return;
    out->memory_bytes = total * 1024;
    out->free_bytes = available * 1024;
}

void shmt_topo_node(const struct shmt_topo *topo, uint32_t i, struct shmt_node *out) {
    /* Page cache of files is given up before anything else is, as in MemAvailable; shared memory is not in these lists. */
    static const char *const KEY[] = {"MemFree", "Active(file)", "Inactive(file)"};
    uint64_t bytes[3];
    *out = topo->node[i];
    out->free_bytes = out->memory_bytes;
    if (read_meminfo(topo, out->node, KEY, 3, bytes))
        out->free_bytes = shmt_min_u64(out->memory_bytes, bytes[0] + bytes[1] + bytes[2]);
    if (topo->all_nodes == 1) read_machine(topo, out);
    out->huge_free = read_huge_free(topo, out->node);
}

/* Whether one of these words stands in the first line of a file. */
static int chosen_is(const struct shmt_topo *topo, const char *path, const char *const *words, size_t n) {
    char line[128];
    FILE *f = open_below(topo, path);
    if (!f) return 0;
    const int got = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    for (size_t i = 0; got && i < n; i++)
        if (strstr(line, words[i])) return 1;
    return 0;
}

int shmt_topo_transparent(const struct shmt_topo *topo) {
    static const char *const WORDS[] = {"[always]", "[within_size]", "[advise]", "[force]"};
    return chosen_is(topo, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", WORDS, 4);
}

/* A system that promises all memory that is asked for (vm.overcommit_memory is 2) counts private memory once more for each
 * process that inherits it. */
static int promises_memory(const struct shmt_topo *topo) {
    static const char *const WORDS[] = {"2"};
    return chosen_is(topo, "/proc/sys/vm/overcommit_memory", WORDS, 1);
}

int shmt_topo_transparent_private(const struct shmt_topo *topo) {
    static const char *const WORDS[] = {"[always]", "[madvise]"};
    return !promises_memory(topo) && chosen_is(topo, "/sys/kernel/mm/transparent_hugepage/enabled", WORDS, 2);
}
