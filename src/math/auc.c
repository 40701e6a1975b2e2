/* The area under the ROC curve: see auc.h. Scores become whole numbers in the same order, positives and negatives are sorted
 * apart, and one walk over both counts the pairs in which the positive wins. */
#include "math/auc.h"

#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 3, BUCKETS = 1 << DIGIT_BITS };

uint64_t shmt_auc_scratch_bytes(uint64_t n) { return n * 2 * sizeof(uint32_t); }

/* Keys compare as the floats do: a negative float's bits are turned round, a positive one goes above all of them. */
static uint32_t key_of(float score) {
    const float x = score + 0.0f; /* -0 and 0 are equal, so they need one key */
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static void sort_by_digit(const uint32_t *from, uint32_t *to, uint64_t n, int shift) {
    uint64_t place[BUCKETS] = {0}, next = 0;
    for (uint64_t i = 0; i < n; i++) place[from[i] >> shift & (BUCKETS - 1)]++;
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        const uint64_t count = place[bucket];
        place[bucket] = next;
        next += count;
    }
    for (uint64_t i = 0; i < n; i++) to[place[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
}

/* Sorts key (n), least digit first. The result is in `spare`, since the number of digits is odd. */
static void sort_keys(uint32_t *key, uint32_t *spare, uint64_t n) {
    for (int digit = 0; digit < DIGITS; digit++) {
        uint32_t *from = digit % 2 ? spare : key, *to = digit % 2 ? key : spare;
        sort_by_digit(from, to, n, digit * DIGIT_BITS);
    }
}

/* Twice the pairs that the positive wins, a tie being half a win: at most 2 * (2^31)^2, which fits. */
static uint64_t count_wins(const uint32_t *positive, uint64_t n_positive, const uint32_t *negative, uint64_t n_negative) {
    uint64_t wins = 0, below = 0, not_above = 0;
    for (uint64_t i = 0; i < n_positive; i++) {
        while (below < n_negative && negative[below] < positive[i]) below++;
        while (not_above < n_negative && negative[not_above] <= positive[i]) not_above++;
        wins += below + not_above;
    }
    return wins;
}

double shmt_auc(const float *score, const float *label, float threshold, uint64_t n, void *scratch) {
    uint32_t *key = scratch, *spare = key + n;
    uint64_t n_positive = 0, n_negative = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (isnan(score[i])) return NAN;
        if (label[i] >= threshold)
            key[n_positive++] = key_of(score[i]);
        else
            key[n - ++n_negative] = key_of(score[i]);
    }
    if (n_positive == 0 || n_negative == 0) return NAN;
    sort_keys(key, spare, n_positive);
    sort_keys(key + n_positive, spare + n_positive, n_negative);
    const uint64_t wins = count_wins(spare, n_positive, spare + n_positive, n_negative);
    return (double)wins / (2.0 * (double)n_positive * (double)n_negative);
}
