/* The log callback: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void shmt_log(const struct shmt_log *log, const char *format, ...) {
    if (!log || !log->line) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log->line(log->arg, text);
}
