/* A status code with its sentence.
 *
 * The code that sees a failure first writes the sentence; everybody above passes the status on. The struct is plain memory: it
 * may lie in a shared segment, where a worker leaves it for its parent. */
#pragma once

#include <shmtrain/status.h>

#define SHMT_ERROR_TEXT 504

struct shmt_error {
    int status; /* 0: nothing happened */
    int code;   /* what errno was, where the system has refused (shmt_fail_errno); else 0 */
    char text[SHMT_ERROR_TEXT];
};

/* Writes the sentence (no full stop at its end, no line break) and returns `status`. A first failure is not overwritten.
 * `e` may be NULL: then only the status is returned. */
int shmt_fail(struct shmt_error *e, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the words for errno at the end; status SHMTRAIN_E_SYSTEM, or _MEMORY where errno is ENOMEM. */
int shmt_fail_errno(struct shmt_error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what the caller has asked for wrongly, status SHMTRAIN_E_USAGE; and for what there is no memory for: the sentence is
 * "not enough memory ", with "for ..." or "to ..." behind it, status SHMTRAIN_E_MEMORY. */
int shmt_refuse(struct shmt_error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
int shmt_no_memory(struct shmt_error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

void shmt_error_clear(struct shmt_error *e);

/* clang's analyser looks at one file at a time and does not see that these never return 0; so it is told. */
#ifdef __clang_analyzer__
#    define shmt_fail(e, status, ...) ((void)(shmt_fail)((e), (status), __VA_ARGS__), (status))
#    define shmt_fail_errno(e, ...)   ((void)(shmt_fail_errno)((e), __VA_ARGS__), SHMTRAIN_E_SYSTEM)
#    define shmt_refuse(e, ...)       ((void)(shmt_refuse)((e), __VA_ARGS__), SHMTRAIN_E_USAGE)
#    define shmt_no_memory(e, ...)    ((void)(shmt_no_memory)((e), __VA_ARGS__), SHMTRAIN_E_MEMORY)
#endif
