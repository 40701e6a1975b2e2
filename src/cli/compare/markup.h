/* Text inside of HTML and SVG: what comes from outside (names of files, messages) is escaped, and is UTF-8 afterwards. What is
 * written is also well-formed XML. */
#ifndef SHMTRAIN_CLI_MARKUP_H
#define SHMTRAIN_CLI_MARKUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Text for elements and for attributes in double quotes: & < > " are escaped, bytes that are no UTF-8 and characters that XML
 * does not know become '?'. */
void markup_text(FILE *out, const char *text);
void markup_part(FILE *out, const char *text, size_t bytes); /* the first bytes of a longer text */

/* Likewise, formatted; at most 511 bytes. */
void markup_format(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void markup_arguments(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
