/* Numbers in lines behind whose break SHMT_LINE_PAD bytes may be read (row.h): as number.h, and most of them much faster.
 *
 * Called by the readers of lines, whose loops it is compiled into. */
#pragma once

#include "files/digits.h"
#include "files/number.h"
#include "files/short_number.h"

/* Short numbers again, by eight characters at a time. NULL: another road must be taken. */
static inline const char *shmt_number_by_eights(const char *p, float *out) {
    const uint64_t whole = shmt_eight(p);
    const uint32_t n = shmt_eight_digits(whole);
    uint64_t w = shmt_eight_value(whole, n);
    uint32_t n_behind = 0;
    p += n;
    if (n == 8) return NULL;
    if (*p == '.') {
        const uint64_t behind = shmt_eight(++p);
        n_behind = shmt_eight_digits(behind);
        w = w * SHMT_TEN_TO[n_behind] + shmt_eight_value(behind, n_behind);
        p += n_behind;
    }
    if (n_behind == 8) {
        const uint64_t further = shmt_eight(p);
        const uint32_t n_further = shmt_eight_digits(further);
        n_behind += n_further;
        if (n_further == 8 || n + n_behind > SHMT_DIGITS_MAX) return NULL;
        w = w * SHMT_TEN_TO[n_further] + shmt_eight_value(further, n_further);
        p += n_further;
    }
    if (n + n_behind == 0 || *p == 'e' || *p == 'E') return NULL;
    return shmt_short_value(w, n_behind, out) ? p : NULL;
}

/* As shmt_number_read. */
static inline const char *shmt_number_read_in_line(const char *text, locale_t c_locale, float *out) {
    const bool negative = *text == '-';
    const char *const end = shmt_number_by_eights(text + negative, out);
    if (!end) return shmt_number_read(text, c_locale, out);
    if (negative) *out = -*out;
    return end;
}
