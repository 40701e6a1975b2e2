/* Threads of our own: their stacks are as large as those of a process usually are, whatever limit this one was started with
 * (ulimit -s), which the system would take otherwise. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define SHMT_STACK_BYTES (UINT64_C(8) << 20) /* only touched pages are used */

/* As pthread_create. */
static inline int shmt_thread_start(pthread_t *thread, void *(*body)(void *), void *arg) {
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code != 0) return code;
    code = pthread_attr_setstacksize(&attributes, SHMT_STACK_BYTES);
    if (code == 0) code = pthread_create(thread, &attributes, body, arg);
    pthread_attr_destroy(&attributes);
    return code;
}
