/* Mistyped words: see near.h. The measure is the number of letters that were added, left out, replaced, or swapped with their
 * neighbour (Damerau 1964, each letter touched once). */
#include "cli/near.h"

#include <string.h>

#define LONGEST 32 /* of what is compared; nobody mistypes more */

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

static unsigned distance(const char *a, const char *b) {
    const size_t n = strlen(a), m = strlen(b);
    unsigned row[3][LONGEST + 1]; /* the one before the last, the last, this one */
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t j = 0; j <= m; j++) row[1][j] = (unsigned)j;
    memcpy(row[0], row[1], sizeof row[0]);
    for (size_t i = 1; i <= n; i++) {
        row[2][0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned d = least(least(row[1][j], row[2][j - 1]) + 1, row[1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d = least(d, row[0][j - 2] + 1);
            row[2][j] = d;
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][m];
}

struct near near_to(const char *word) {
    /* One letter in a short word, two in a longer one: beyond that it is another word. */
    return (struct near){.word = word, .distance = strlen(word) < 5 ? 2 : 3};
}

void near_offer(struct near *near, const char *candidate) {
    const unsigned d = distance(near->word, candidate);
    if (d >= near->distance || d >= strlen(candidate)) return;
    near->distance = d;
    near->best = candidate;
}
