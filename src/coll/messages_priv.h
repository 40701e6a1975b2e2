/* The steps of the textbook's algorithms, as functions of kind, algorithm, members and place. */
#pragma once

#include "coll/member.h"

#define SHMT_COLL_NOBODY UINT32_MAX

/* Blocks first, first + 1, ... around the circle, `n` of them; or, where the step has a bit, all whose number has it. */
struct shmt_coll_blocks {
    uint32_t first, n;
};

/* What a member sends and receives in one step; either may be nothing. Blocks are those of the member's own array. */
struct shmt_coll_step {
    uint32_t to, from; /* SHMT_COLL_NOBODY: none */
    struct shmt_coll_blocks send, recv;
    uint32_t bit;
    uint32_t most;     /* blocks that any member sends in this step: all count as many ticks */
    bool folds, first; /* what comes is folded into what is there; it is the first operand */
    bool sends_in;     /* from `in`, and not from the array */
};

/* Step s of the operation, from 0. False: it has no more. */
bool shmt_coll_step_of(const struct shmt_coll_op *op, uint32_t s, struct shmt_coll_step *out);

/* Where block b of the operation's array begins, in elements: blocks are of n elements, or the n elements are cut into as many blocks as
 * there are members. Of any number of members up to SHMTRAIN_COLLECTIVE_WORKERS. */
uint64_t shmt_coll_block_begin(const struct shmt_coll_op *op, uint32_t b);
uint64_t shmt_coll_block_most(const struct shmt_coll_op *op); /* elements of the largest */
