/* Terms: the gradient sum of a batch of sparse examples, as a list of (parameter, what is added to it) in the order of pushes.
 *
 * Examples of text touch some dozens of parameters of many thousands. A batch's gradient in buffers in the shape of all
 * parameters, one for each part of the batch, costs a cache line for each of these dozens, and each pair of buffers that is
 * added up costs them again. A list costs eight bytes a term, written once in order and read in order, and what is summed from it
 * stays in the caches of the one who updates these parameters. docs/performance.md has figures ("Sync over batch size").
 *
 * A sum takes its terms in the order of the lists, and of the terms in each, whoever takes it and for which range: so its bits do
 * not depend on how parameters are cut into ranges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHMT_TERMS_BLOCK 256 /* floats of a sum, for which one byte says whether they may be other than 0 */

/* How much there is of one list's gradient; in memory of the store. */
struct shmt_terms_head {
    uint32_t n;      /* terms */
    uint32_t summed; /* 1: there is more of it in the list's gradient buffer, of pushes that are no list or had no room */
};

/* A list, as its one writer sees it. */
struct shmt_terms {
    struct shmt_terms_head *head; /* NULL: none is kept, all goes into the buffer */
    uint32_t *id;                 /* (most) the parameter's number in the store, not in its table */
    float *value;                 /* (most) */
    uint32_t most;
    uint32_t first; /* the number of the table's parameter 0 in the store */
};

/* Room for n more terms, from place *at_out on; false: there is none. */
static inline bool shmt_terms_take(const struct shmt_terms *terms, uint64_t n, uint32_t *at_out) {
    if (!terms->head) return false;
    const uint32_t at = terms->head->n; /* memory of the store, where others could have written into it */
    if (at > terms->most || n > terms->most - at) return false;
    terms->head->n = at + (uint32_t)n;
    *at_out = at;
    return true;
}

/* More of the gradient will be in the buffer. */
static inline void shmt_terms_note_sum(const struct shmt_terms *terms) {
    if (terms->head) terms->head->summed = 1;
}

/* Adds those of n terms whose parameters are from .. to - 1 to `sum`, which is in the shape of all parameters, and marks their
 * blocks in `touched`. Ids are looked at before they are used; other ranges may be summed by others at the same time. */
void shmt_terms_sum(const uint32_t *id, const float *value, uint32_t n, uint32_t from, uint32_t to, float *sum,
                    uint8_t *touched);
