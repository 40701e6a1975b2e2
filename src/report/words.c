/* Numbers as words of a line, and lines of words: see words_priv.h. */
#include "report/words_priv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/sized.h"

const char *shmt_short_number(double x, char out[16]) {
    static const char *const UNITS[] = {"", " k", " M", " G", " T"};
    size_t unit = 0;
    if (!(x >= 0 && x < 1e16)) { /* nothing that a run does, but it must not break the line */
        snprintf(out, 16, "%.3g", x);
        return out;
    }
    while (x >= 10000 && unit + 1 < sizeof UNITS / sizeof *UNITS) {
        x /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(out, 16, "%.0f", x);
    else
        snprintf(out, 16, "%.*f%s", x < 10 ? 2 : x < 100 ? 1 : 0, x, UNITS[unit]);
    return out;
}

const char *shmt_grouped_number(double x, char out[16]) {
    const double whole = x + 0.5;
    if (!(x >= 0 && whole < 1e7)) return shmt_short_number(x, out);
    const uint32_t n = (uint32_t)whole;
    if (x < 1)
        snprintf(out, 16, "%.2g", x);
    else if (x < 10 && (double)(uint32_t)x < x)
        snprintf(out, 16, "%.1f", x);
    else if (n < 1000)
        snprintf(out, 16, "%" PRIu32, n);
    else if (n < 1000000)
        snprintf(out, 16, "%" PRIu32 ",%03" PRIu32, n / 1000, n % 1000);
    else
        snprintf(out, 16, "%" PRIu32 ",%03" PRIu32 ",%03" PRIu32, n / 1000000, n / 1000 % 1000, n % 1000);
    return out;
}

const char *shmt_plural(uint64_t n) { return n == 1 ? "" : "s"; }

void shmt_add(char *out, size_t bytes, const char *format, ...) {
    const size_t used = bytes > 0 ? strlen(out) : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

void shmt_add_number(char *out, size_t bytes, int width, int digits, double x) {
    if (snprintf(NULL, 0, "%.*f", digits, x) <= width)
        shmt_add(out, bytes, "%.*f", digits, x);
    else if (snprintf(NULL, 0, "%.0f", x) <= width)
        shmt_add(out, bytes, "%.0f", x);
    else
        shmt_add(out, bytes, "%.3g", x);
}

char *shmt_text_by(void (*put)(FILE *out, const char *name, const void *what), const char *name, const void *what,
                   size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    char *text = NULL;
    size_t length = 0;
    void *room = malloc(bytes > 0 ? bytes : 1);
    FILE *out = room ? open_memstream(&text, &length) : NULL;
    int failed = !out;
    if (out) {
        put(out, name, shmt_sized_whole(what, room, bytes));
        failed = ferror(out);
        failed |= fclose(out);
    }
    free(room);
    if (!failed) return text;
    free(text);
    return NULL;
}

/* ---- lines of words ---- */

size_t shmt_column_of(const char *out) {
    const char *line = strrchr(out, '\n');
    return strlen(line ? line + 1 : out);
}

static void begin_line(char *out, size_t bytes) { shmt_add(out, bytes, "\n%*s", SHMT_HEAD_COLUMNS, ""); }

void shmt_add_item(char *out, size_t bytes, int is_first, const char *format, ...) {
    char item[128] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(item, sizeof item, format, args);
    va_end(args);
    if (!is_first) shmt_add(out, bytes, ",");
    const size_t more = strlen(item) + (is_first ? 0 : 1);
    if (shmt_column_of(out) + more + 1 > SHMT_LINE_COLUMNS) /* room for a comma behind it */
        begin_line(out, bytes);
    else if (!is_first)
        shmt_add(out, bytes, " ");
    shmt_add(out, bytes, "%s", item);
}

void shmt_add_words(char *out, size_t bytes, const char *words) {
    int is_first = 1;
    while (*words) {
        const size_t n = strcspn(words, " ");
        if (!is_first && shmt_column_of(out) + 1 + n > SHMT_LINE_COLUMNS)
            begin_line(out, bytes);
        else if (!is_first)
            shmt_add(out, bytes, " ");
        shmt_add(out, bytes, "%.*s", (int)n, words);
        words += n + strspn(words + n, " ");
        is_first = 0;
    }
}
