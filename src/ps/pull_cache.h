/* Cached pulls: a worker's own copy of the parameters, from which it reads (option cache-pulls N), as in Petuum and Bösen.
 *
 * The read condition is that of SSP (Ho et al. 2013; Wei et al. 2015): what is read at a worker's clock c has the updates of all
 * workers up to their clock c - N - 1. So a line of the copy (64 bytes, with the rule's state of its floats) knows when it was copied.
 * A pull of it at clock c renews it from the shared parameters if, when it was copied, the least clock of those who have work was below
 * c - N. A worker's pushes go to the shared parameters and to its copy, by the same rule: it reads its own writes.
 *
 * A line is renewed at most once in a work item. Where the slowest worker itself is more than N clocks behind (staleness inf), what
 * was renewed in the item in hand is as new as it can be, and serves. Where the policy bounds that distance, the condition always holds.
 *
 * Made and used by a session, whose seat says what the clocks are. All of it is memory of the session's thread, and of its life:
 * a next life begins with an empty copy. Nothing here waits, but for the row locks that a renewal of wide tables takes. */
#pragma once

#include "ps/backend_ops.h"
#include "ps/flat.h"
#include "update/kernels.h"

struct shmt_pull_cache;

/* Bytes of one seat's copy; 0 where pulls are not cached. The second: those of all seats; UINT64_MAX: beyond all arithmetic. */
uint64_t shmt_pull_cache_bytes(const struct shmt_spec *spec);
uint64_t shmt_pull_caches_bytes(const struct shmt_spec *spec);

/* An empty one for `seat`, which outlives it, as backend and spec do. spec->cache_pulls is above 0. _MEMORY. */
int shmt_pull_cache_create(const struct shmt_spec *spec, const struct shmt_backend *backend, struct shmt_seat *seat,
                           struct shmt_pull_cache **out, struct shmt_error *e);
void shmt_pull_cache_destroy(struct shmt_pull_cache *cache); /* NULL: nothing is done */

/* The seat has claimed a piece. */
void shmt_pull_cache_begin(struct shmt_pull_cache *cache);

/* The copy of table t, whose shared span is `shared`, until the piece is published: what to read, once it is fresh, and to push to by
 * the kernels below. */
void shmt_pull_cache_bind(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared);
const struct shmt_span *shmt_pull_cache_span(const struct shmt_pull_cache *cache, int t);

/* Before they are read: floats at .. at + n - 1 of table t, or the rows of a csr's examples and its bias, are renewed where they are
 * too old. Where memory takes virtual time, that of the shared lines passes. Returns how many lines were renewed. `t` is bound. */
uint64_t shmt_pull_cache_freshen(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared, uint64_t at, uint64_t n);
uint64_t shmt_pull_cache_freshen_examples(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared,
                                          const struct shmtrain_csr *x);

/* Kernels for the copy, which has one reader and writer: plain stores, whatever the write mode is. */
const struct shmt_kernels *shmt_pull_cache_kernels(const struct shmt_pull_cache *cache, bool values, bool statistic);
