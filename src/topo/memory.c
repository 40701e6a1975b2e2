/* Putting memory on NUMA nodes, and seeing where it is: see topo.h. */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "topo/topo_priv.h"

#define SAMPLES   4096u
#define STRETCH   64u /* pages; so many nodes can take turns */
#define AT_A_TIME 512u

static int bind_area(const struct shmt_topo *topo, void *at, uint64_t bytes, enum shmt_memory_policy policy,
                     hwloc_const_bitmap_t set, struct shmt_error *e) {
    static const hwloc_membind_policy_t POLICY[] = {[SHMT_MEMORY_DEFAULT] = HWLOC_MEMBIND_DEFAULT,
                                                    [SHMT_MEMORY_BIND] = HWLOC_MEMBIND_BIND,
                                                    [SHMT_MEMORY_INTERLEAVE] = HWLOC_MEMBIND_INTERLEAVE};
    /* Without HWLOC_MEMBIND_STRICT: with it, the process is killed when a node is full. */
    if (hwloc_set_area_membind(topo->hwloc, at, bytes, set, POLICY[policy], HWLOC_MEMBIND_BYNODESET) == 0) return 0;
    return shmt_fail_errno(e, "the system refuses to place memory on NUMA nodes (mbind)");
}

int shmt_topo_bind_memory(const struct shmt_topo *topo, void *at, uint64_t bytes, enum shmt_memory_policy policy,
                          const uint32_t *node, uint32_t n_nodes, struct shmt_error *e) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int rc = 0;
    if (!set) return shmt_no_memory(e, "for a set of nodes");
    for (uint32_t i = 0; i < n_nodes && rc == 0; i++)
        if (hwloc_bitmap_set(set, node[i]) != 0) rc = shmt_no_memory(e, "for a set of nodes");
    if (rc == 0 && policy == SHMT_MEMORY_DEFAULT) rc = hwloc_bitmap_copy(set, hwloc_topology_get_topology_nodeset(topo->hwloc));
    if (rc == 0) rc = bind_area(topo, at, bytes, policy, set, e);
    hwloc_bitmap_free(set);
    return rc;
}

int shmt_topo_may_place(const struct shmt_topo *topo, const uint32_t *node, uint32_t n_nodes, struct shmt_error *e) {
    const uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct shmt_error refused = {0};
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return shmt_fail_errno(e, "not enough memory for a page");
    const int rc = shmt_topo_bind_memory(topo, page, bytes, SHMT_MEMORY_INTERLEAVE, node, n_nodes, &refused);
    munmap(page, bytes);
    if (rc == 0) return 0;
    return shmt_fail(e, rc, "%s: the system decides where it is placed", refused.text);
}

/* Nodes of the pages at `page` (n), into status_out (n): the system's number, or a negative errno. */
static int ask(void **page, uint64_t n, int *status_out, struct shmt_error *e) {
    /* Pages that are in this process's page table only: the reader sees to that. */
    if (syscall(SYS_move_pages, 0, n, page, NULL, status_out, 0) >= 0) return 0;
    return shmt_fail_errno(e, "the system does not report on which NUMA node memory is (move_pages)");
}

static uint32_t index_of(const struct shmt_topo *topo, int node) {
    uint32_t i = 0;
    while (i < topo->all_nodes && (int)topo->node[i].node != node) i++;
    return i;
}

/* The page that look number `i` of `looks` is at. Of more pages than looks, stretches of neighbours are looked at, evenly
 * spread: pages that are dealt out to the nodes in turn are seen in their true shares then, which single ones at a fixed
 * stride, or at random, would not show. */
static uint64_t sample(uint64_t i, uint64_t pages, uint64_t looks) {
    if (looks == pages) return i;
    const uint64_t stretches = looks / STRETCH;
    return (uint64_t)((unsigned __int128)(i / STRETCH) * (pages - STRETCH) / (stretches - 1)) + i % STRETCH;
}

int shmt_topo_where(const struct shmt_topo *topo, const void *at, uint64_t bytes, uint64_t page_bytes, uint64_t *bytes_on_node,
                    struct shmt_error *e) {
    const uintptr_t first = (uintptr_t)at & ~(uintptr_t)(page_bytes - 1);
    const uint64_t pages = shmt_ceil_div((uintptr_t)at + bytes - first, page_bytes), looks = shmt_min_u64(pages, SAMPLES);
    uint64_t seen = 0;
    memset(bytes_on_node, 0, topo->all_nodes * sizeof *bytes_on_node);
    for (uint64_t done = 0; done < looks;) {
        void *page[AT_A_TIME];
        int status[AT_A_TIME];
        const uint64_t n = shmt_min_u64(AT_A_TIME, looks - done);
        for (uint64_t i = 0; i < n; i++) {
            page[i] = (void *)(first + sample(done + i, pages, looks) * page_bytes); /* NOLINT(performance-no-int-to-ptr) */
            /* Enters the page into this process's page table. Others may be writing: atomically, in no order with anything. */
            (void)load_relaxed((_Atomic unsigned char *)page[i]);
        }
        const int rc = ask(page, n, status, e);
        if (rc != 0) return rc;
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t node = index_of(topo, status[i]);
            if (node == topo->all_nodes) continue;
            bytes_on_node[node]++;
            seen++;
        }
        done += n;
    }
    for (uint32_t i = 0; i < topo->all_nodes && seen > 0; i++)
        bytes_on_node[i] = (uint64_t)((unsigned __int128)bytes * bytes_on_node[i] / looks);
    return 0;
}
