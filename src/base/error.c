/* Status codes with sentences: see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/show.h"

/* Macros for the analyser, see error.h; here stand the functions. */
#undef shmt_fail
#undef shmt_fail_errno
#undef shmt_refuse
#undef shmt_no_memory

static const char *const STATUS_NAMES[] = {
    "SHMTRAIN_OK",     "SHMTRAIN_E_USAGE",   "SHMTRAIN_E_MEMORY",  "SHMTRAIN_E_DATA",  "SHMTRAIN_E_SYSTEM",
    "SHMTRAIN_E_DIED", "SHMTRAIN_E_STOPPED", "SHMTRAIN_E_NUMBERS", "SHMTRAIN_E_AGAIN",
};

const char *shmtrain_status_name(int status) {
    const int n = (int)(sizeof STATUS_NAMES / sizeof *STATUS_NAMES);
    if (status > 0 || status <= -n) return "not a shmtrain status";
    return STATUS_NAMES[-status];
}

static int write_sentence(struct shmt_error *e, int status, const char *begin, const char *why, const char *format,
                          va_list args) {
    if (!e || e->status != 0) return status;
    SHMT_PLAIN_NUMBERS;
    size_t n = (size_t)snprintf(e->text, sizeof e->text, "%s", begin);
    n += (size_t)vsnprintf(e->text + n, sizeof e->text - n, format, args);
    if (why && n < sizeof e->text) snprintf(e->text + n, sizeof e->text - n, ": %s", why);
    shmt_show_plainly(e->text);
    e->status = status;
    return status;
}

int shmt_fail(struct shmt_error *e, int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_sentence(e, status, "", NULL, format, args);
    va_end(args);
    return status;
}

int shmt_refuse(struct shmt_error *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_sentence(e, SHMTRAIN_E_USAGE, "", NULL, format, args);
    va_end(args);
    return SHMTRAIN_E_USAGE;
}

int shmt_no_memory(struct shmt_error *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_sentence(e, SHMTRAIN_E_MEMORY, "not enough memory ", NULL, format, args);
    va_end(args);
    return SHMTRAIN_E_MEMORY;
}

/* The system's words, and a remedy where these are of a limit. */
static const char *words_for(int code, char out[160]) {
    const char *remedy = code == EMFILE   ? "; raise the limit (ulimit -n)"
                         : code == ENFILE ? "; raise the machine's limit (sysctl fs.file-max)"
                         : code == EFBIG  ? "; raise the limit (ulimit -f), or use another file system"
                                          : "";
    snprintf(out, 160, "%s%s", strerror(code), remedy);
    return out;
}

int shmt_fail_errno(struct shmt_error *e, const char *format, ...) {
    const int code = errno;
    char words[160];
    const int status = code == ENOMEM ? SHMTRAIN_E_MEMORY : SHMTRAIN_E_SYSTEM;
    va_list args;
    if (e && e->status == 0) e->code = code;
    va_start(args, format);
    write_sentence(e, status, "", words_for(code, words), format, args);
    va_end(args);
    return status;
}

void shmt_error_clear(struct shmt_error *e) { memset(e, 0, sizeof *e); }
