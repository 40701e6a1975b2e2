/* The kernels: tight loops over spans. One table of functions per [write][rule][values or not][regularised or not], chosen
 * once per session.
 *
 * Dot products are summed in 8 fixed lanes: element k of the row goes to lane k % 8, and lanes are added as ((l0+l4) +
 * (l2+l6)) + ((l1+l5) + (l3+l7)); then the bias is added. Multiplication and addition are rounded separately. So every CPU
 * path gives the same bits, and a plain loop can check them (kernels_reference.h).
 *
 * In the live modes a push is an update by the rule (rule.h). Each example of a sparse push is one: for a row with value v,
 * slope s and rate r the gradient is g = s * v, and sgd's step a = (r * s) * v. A dense push is one for each float:
 * g = grad * scale, a = r * g. Then, with t = (r1 * l1) * share and d = (r1 * l2) * share:
 *     w' = w - a                                   without L1 and L2
 *     w' = w - (a + d * w) / (1 + d)               with L2 alone
 *     w' = soft(w - a, t) / (1 + d)                with L1
 * The second is the proximal step (w - a) / (1 + d), which is stable for every rate, in a form that loses nothing where d is
 * so small that 1 + d is 1 in f32. A row that one example in `share` touches is drawn to zero `share` times as much then,
 * which makes up for the examples in between (lazy regularisation); in dense pushes, and for ftrl, whose l1 and l2 are of
 * all pushes together, share is 1. The bias row of a csr is not regularised. What is no number stays none.
 *
 * The write mode says what happens when several workers push at one time (push_priv.h); one worker alone gets the same bits
 * from all live ones.
 *
 * Threads: several workers may run them on one live span at a time. `locked` waits for row locks, one at a time, and for as
 * long as another worker needs to push one row or 1,024 floats; no other function here waits. */
#pragma once

#include <shmtrain/session.h>
#include <stdbool.h>
#include <stdint.h>

#include "consistency/policy.h"
#include "update/rule.h"
#include "update/span.h"

#define SHMT_MAX_GROUP 64

/* The csr's ids are below span->rows (with bias: rows - 1), distinct within an example, and span->width is 1: the caller has
 * checked. In aggregate the update is not used: gradient sums go into sink, and their lines are marked in touched. */
struct shmt_kernels {
    const char *name; /* such as "racy_sgd_regularised_values" */
    /* Fetches the examples and their weights into the caches; changes nothing. */
    void (*need)(const struct shmt_span *, const struct shmtrain_csr *);
    void (*dot)(const struct shmt_span *, const struct shmtrain_csr *, float *dot_out);
    void (*push_sparse)(const struct shmt_span *, const struct shmtrain_csr *, const float *slope, const struct shmt_update *u);
    /* For groups of `group` examples (1 .. SHMT_MAX_GROUP; the last one may be smaller), in order: all dot products, then
     * `slope` once, then all pushes. */
    void (*each)(const struct shmt_span *, const struct shmtrain_csr *, uint32_t group, shmtrain_slope *slope, void *arg,
                 const struct shmt_update *u);
    /* Floats at .. at + n - 1 of the table; live: an update of each, aggregate: sink += grad. Rows that are not regularised are
     * pushed with u->l1 and u->l2 of 0. */
    void (*push_dense)(const struct shmt_span *, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u);
};

/* The kernels for a write mode and rule, with values or all ones, with L1 or L2 or not (then u->l1 and u->l2 are 0). NULL where
 * the rule cannot bear the write mode (shmt_rule_check). In `aggregate` only `values` counts. */
const struct shmt_kernels *shmt_kernels_find(enum shmt_write write, enum shmt_rule_kind rule, bool values, bool regularised);

/* `racy` where each float counts its updates, in the word that it is stored in (counted_priv.h): the same sums. The span has
 * `counted`, and perhaps `race`. */
const struct shmt_kernels *shmt_kernels_that_count(enum shmt_rule_kind rule, bool values, bool regularised);

/* `aggregate` where others update the weights while one computes: the same sums, of weights that are read as in live modes. */
const struct shmt_kernels *shmt_kernels_of_rounds(bool values);

/* a += b over gradient buffers of n floats, line by line, and b and its map become zero; lines that b has not touched are
 * not looked at. A line that is marked 0 holds zeros. With NULL maps (both): all of it. The caller alone uses both buffers. */
void shmt_fold(float *a, uint8_t *a_touched, float *b, uint8_t *b_touched, uint64_t n);

/* Brings the lines of floats from .. to - 1 (both at the beginning of a line) of an array in the shape of a gradient buffer
 * into the caches: those that `touched` marks, or all (NULL). Nobody writes them meanwhile. */
void shmt_fetch(const float *a, const uint8_t *touched, uint64_t from, uint64_t to);

/* Clears a gradient buffer of n floats (touched lines only when there is a map) and its map. */
void shmt_clear(float *a, uint8_t *touched, uint64_t n);
