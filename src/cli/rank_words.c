/* Words that all hosts are given: see rank_words.h. */
#include "cli/rank_words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

char *rank_word(const char *word, uint32_t rank) {
    char *out;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    if (!f) return NULL;
    for (; *word; word++) {
        const bool is_rank = word[0] == '%' && word[1] == 'r', is_percent = word[0] == '%' && word[1] == '%';
        if (is_rank) fprintf(f, "%" PRIu32, rank);
        if (!is_rank) fputc(*word, f);
        word += is_rank || is_percent;
    }
    return fclose(f) == 0 ? out : NULL;
}
