/* Loops over independent tiles, shared out to threads by OpenMP.
 *
 * Called by dense models inside a work item. Tiles write to places of their own, and no sum goes across tiles: who computes one
 * changes no bit.
 *
 * The runtime is gcc's libgomp, called by its binary interface and loaded by the process that needs it, as OpenBLAS is. A
 * pragma would link it, and a program reads OMP_WAIT_POLICY when it starts, long before workers exist: threads that wait for
 * the end of a loop would spin for milliseconds by default, on cores that the others need (a busy machine of 2 cores trained
 * MNIST 20 times slower than with 1 thread). A worker loads it with threads that sleep.
 *
 * Processes that were forked by an application that uses OpenMP itself have its libgomp, but not its threads: they would hang
 * in their first region of more than one thread. Who forks asks shmt_parallel_is_inherited first. With one thread no region is
 * entered at all. Under ThreadSanitizer, which does not understand libgomp's waiting, there is always one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef void shmt_tile(void *arg, uint64_t i);

/* tile(arg, i) for i in 0 .. n - 1, on at most `threads` threads, the calling one included. Returns when all are done. Several
 * threads may call it at a time; each has helpers of its own. */
void shmt_parallel(uint32_t threads, uint64_t n, shmt_tile *tile, void *arg);

/* How many of `threads` threads are worth waking for a loop that takes one of them about `ns` nanoseconds: to wake a thread
 * that sleeps takes about as long as to wake a worker, some 50 microseconds. */
uint32_t shmt_parallel_worth(uint32_t threads, double ns);

/* Loads the runtime. False: there is none, and every loop runs on the thread that calls. */
bool shmt_parallel_open(void);

/* Before forking: whether children would have this process's runtime, so that their loops must run on one thread. */
bool shmt_parallel_is_inherited(void);
