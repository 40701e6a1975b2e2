/* Numbers as plain text: with a point, whatever the application's locale says.
 *
 * Called wherever the library writes or reads fractions. The locale is set for the calling thread alone and put back, so the
 * application's own threads, and its listeners, notice nothing. */
#ifndef SHMT_BASE_PLAIN_H
#define SHMT_BASE_PLAIN_H

#include <locale.h>

struct shmt_plain_numbers {
    locale_t before; /* 0: there was no memory (never with glibc, whose C locale is a constant), nothing was changed */
};

struct shmt_plain_numbers shmt_plain_numbers_begin(void);
void shmt_plain_numbers_end(const struct shmt_plain_numbers *numbers);

/* A declaration: from here to the end of the block, however it is left. */
#define SHMT_PLAIN_NUMBERS                                                                             \
    __attribute__((cleanup(shmt_plain_numbers_end), unused)) const struct shmt_plain_numbers numbers = \
        shmt_plain_numbers_begin()

#endif
