/* The machine's clock: nanoseconds of the monotonic one, the same in all processes of one machine. Runs ask sync/host.h instead. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t shmt_machine_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
