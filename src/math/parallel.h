/* Loops over independent tiles, shared out to threads by OpenMP.
 *
 * Called by dense models inside a work item. Tiles write to places of their own, and no sum goes across tiles: who computes one
 * changes no bit.
 *
 * With one thread no OpenMP region is entered at all. A forked child of an application that has used OpenMP would hang in its
 * first region of more than one thread, because the threads of the parent's pool are not there; with one thread it is safe.
 * Without OpenMP in the compiler (configure says so) everything runs on the calling thread. */
#ifndef SHMT_MATH_PARALLEL_H
#define SHMT_MATH_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

typedef void shmt_tile(void *arg, uint64_t i);

/* tile(arg, i) for i in 0 .. n - 1, on at most `threads` threads, the calling one included. Returns when all are done. */
void shmt_parallel(uint32_t threads, uint64_t n, shmt_tile *tile, void *arg);

/* Whether more than one thread is ever used. */
bool shmt_parallel_works(void);

#endif
