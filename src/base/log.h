/* The library's voice: it never prints. What deserves a line without being an error (something that the kernel refused and that
 * we do without) goes to the callback that the application gave, or nowhere. */
#pragma once

struct shmt_log {
    void (*line)(void *arg, const char *text); /* NULL: silence. `text` is one line without its break */
    void *arg;
};

void shmt_log(const struct shmt_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
