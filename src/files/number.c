/* Decimal text to a float: see number.h.
 *
 * The idea is Clinger's (1990): digits w and a small power of ten are exact in double, so one multiplication or division gives
 * their value with a relative error below 2^-52. Rounding that to float is right unless the double lies within its own error of
 * the middle between two floats, which its last 29 bits show. Those cases, and powers of ten beyond 22, go to strtof_l. */
#include "files/number.h"

#include <stdlib.h>
#include <string.h>

#include "files/short_number.h"

#define MAX_POWER 22   /* 10^22 is the last power of ten that a double holds exactly */
#define SURE_MAX  3e38 /* below FLT_MAX */

static const double POWER_OF_TEN[MAX_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number taken apart: w * 10^exponent. Digits behind the 19th are left out of w; they are less than its double's own
 * error. */
struct decimal {
    uint64_t w;
    int64_t exponent;
    uint32_t n_digits; /* of w, leading zeros not counted */
    bool any;
};

/* if_dropped: what the exponent gains when there is no room for the digit, 1 before the point and 0 behind it; one less
 * otherwise. */
static inline void take_digit(struct decimal *d, char c, int64_t if_dropped) {
    if (d->n_digits < SHMT_DIGITS_MAX) {
        d->w = 10 * d->w + (uint64_t)(c - '0');
        d->n_digits += d->w != 0;
        d->exponent += if_dropped - 1;
    } else {
        d->exponent += if_dropped;
    }
}

static const char *take_exponent(const char *p, struct decimal *d) {
    const char *digits = p + 1;
    const bool negative = *digits == '-';
    if (*digits == '-' || *digits == '+') digits++;
    if (!shmt_is_digit(*digits)) return p; /* "3e" is 3 and a stray letter, which the caller refuses */
    int64_t exponent = 0;
    for (; shmt_is_digit(*digits); digits++) {
        if (exponent < 1000000) exponent = 10 * exponent + (*digits - '0');
    }
    d->exponent += negative ? -exponent : exponent;
    return digits;
}

static const char *parse_decimal(const char *p, struct decimal *d) {
    for (; shmt_is_digit(*p); p++) {
        take_digit(d, *p, 1);
        d->any = true;
    }
    if (*p == '.') {
        for (p++; shmt_is_digit(*p); p++) {
            take_digit(d, *p, 0);
            d->any = true;
        }
    }
    if (d->any && (*p == 'e' || *p == 'E')) p = take_exponent(p, d);
    return p;
}

static bool fast_value(const struct decimal *d, float *out) {
    if (d->w == 0) {
        *out = 0;
        return true;
    }
    if (d->exponent == 0 && d->w <= (uint64_t)1 << 53) {
        *out = (float)(double)d->w; /* exact as a double, so rounded once */
        return true;
    }
    if (d->exponent < -MAX_POWER || d->exponent > MAX_POWER) return false;
    const double x = d->exponent < 0 ? (double)d->w / POWER_OF_TEN[-d->exponent] : (double)d->w * POWER_OF_TEN[d->exponent];
    if (x > SURE_MAX || !shmt_rounds_surely(x)) return false;
    *out = (float)x;
    return true;
}

/* What most numbers are: digits with a point, at most 19 of them (of more w is nonsense, and is not looked at). NULL: another road
 * must be taken. */
static inline const char *read_short(const char *p, float *out) {
    const char *const start = p;
    uint64_t w = 0;
    for (; shmt_is_digit(*p); p++) w = 10 * w + (uint64_t)(*p - '0');
    uint64_t n = (uint64_t)(p - start), n_behind = 0;
    if (*p == '.') {
        const char *const point = p++;
        for (; shmt_is_digit(*p); p++) w = 10 * w + (uint64_t)(*p - '0');
        n_behind = (uint64_t)(p - point) - 1;
        n += n_behind;
    }
    if (n == 0 || n > SHMT_DIGITS_MAX || *p == 'e' || *p == 'E') return NULL;
    return shmt_short_value(w, n_behind, out) ? p : NULL;
}

/* Ended by a zero, as the C library wants it. */
static void copy_number(const char *text, const char *end, char out[SHMT_NUMBER_MAX + 1]) {
    const size_t n = (size_t)(end - text);
    memcpy(out, text, n);
    out[n] = 0;
}

static float slow_value(const char *text, const char *end, locale_t c_locale) {
    char copy[SHMT_NUMBER_MAX + 1];
    copy_number(text, end, copy);
    return strtof_l(copy, NULL, c_locale);
}

static const char *__attribute__((noinline)) read_any(const char *start, bool negative, locale_t c_locale, float *out) {
    struct decimal d = {0};
    const char *end = parse_decimal(start, &d);
    if (!d.any || end - start > SHMT_NUMBER_MAX) return NULL;
    float value;
    if (!fast_value(&d, &value)) value = slow_value(start, end, c_locale);
    *out = negative ? -value : value;
    return end;
}

const char *shmt_number_read(const char *text, locale_t c_locale, float *out) {
    const bool negative = *text == '-';
    const char *start = text + (negative || *text == '+');
    float quick;
    const char *end = read_short(start, &quick);
    if (end) {
        *out = negative ? -quick : quick;
        return end;
    }
    return read_any(start, negative, c_locale, out);
}

/* Digits and power of ten are exact, so the value is rounded once. */
static bool fast_exact(const struct decimal *d, double *out) {
    if (d->w > (uint64_t)1 << 53 || d->exponent < -MAX_POWER || d->exponent > MAX_POWER) return false;
    *out = d->exponent < 0 ? (double)d->w / POWER_OF_TEN[-d->exponent] : (double)d->w * POWER_OF_TEN[d->exponent];
    return true;
}

double shmt_number_exact(const char *text, const char *end, locale_t c_locale) {
    const bool negative = *text == '-';
    const char *start = text + (negative || *text == '+');
    struct decimal d = {0};
    char copy[SHMT_NUMBER_MAX + 1];
    double value;
    (void)parse_decimal(start, &d);
    if (!fast_exact(&d, &value)) {
        copy_number(start, end, copy);
        value = strtod_l(copy, NULL, c_locale);
    }
    return negative ? -value : value;
}
