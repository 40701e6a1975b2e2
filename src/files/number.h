/* Decimal text to a float, correctly rounded (what strtof gives in the "C" locale), fast for the numbers that files contain.
 *
 * Called by the LIBSVM reader for labels and values. Relies on the text ending in a character that belongs to no number (the
 * reader's lines end in a line break), so that no length is needed. */
#pragma once

#include <locale.h>
#include <stdbool.h>

/* The longest number; a longer one is not a number but a broken file. */
#define SHMT_NUMBER_MAX 512

/* Reads [+-] digits [. digits] [e [+-] digits], with at least one digit before the exponent, from the start of `text`; stores
 * its value and returns the first character behind it; the value is infinite when the number is beyond the range of float. NULL
 * when there is no number ("nan" and "inf" are words). `c_locale`: the "C" locale, for the rare numbers that strtof_l must
 * decide. */
const char *shmt_number_read(const char *text, locale_t c_locale, float *out);

/* The same number as a double, correctly rounded: text that shmt_number_read has read up to `end`. */
double shmt_number_exact(const char *text, const char *end, locale_t c_locale);

static inline bool shmt_is_digit(char c) { return (unsigned char)(c - '0') < 10; }
