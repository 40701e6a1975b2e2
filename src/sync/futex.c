/* Futexes, thinly: see futex.h. Called by gate.c. The operations are the shared ones (not FUTEX_PRIVATE), because the word
 * may lie in a segment: the kernel then finds the queue by the page and not by the address. */
#include "sync/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void shmt_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    const struct timespec limit = {.tv_sec = (time_t)(at_most_ns / 1000000000u), .tv_nsec = (long)(at_most_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0);
}

void shmt_futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }
