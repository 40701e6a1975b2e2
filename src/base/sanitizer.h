/* Which sanitizer is built in, by gcc's word for it or by clang's: each macro is 0 or 1. */
#pragma once

#if defined(__SANITIZE_THREAD__)
#    define SHMT_UNDER_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define SHMT_UNDER_TSAN 1
#    endif
#endif
#ifndef SHMT_UNDER_TSAN
#    define SHMT_UNDER_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#    define SHMT_UNDER_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SHMT_UNDER_ASAN 1
#    endif
#endif
#ifndef SHMT_UNDER_ASAN
#    define SHMT_UNDER_ASAN 0
#endif
