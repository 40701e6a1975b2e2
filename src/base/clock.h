/* Time: nanoseconds of the monotonic clock, the same in all processes of one machine. */
#ifndef SHMT_BASE_CLOCK_H
#define SHMT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t shmt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
