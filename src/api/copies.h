/* How many copies of the parameters `async` takes where nobody says: one for all, or one per worker, merged damped. Called by
 * spec.c; pure numbers in, a verdict and its reason out.
 *
 * With one copy the lines of frequent features travel from core to core with every update, and two workers on sparse rows take
 * longer than one. With a copy each they do not, and merging by lines costs about two hundredths of the time, as long as
 * replica and base stay in the worker's own cache. */
#ifndef SHMT_API_COPIES_H
#define SHMT_API_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shmt_copies_wish {
    bool is_linear;       /* a model of sparse rows, whose one table has a float for each feature, and a bias */
    bool has_guests;      /* workers may come and go */
    uint32_t n_workers;   /* of the run's own */
    uint32_t planes;      /* state words of each parameter */
    uint64_t floats;      /* parameters */
    uint64_t cache_bytes; /* of the second level; 0: unknown */
};

/* True: a copy per worker. The reason is written to `why`, of which 160 bytes are enough; "" where there was no choice. */
bool shmt_copies_choose(const struct shmt_copies_wish *wish, char *why, size_t bytes);

#endif
