/* What the files of `topo` share: the topology as it was worked out at open. Read-only afterwards. */
#pragma once

#include <hwloc.h>

#include "topo/topo.h"

/* One usable processor, and what its turn depends on. */
struct shmt_topo_seat {
    struct shmt_place place;
    uint32_t thread;    /* it is its core's thread 0, 1, ..., counting usable ones */
    uint32_t core_turn; /* its core is its node's core 0, 1, ..., counting usable ones */
    uint32_t node_turn; /* its node in the order of the nodes */
};

struct shmt_topo {
    hwloc_topology_t hwloc;
    uint32_t cpus, cores, nodes;
    struct shmt_topo_seat *seats; /* (cpus) in the order in which workers take them */
    uint32_t all_nodes;
    struct shmt_node *node; /* (all_nodes) free memory left out: it is read when asked for */
    char *root;             /* where /proc and /sys are looked for: ""; NULL: a machine that is not this one has none */
};

/* Fills topo->node from hwloc, `root` and the seats; called by open. Errors: _MEMORY. */
int shmt_topo_find_nodes(struct shmt_topo *topo, struct shmt_error *e);
