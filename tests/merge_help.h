/* What the tests of merging share: some replicas with a master and bases of their own, before a merge and after it. */
#pragma once

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "update/merge.h"

enum { MOST = 8, N = 1000 }; /* replicas; floats: some steps, and one that is not whole */

struct copies {
    float master[N], replica[MOST][N], base[MOST][N];
    float *at[MOST];
};

static struct copies *before, *after;

static inline int make_copies(void **state) {
    (void)state;
    alarm(120);
    before = calloc(1, sizeof *before);
    after = calloc(1, sizeof *after);
    return before && after ? 0 : -1;
}

static inline int free_copies(void **state) {
    (void)state;
    free(before);
    free(after);
    return 0;
}

static inline float number(uint64_t a, uint64_t b, uint64_t c) { return (float)(shmt_unit(shmt_hash64(a, b, c, 5)) * 4 - 2); }

/* Replicas that equal the master but for about `tenths` of their words, none in places 200 .. 599; the bases equal the master
 * or, with `apart`, are older than it. */
static inline void fill(uint32_t tenths, bool positive, bool apart) {
    for (uint32_t i = 0; i < N; i++) {
        const float m = number(i, 99, 1);
        before->master[i] = positive ? fabsf(m) : m;
        for (uint32_t k = 0; k < MOST; k++) {
            const bool older = apart && shmt_hash64(i, k, 3, 3) % 3 == 0;
            const float b = older ? number(i, k, 4) : m, r = number(i, k, 2);
            const bool moved = (i < 200 || i >= 600) && shmt_hash64(i, k, 7, 7) % 10 < tenths;
            before->base[k][i] = positive ? fabsf(b) : b;
            before->replica[k][i] = moved ? (positive ? fabsf(r) : r) : before->base[k][i];
        }
    }
    for (uint32_t k = 0; k < MOST; k++) before->at[k] = before->replica[k];
    memcpy(after, before, sizeof *after);
    for (uint32_t k = 0; k < MOST; k++) after->at[k] = after->replica[k];
}

static inline bool same_bits(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

/* Of numbers below 2 in size, a few roundings. */
static inline void assert_near(float got, double expected) {
    if (!(fabs((double)got - expected) < 8 * (double)FLT_EPSILON * fmax(1, fabs(expected))))
        fail_msg("%.9g instead of %.9g", (double)got, expected);
}
