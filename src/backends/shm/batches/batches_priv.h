/* What the files of the engine of batches share: batches.c is the engine, update.c its update, reduce.c the sums of equal copies, ready.c
 * says which tables they are complete of, lists.c keeps lists of terms, far.c is the link's seat. */
#pragma once

#include "backends/shm/shm_priv.h"

/* Counted from the first of the run. */
static inline uint64_t shmt_shm_global_step(const struct shmt_shm_seat *p) {
    return p->epoch * shmt_spec_steps(&p->store->spec) + p->step;
}

/* update.c: the sums of squares of my slice (ps/norm.h), for all, who read them behind the next meeting. */
void shmt_shm_measure(struct shmt_shm_seat *p);

/* update.c: what the batch is applied with, but for its norms; and where its gradient is: in the chunks' buffers, in their lists, or
 * in both. */
void shmt_shm_update_of(const struct shmt_shm_seat *p, struct shmt_update *out);
const struct shmt_shm_sum *shmt_shm_find_sum(const struct shmt_shm_seat *p);

/* ready.c, equal copies, or other hosts: my gradient of table t is complete, in this batch; and of all tables: my last chunk is done, or
 * the batch has begun, none of its chunks is mine, and I have done with the one before. */
void shmt_shm_announce(struct shmt_shm_seat *p, uint32_t t);
void shmt_shm_announce_rest(struct shmt_shm_seat *p);

/* An earlier life has died before all its gradients were in: before anything of them changes. */
void shmt_shm_take_back_ready(const struct shmt_shm_seat *p);

/* False: somebody's gradient of the table is not complete. *sum_out is another one behind a death. */
bool shmt_shm_all_have(const struct shmt_shm_seat *p, uint32_t t, uint64_t *sum_out);

/* The link: see `ready` and `holds` of ps/far.h. */
int shmt_shm_wait_for_ready(struct shmt_shm_seat *link, uint64_t below, struct shmt_far_ready *out);
bool shmt_shm_holds(const struct shmt_shm_seat *link, uint64_t stamp);

/* reduce.c */

/* My gradient of table t is complete, in the chunk in hand: it is announced where somebody waits for that, and with equal copies sums that
 * can be made are. */
void shmt_shm_complete(struct shmt_shm_seat *p, uint32_t t);

/* Equal copies. */
void shmt_shm_reduce(struct shmt_shm_seat *p);     /* all gradients are in: what is left of my slices of the sum */
extern const struct shmt_shm_sum SHMT_SHM_REDUCED; /* all have met behind that: the sum */

/* update.c: my slice of the update of the batch (equal copies: all of it), from where I or an earlier life of mine stood. */
void shmt_shm_apply(struct shmt_shm_seat *p);
void shmt_shm_my_update(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out); /* the floats of that */
void shmt_shm_nodes_make(struct shmt_shm_seat *p);                                            /* p->nodes, by who takes part */

/* lists.c: the lists of terms of chunks, where they are kept. A chunk's owner writes them before the meeting "all gradients are
 * in", and all read them between that one and the next. */

/* An empty one. */
void shmt_shm_list_begin(const struct shmt_store *store, uint32_t chunk);

/* What is in the chunk's list is read, or has been written (sync/host.h, touch). */
void shmt_shm_touch_list(const struct shmt_store *store, uint32_t chunk, bool writes);
struct shmt_terms shmt_shm_list(const struct shmt_store *store, uint32_t chunk);

/* Whether a part of the chunk's gradient is in a buffer: always, where there are no lists. */
bool shmt_shm_is_summed(const struct shmt_store *store, uint32_t chunk);

/* The sum over all chunks' lists of the floats from .. to - 1, in the buffer behind those of my stack. */
void shmt_shm_sum_lists(const struct shmt_shm_seat *p, uint64_t from, uint64_t to);

/* By the chief, when the lists of its chunks are complete, and before all are. */
void shmt_shm_cut_slices(struct shmt_shm_seat *chief);

/* The floats that I update, from whole lines to whole lines; those of all seats together are all floats. Between the two meetings
 * of a batch. */
void shmt_shm_my_slice(const struct shmt_shm_seat *p, uint64_t *from_out, uint64_t *to_out);

/* batches.c, for the link: whether the epoch has another batch (1, 0, _STOPPED), and from the meeting "all gradients are in" to its end. */
int shmt_shm_has_batch(const struct shmt_shm_seat *p);
int shmt_shm_finish_batch(struct shmt_shm_seat *p);

/* update.c: the sum of subtree (level, index) over the floats at .. at + n - 1 (at most a block); NULL when it is zero. It stands in a
 * seat's buffer, or has been added up in scratch[0]; the blocks behind that one are for the subtrees below. */
__attribute__((nonnull)) const float *shmt_shm_sum_of(const struct shmt_shm_seat *p, uint32_t level, uint32_t index,
                                                      uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]);

/* far.c: that of another host's subtree, or of one of this host's, as the link has put it. */
const float *shmt_shm_far_sum(const struct shmt_store *store, uint32_t node, uint64_t at, uint64_t n);
