/* Rounds that send less than has changed (rounds.c): floats rounded to bfloat16 (--wire bf16), or a share of the blocks that have
 * changed, those with the largest changes (--top-k; Aji and Heafield 2017, Lin et al. 2018). What is not sent is not lost: a host's
 * change is what its parameters differ in from the base that all hosts have, and only what the others have got of it becomes part of
 * the base. The rest stays a difference, and goes with a later round (error feedback: Seide et al. 2014, Stich et al. 2018):
 *
 *     mine += (base' - base) - gone       gone: what was sent, or, where shares of changes are sent, the change that it is the share of
 *
 * What rounding has left of a float goes when workers have changed the float again: by itself it would cost as much as the change, and
 * count as one where means are over those who have changed a float. A block that was not chosen is sent by other hosts in other rounds;
 * so with --top-k a mean is over all hosts, whoever has changed it, as it is for replicas that merge alone (update/merge.h).
 * From the moment when a host's workers rest, it sends everything that is left, as it is: so the round that ends an epoch, in which all
 * rest, loses nothing.
 *
 * Whole blocks are chosen, not floats: messages stay as they are, and a number for each block says which to send. */
#pragma once

#include <stdbool.h>

#include "link/exchange_priv.h"

/* Sets x->feedback, or leaves it NULL, where everything is sent as it is. _MEMORY */
int shmt_feedback_plan(struct shmt_exchange *x);
void shmt_feedback_free(struct shmt_exchange *x);

/* All that follows is for runs that have x->feedback. */

/* The base is set, and what workers have is the same. */
void shmt_feedback_start(struct shmt_exchange *x);

/* A round begins. `whole`: this host sends all that has changed, as it is. */
void shmt_feedback_begin(struct shmt_exchange *x, bool whole);
bool shmt_feedback_sends_halves(const struct shmt_exchange *x); /* in this round; also without x->feedback */
bool shmt_feedback_chooses(const struct shmt_exchange *x);      /* likewise */

bool shmt_feedback_counts_all(const struct shmt_exchange *x); /* means are over all hosts; likewise */

/* Whether a block that reads `now` and, by `differs`, is not what the base is, may be sent. Before it becomes x->seen. */
bool shmt_feedback_is_due(struct shmt_exchange *x, uint64_t block, bool differs, const float *now);

/* Examples of this host that have their part in the block's change. */
uint64_t shmt_feedback_examples(const struct shmt_exchange *x, uint64_t block);

/* x->change is what would be sent of the block (n floats), and becomes what is. share: of x->seen less x->base; NULL: all of it. was:
 * what x->seen was before. */
void shmt_feedback_round(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *share, const float *was);

/* All blocks have been looked at: x->changed stays 1 for those that are sent. */
void shmt_feedback_choose(struct shmt_exchange *x);

/* What this host's parameters change by (n floats), when the base, which is still x->base, becomes `base`. */
void shmt_feedback_bring(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *base, float *change_out);

#define SHMT_ROUNDING 256 /* times as large: bfloat16 has 8 bits of precision */

/* How many hosts have changed a float, and by how much the one who did most. What is hundreds of times smaller than that is what
 * rounding has left, on the wire or in additions, and no part of a mean. */
static inline void shmt_feedback_count(float size, float *most, float *changed) {
    const bool is_far_more = size > SHMT_ROUNDING * *most, counts = is_far_more || (size > 0 && SHMT_ROUNDING * size >= *most);
    *changed = is_far_more ? 1 : *changed + (float)counts;
    if (size > *most) *most = size;
}
