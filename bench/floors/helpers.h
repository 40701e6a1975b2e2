/* What all measuring shares: memory, helpers that run in step on cores of their own, a ball between two cores.
 *
 * Called by shmtrain bench (measure/measure.c) and by the programs in bench/. A measuring process has one
 * thread, and what goes wrong in it ends it, with a sentence. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

#define SHMT_MOST_HELPERS 64

/* Who says the sentence: else it goes to stderr, behind "bench: ". Of this process, and of helpers that are forked from now on. */
void shmt_measure_on_failure(void (*say)(const char *sentence));

/* Has the sentence told, and ends this process with status 1. */
void shmt_measure_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- memory ---- */

/* Zeroed memory of small pages that forked helpers share, as the segments of the library are; pages are there. */
void *shmt_measure_shared(uint64_t bytes);
/* The same, but its pages come to be where they are first used: on the node of the helper that does so. */
void *shmt_measure_shared_later(uint64_t bytes);
void shmt_measure_unshare(void *at, uint64_t bytes);

/* The last-level cache; 32 MiB where it is not known. */
uint64_t shmt_measure_cache_bytes(void);

/* ---- helpers ---- */

/* Cores that workers would have, as of the first question: a process that is bound sees one. At most SHMT_MOST_HELPERS. */
uint32_t shmt_measure_cores(void);

/* Binds the calling process to core number `core` of these, counted around; to the first two of them. Where the system refuses,
 * it runs all the same. */
void shmt_measure_pin(uint32_t core);
void shmt_measure_pin_to_two(void);

/* Runs body(arg, 0 .. n-1) in n forked processes, each bound to its core, and waits for all; a failure, or more than ten
 * minutes, ends this process, too. */
void shmt_helpers_run(uint32_t n, void (*body)(void *arg, uint32_t rank), void *arg);

/* A meeting of n: each spins until all others have come as often as itself. In shared memory, zeros at first. */
struct shmt_meeting {
    struct {
        _Alignas(128) _Atomic uint32_t come;
    } of[SHMT_MOST_HELPERS];
};
void shmt_meet_all(struct shmt_meeting *m, uint32_t rank, uint32_t n);
void shmt_meet(struct shmt_meeting *m, uint32_t rank); /* of two */

/* A ball on a line of its own, 0 at first, that two hit in turns: trip 0, 1, ... of each. A trip is the way of a cache line to
 * the other core and back. (With a pause in the loop, which is faster: who looks without one gets in the hitter's way.) */
void shmt_hit(_Atomic uint32_t *ball, uint32_t rank, uint32_t trip);
