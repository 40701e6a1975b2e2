/* The kernel's wait queue on a 32-bit word, between threads and between processes that map the word at different addresses. */
#ifndef SHMT_SYNC_FUTEX_H
#define SHMT_SYNC_FUTEX_H

#include <stdint.h>

#include "base/atomic.h"

/* Sleeps while *word is `expected`, at most `at_most_ns`. Returns for any reason (woken, another value, time over, a signal):
 * the caller looks again at what it waits for. */
void shmt_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns);

/* Wakes everybody who sleeps on *word. */
void shmt_futex_wake(_Atomic uint32_t *word);

#endif
