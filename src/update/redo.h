/* Redo: what a step of a merge brings out, kept before master and copies get it, so that whoever comes after the death of the
 * one who merges can write it forward: a step that is half written cannot be done again from what stands there, because a
 * copy that was not written yet looks as if it had changed. Kept by merge.c, written forward by the backend, when the process
 * is gone.
 *
 * One word says that the log counts; it is stored when the log is there, and taken back when all is written. Both are in memory
 * of the store, and have one writer; fences for the compiler are enough, as in undo.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/point.h"

#define SHMT_REDO_FLOATS 128
#define SHMT_REDO_ALL    UINT32_MAX /* instead of a replica: all are equal to the master behind the step */

/* In the store. */
struct shmt_redo_log {
    uint64_t at;                  /* the first of n floats, as replicas count them */
    uint32_t n;                   /* at most SHMT_REDO_FLOATS */
    uint32_t word;                /* 0: weights, or 1 + the plane of the state */
    uint32_t replica;             /* which one is merged alone, and then has its changes in the master; or SHMT_REDO_ALL */
    uint32_t beside;              /* 1: others push to it meanwhile; 0: nobody does */
    float out[SHMT_REDO_FLOATS];  /* (n) what the master becomes */
    float from[SHMT_REDO_FLOATS]; /* (n) beside: what the replica was, of which the master gets what is new */
};

/* What the one who merges says of the floats that a call is handed. */
struct shmt_redo {
    _Atomic uint64_t *open; /* 0: the log says nothing */
    struct shmt_redo_log *log;
    uint64_t at; /* the number of the call's float 0, as replicas count them */
    uint32_t word, replica;
};

/* Room for what a step brings out, and for a look at the replica: in the log, or, where nobody would write it forward (redo
 * NULL), the caller's own. */
static inline float *shmt_redo_room(const struct shmt_redo *redo, float *own) { return redo ? redo->log->out : own; }

static inline float *shmt_redo_look(const struct shmt_redo *redo, float *own) { return redo ? redo->log->from : own; }

/* The room is filled for n floats from the call's float `at` on; from now on they are written. */
static inline void shmt_redo_open(const struct shmt_redo *redo, uint64_t at, uint64_t n, bool beside) {
    if (!redo) return;
    redo->log->at = redo->at + at;
    redo->log->n = (uint32_t)n;
    redo->log->word = redo->word;
    redo->log->replica = redo->replica;
    redo->log->beside = beside;
    fence_compiler();
    store_relaxed(redo->open, 1); /* relaxed, here and below: read after my death only */
    fence_compiler();
    SHMT_POINT("merge:logged");
}

/* All of them are written. */
static inline void shmt_redo_close(const struct shmt_redo *redo) {
    SHMT_POINT("merge:written");
    if (!redo) return;
    fence_compiler();
    store_relaxed(redo->open, 0);
    fence_compiler();
}
