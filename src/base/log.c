/* The log callback: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/plain.h"

void shmt_log(const struct shmt_log *log, const char *format, ...) {
    if (!log || !log->line) return;
    char text[512];
    va_list args;
    const struct shmt_plain_numbers numbers = shmt_plain_numbers_begin();
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shmt_plain_numbers_end(&numbers);
    log->line(log->arg, text); /* in the application's own locale */
}
