/* How many copies of the parameters `async` takes where nobody says: one for all; one per worker, merged damped; or one per
 * worker of the rows that occur most often. Called by running/spec.c; pure numbers in, a verdict and its reason out.
 *
 * With one copy the lines of frequent features travel from core to core with every update, and two workers on sparse rows take
 * longer than one. With a copy each they do not, and merging by lines costs a few hundredths of the time, as long as
 * replica and base stay in the worker's own cache, or in its part of one that several share. Of a larger table the hot rows do,
 * which are most of what is written where rows stand by frequency; what misses the cache anyway may as well be shared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shmt_copies_wish {
    bool is_linear;       /* a model of sparse rows, whose one table has a float for each feature, and a bias */
    bool by_frequency;    /* its rows will stand by how often their features occur */
    bool has_guests;      /* workers may come and go */
    bool may_lose;        /* the others go on without one that dies, so nobody may have changes to himself */
    uint32_t n_workers;   /* of the run's own, */
    uint32_t n_threads;   /* of so many threads each, which share what the worker has */
    uint32_t planes;      /* state words of each parameter */
    uint64_t floats;      /* parameters */
    uint64_t cache_bytes; /* of the second level; 0: unknown */
    uint32_t n_sharers;   /* workers that have such a cache at one time; 0: one */
    uint64_t unit;        /* floats of a page: hot rows are whole ones. 0: pages cannot be told apart here */
};

#define SHMT_COPIES_WHY 320 /* bytes that every reason fits into */

/* True: a copy per worker, of the first *hot_out parameters (0: of all). The reason is written to `why`; "" where there was no
 * choice. Threads of a worker share its copy, so where they are several the reason says how each would get one. */
bool shmt_copies_choose(const struct shmt_copies_wish *wish, uint32_t *hot_out, char *why, size_t bytes);
