/* One collective operation, as a member is at it: what was asked for, and how far it has come. It never waits: `advance` does what can be
 * done and says, in the member's `wait`, for whom it would have to wait. */
#pragma once

#include "coll/fold.h"

struct shmtrain_group;

struct shmt_coll_op {
    uint32_t kind, algorithm; /* not AUTO */
    struct shmt_coll_fold fold;
    struct shmtrain_group *group;
    uint32_t root, each; /* bytes of an element */
    const unsigned char *in;
    unsigned char *out;
    uint64_t n;

    bool begun, lent;       /* lent: in and out lie in memory that everybody reads, and results are written there */
    uint32_t parity;        /* of its notes */
    uint64_t sign, base;    /* base: the tick before its first one */
    uint64_t piece, pieces; /* elements of a block that are laid out at a time, and how often */
    uint64_t laid, read;    /* ticks since then that I have laid out, and read */

    /* messages.c */
    uint32_t step;
    uint64_t chunk;
    bool sent;
    unsigned char *work; /* the array that messages are of */
    bool owns_work;
};
