/* Sums in tree order: see tree.h. */
#include "math/tree.h"

double shmt_tree_sum(const double *x, uint64_t n) {
    /* The sums of the complete subtrees so far, largest first: as many as `i` has bits set. A leaf that completes a subtree
     * merges with its left sibling, as a carry runs through a binary counter. */
    double complete[64];
    uint32_t depth = 0;
    for (uint64_t i = 0; i < n; i++) {
        double sum = x[i];
        for (uint64_t carry = i; carry & 1; carry >>= 1) sum = complete[--depth] + sum;
        complete[depth++] = sum;
    }
    if (depth == 0) return 0;
    double sum = complete[--depth];
    while (depth > 0) sum = complete[--depth] + sum;
    return sum;
}
