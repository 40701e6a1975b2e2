/* Sums over examples for each column, taken by rows.
 *
 * A gradient, a product with the Hessian, the image of a dual point: each takes a number from every example and adds it to the example's
 * columns. By columns that is a pass of its own, over data that has to be turned first, and looks up an example for each entry. Where
 * there are entries enough for each column the pass by rows that finds the number does that as well, while it has the row at hand: rows
 * are dealt to groups, of whole blocks, and each group adds up its rows in a heap of its own. The next phase adds up the heaps,
 * column by column, in the order of the groups. These depend on the sizes of the data alone, as blocks do, so the bits of a sum do not
 * follow the number of workers. A group is done by one part, from nothing: it may be done again. */
#pragma once

#include <string.h>

#include "solve/rows_priv.h"

/* What the numbers of a column are, one beside the other. */
enum { SHMT_HEAP_PULL, SHMT_HEAP_CURVE, SHMT_HEAP_SIDE, SHMT_HEAP_SLOPES }; /* x u, x^2 curve, and x |u| (squared loss: x c) */
enum { SHMT_HEAP_BEFORE, SHMT_HEAP_CHANGE, SHMT_HEAP_IMAGES };              /* dual ascent: x u, and x times its change */
enum { SHMT_HEAP_SCALED = 1 };                                              /* x scaled */

static inline bool shmt_has_heaps(const struct shmt_pass *pass) { return pass->plan->n_groups > 0; }

/* How many numbers a column has of slopes: the last one is asked for with a bias alone, whose dual points are not u itself. */
static inline uint32_t shmt_heap_slopes(const struct shmt_pass *pass) { return SHMT_HEAP_SLOPES - !pass->plan->of.bias; }

/* Which of `n_groups` groups a block is in. */
static inline uint64_t shmt_group_of(const struct shmt_solve_plan *plan, uint32_t n_groups, uint64_t block) {
    return ((block + 1) * n_groups - 1) / plan->n_row_blocks;
}

/* Calls `block` for the blocks of my groups, of n_groups, when the first `bytes` of the group's memory, of `pitch` bytes, are 0. */
static inline void shmt_each_group(const struct shmt_pass *pass, uint32_t n_groups, double *memory, uint64_t bytes,
                                   uint64_t pitch, const double *w,
                                   void (*block)(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to,
                                                 const double *w)) {
    uint64_t first, behind;
    shmt_solve_share(n_groups, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t g = first; g < behind; g++) {
        uint64_t from, to;
        memset((unsigned char *)memory + g * pitch, 0, bytes);
        shmt_solve_share(pass->plan->n_row_blocks, (uint32_t)g, n_groups, &from, &to);
        if (!shmt_do_blocks(pass, from, to, w, block)) return;
    }
}

/* Where the group of a block adds up column 0. */
static inline double *shmt_heap_of(const struct shmt_pass *pass, uint64_t block) {
    const uint64_t pitch = (uint64_t)pass->plan->of.n_columns * pass->plan->heap_width;
    return pass->memory->heap + shmt_group_of(pass->plan, pass->plan->n_groups, block) * pitch;
}

/* As shmt_each_block, for work that adds `width` numbers of each column up in heaps, where there are any. */
static inline void shmt_each_heaped_block(const struct shmt_pass *pass, uint32_t width, const double *w,
                                          void (*block)(const struct shmt_pass *pass, uint64_t number, uint64_t from,
                                                        uint64_t to, const double *w)) {
    const uint64_t bytes = pass->plan->of.n_columns * sizeof(double);
    if (shmt_has_heaps(pass))
        shmt_each_group(pass, pass->plan->n_groups, pass->memory->heap, width * bytes, pass->plan->heap_width * bytes, w,
                        block);
    else
        shmt_each_block(pass, w, block);
}

/* Adds examples from .. to - 1, of block `number`, to its heap: their slopes, `scaled`, or u and how it changes. Nothing without heaps. */
void shmt_heap_add_slopes(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to);
void shmt_heap_add_scaled(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to);
void shmt_heap_add_images(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to);

/* Of all groups together: number `which` of the `width` of column j. */
static inline double shmt_heap_sum(const struct shmt_pass *pass, uint64_t j, uint32_t width, uint32_t which) {
    const uint64_t pitch = (uint64_t)pass->plan->of.n_columns * pass->plan->heap_width;
    const double *at = pass->memory->heap + j * width + which;
    double sum = 0;
    for (uint32_t g = 0; g < pass->plan->n_groups; g++) sum += at[g * pitch];
    return sum;
}
