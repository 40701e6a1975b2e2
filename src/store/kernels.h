/* The kernels: tight loops over spans. One table of functions per [write][values or not][L2 or not], chosen once per
 * session.
 *
 * Dot products are summed in 8 fixed lanes: element k of the row goes to lane k % 8, and lanes are added as ((l0+l4) +
 * (l2+l6)) + ((l1+l5) + (l3+l7)); then the bias is added. Multiplication and addition are rounded separately. So every CPU
 * path gives the same bits, and a plain loop can check them (kernels_reference.h).
 *
 * The update rule is stochastic gradient descent. For one touched row with weight w, value v of the example, slope s and
 * rate r:
 *     a = (r * s) * v
 *     w' = w - a                                   without L2
 *     w' = w - (a + d * w) / (1 + d)               with L2, d = (r * l2) * share
 * The second is the proximal step (w - a) / (1 + d), which is stable for every rate, in a form that loses nothing where d is
 * so small that 1 + d is 1 in f32. A row that one example in `share` touches is drawn to zero `share` times as much then,
 * which makes up for the examples in between (lazy regularisation). The bias row of a csr is not regularised.
 *
 * Threads: none of these functions waits or calls anything but `slope`. Several workers may run them on one live span at a
 * time. */
#ifndef SHMT_STORE_KERNELS_H
#define SHMT_STORE_KERNELS_H

#include <shmtrain/session.h>
#include <stdbool.h>
#include <stdint.h>

#include "consistency/policy.h"
#include "store/rule.h"
#include "store/span.h"

#define SHMT_MAX_GROUP 64

/* The csr's ids are below span->rows (with bias: rows - 1), distinct within an example, and span->width is 1: the caller has
 * checked. In aggregate, rate and l2 are not used: gradient sums go into sink, and their lines are marked in touched. */
struct shmt_kernels {
    const char *name; /* such as "racy_values_l2" */
    /* Fetches the examples and their weights into the caches; changes nothing. */
    void (*need)(const struct shmt_span *, const struct shmtrain_csr *);
    void (*dot)(const struct shmt_span *, const struct shmtrain_csr *, float *dot_out);
    void (*push_sparse)(const struct shmt_span *, const struct shmtrain_csr *, const float *slope, const struct shmt_update *u);
    /* For groups of `group` examples (1 .. SHMT_MAX_GROUP; the last one may be smaller), in order: all dot products, then
     * `slope` once, then all pushes. */
    void (*each)(const struct shmt_span *, const struct shmtrain_csr *, uint32_t group, shmtrain_slope *slope, void *arg,
                 const struct shmt_update *u);
    /* floats at .. at + n - 1 of the table; racy: w' as above with a = rate * grad and d = rate * l2 (for a sum over m
     * examples the caller divides the rate by m and multiplies l2 by m); aggregate: sink += grad */
    void (*push_dense)(const struct shmt_span *, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u);
};

/* The kernels for a write mode and rule, with values or all ones, with L1 or L2 or not (then u->l1 and u->l2 are 0). NULL where
 * the rule cannot bear the write mode (shmt_rule_check). In `aggregate` the rule does not count. */
const struct shmt_kernels *shmt_kernels_find(enum shmt_write write, enum shmt_rule_kind rule, bool values, bool regularised);

/* a += b over gradient buffers of n floats, line by line, and b and its map become zero; lines that b has not touched are
 * not looked at. A line that is marked 0 holds zeros. With NULL maps (both): all of it. The caller alone uses both buffers. */
void shmt_fold(float *a, uint8_t *a_touched, float *b, uint8_t *b_touched, uint64_t n);

/* Clears a gradient buffer of n floats (touched lines only when there is a map) and its map. */
void shmt_clear(float *a, uint8_t *touched, uint64_t n);

#endif
