/* The machine as a host: see host.h. The futex operations are the shared ones (not FUTEX_PRIVATE), because the word may lie in a
 * segment: the kernel then finds the queue by the page and not by the address. */
#include "sync/host.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct timespec timespec_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void sleep_until(uint64_t at_ns) {
    const struct timespec at = timespec_of(at_ns);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void yield(void) { sched_yield(); }

static void wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    const struct timespec limit = timespec_of(at_most_ns);
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0);
}

static void wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

const struct shmt_host_ops SHMT_HOST_MACHINE = {
    .now_ns = shmt_machine_ns,
    .sleep_until = sleep_until,
    .yield = yield,
    .wait = wait,
    .wake = wake,
    .shortest_sleep_ns = 100000}; /* a sleep takes some 60 us longer than it was told to (timer slack) */

const struct shmt_host_ops *_Atomic shmt_host_in_use = &SHMT_HOST_MACHINE;
