/* Choosing pages: see pages.h. */
#include "segment/pages.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "segment/segment.h"

#define LEAST_BYTES ((uint64_t)16 << 20) /* below, a few huge pages more in use than needed weigh more than what they gain */

static int is_in(const uint32_t *node, uint32_t n_nodes, uint32_t number) {
    for (uint32_t i = 0; i < n_nodes; i++)
        if (node[i] == number) return 1;
    return 0;
}

/* Whether each of the nodes has its share, and a page more for what does not part evenly; without nodes, whether all together
 * have enough. *lacks_out: the first that has not, and what it has and should have. */
static int has_reserved(const struct shmt_topo *topo, uint64_t bytes, const uint32_t *node, uint32_t n_nodes,
                        struct shmt_node *lacks_out, uint64_t *pages_out) {
    const uint64_t all = shmt_ceil_div(bytes, SHMT_HUGE_BYTES);
    const uint64_t each = n_nodes > 1 ? shmt_ceil_div(all, n_nodes) + 1 : all;
    uint64_t sum = 0;
    *pages_out = each;
    for (uint32_t i = 0; i < shmt_topo_all_nodes(topo); i++) {
        shmt_topo_node(topo, i, lacks_out);
        if (lacks_out->usable) sum += lacks_out->huge_free;
        if (is_in(node, n_nodes, lacks_out->node) && lacks_out->huge_free < each) return 0;
    }
    if (sum >= all) return 1;
    lacks_out->huge_free = sum;
    lacks_out->node = UINT32_MAX; /* the machine */
    *pages_out = all;
    return 0;
}

enum shmt_pages shmt_pages_choose(const char *option, const struct shmt_topo *topo, uint64_t bytes, const uint32_t *node,
                                  uint32_t n_nodes, const char *what, const struct shmt_log *log) {
    struct shmt_node lacks;
    uint64_t pages;
    const int asked = strcmp(option, "2M") == 0;
    if (strcmp(option, "off") == 0) return SHMT_PAGES_ORDINARY;
    if ((asked || bytes >= LEAST_BYTES) && has_reserved(topo, bytes, node, n_nodes, &lacks, &pages)) return SHMT_PAGES_2M;
    if (asked && lacks.node == UINT32_MAX)
        shmt_log(log,
                 "the machine has %" PRIu64 " free huge pages of 2 MiB and the %s would take %" PRIu64
                 ": it gets ordinary pages (vm.nr_hugepages reserves huge ones)",
                 lacks.huge_free, what, pages);
    else if (asked)
        shmt_log(log,
                 "node %" PRIu32 " has %" PRIu64 " free huge pages of 2 MiB and the %s would take %" PRIu64
                 " there: it gets ordinary pages",
                 lacks.node, lacks.huge_free, what, pages);
    return shmt_pages_unreserved(option, topo, bytes);
}

enum shmt_pages shmt_pages_unreserved(const char *option, const struct shmt_topo *topo, uint64_t bytes) {
    const int off = strcmp(option, "off") == 0;
    return !off && bytes >= SHMT_HUGE_BYTES && shmt_topo_transparent(topo) ? SHMT_PAGES_TRANSPARENT : SHMT_PAGES_ORDINARY;
}

const char *shmt_pages_name(enum shmt_pages pages) {
    static const char *const NAME[] = {
        [SHMT_PAGES_ORDINARY] = "off", [SHMT_PAGES_TRANSPARENT] = "transparent", [SHMT_PAGES_2M] = "2M"};
    return NAME[pages];
}

uint32_t shmt_pages_bytes(enum shmt_pages pages) { return pages == SHMT_PAGES_2M ? (uint32_t)SHMT_HUGE_BYTES : 4096; }
