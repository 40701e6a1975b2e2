/*
 * Whether a sanitizer that watches memory is built in, by gcc's word for it or by clang's. Tests that limit memory or address
 * space ask: these sanitizers map terabytes, and keep what was freed.
 */
#ifndef SHMT_TESTS_SANITIZED_H
#define SHMT_TESTS_SANITIZED_H

#include "skip.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define SANITIZED 1
#    endif
#endif
#ifndef SANITIZED
#    define SANITIZED 0
#endif

/* Races are looked for, which one worker alone has not, and which are not seen between processes: each has a sanitizer of its own. */
#if defined(__SANITIZE_THREAD__)
#    define WATCHES_RACES 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define WATCHES_RACES 1
#    endif
#endif
#ifndef WATCHES_RACES
#    define WATCHES_RACES 0
#endif

/* For cases that show what is learned, with long runs: all that these execute, others execute, too. */
#define SKIP_LEARNING_IF_SANITIZED()                                          \
    do {                                                                      \
        if (SANITIZED) SKIP("what is learned does not depend on sanitizers"); \
    } while (0)

#endif
