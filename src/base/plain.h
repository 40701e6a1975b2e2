/* Numbers as plain text: with a point, whatever the application's locale says.
 *
 * Called wherever the library writes or reads fractions. The locale is set for the calling thread alone and put back, so the
 * application's own threads, and its listeners, notice nothing. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

struct shmt_plain_numbers {
    locale_t before; /* 0: there was no memory (never with glibc, whose C locale is a constant), nothing was changed */
};

struct shmt_plain_numbers shmt_plain_numbers_begin(void);
void shmt_plain_numbers_end(const struct shmt_plain_numbers *numbers);

/* A declaration: from here to the end of the block, however it is left. */
#define SHMT_PLAIN_NUMBERS                                                                             \
    __attribute__((cleanup(shmt_plain_numbers_end), unused)) const struct shmt_plain_numbers numbers = \
        shmt_plain_numbers_begin()

/* A whole number of decimal digits, and nothing else: strtoull takes signs and blanks, too. */
bool shmt_plain_count(const char *text, uint64_t *out);

/* A number of at most 31 digits and a point, and nothing else that strtod knows: what follows it; NULL: there is none. */
const char *shmt_plain_decimal(const char *text, double *out);

/* The whole text is a number from 0 on as everybody writes it, of at most 31 characters: 2, 0.5, .5, 1e-5. No signs before it, blanks,
 * hexadecimals, nor names that strtod knows. One that is too large is infinite. */
bool shmt_plain_real(const char *text, double *out);
