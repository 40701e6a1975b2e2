/* Alias tables: see alias.h. */
#include "data/alias.h"

#include <stdlib.h>

/* `keep` for a probability of at most 1. The largest word stands for 1: a slot then gives its alias once in 2^32 draws. */
static uint32_t keep_word(double probability) { return probability >= 1 ? UINT32_MAX : (uint32_t)(probability * 0x1p32); }

int shmt_alias_make(const double *weight, uint32_t n, struct shmt_alias_slot *slot_out, struct shmt_error *e) {
    double *share = malloc(n * sizeof *share);
    uint32_t *stack =
        malloc(n * sizeof *stack); /* slots to deal with: too small ones from the left, too large ones from the right */
    int status = 0;
    if (!share || !stack) {
        status = shmt_no_memory(e, "for a table of %u probabilities", n);
    } else {
        double sum = 0;
        for (uint32_t i = 0; i < n; i++) sum += weight[i];
        uint32_t n_small = 0, n_large = 0;
        for (uint32_t i = 0; i < n; i++) {
            share[i] = weight[i] / sum * n;
            slot_out[i] = (struct shmt_alias_slot){keep_word(share[i]), i, i};
            if (share[i] < 1) {
                stack[n_small++] = i;
            } else {
                stack[n - ++n_large] = i;
            }
        }
        /* A small slot takes what it lacks from a large one, which may become small by that. */
        while (n_small > 0 && n_large > 0) {
            const uint32_t small = stack[--n_small], large = stack[n - n_large];
            slot_out[small].keep = keep_word(share[small]);
            slot_out[small].other = large;
            share[large] -= 1 - share[small];
            if (share[large] < 1) {
                n_large--;
                stack[n_small++] = large;
            }
        }
        /* What is left is 1 but for rounding. */
        while (n_small > 0) slot_out[stack[--n_small]].keep = UINT32_MAX;
        while (n_large > 0) slot_out[stack[n - n_large--]].keep = UINT32_MAX;
    }
    free(stack);
    free(share);
    return status;
}
