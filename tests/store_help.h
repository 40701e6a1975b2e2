/* What the tests of the store room share: random numbers, sparse examples, and a small table with all that a span can show. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "update/kernels.h"

enum {
    ROWS = 203,
    EXAMPLES = 90,
    LONGEST = 40,
    LINES = (ROWS + SHMT_TOUCH_FLOATS - 1) / SHMT_TOUCH_FLOATS,
    PLANE = 211, /* floats from one state word to the next; more than there are rows */
    LOCKS = 32,  /* fewer than units, so that some units share one */
    OWNER = 3    /* what the span's owner writes into them */
};

/* A stream of random numbers; the seed stands in the test. */
struct dice {
    uint64_t seed, drawn;
};
static inline uint64_t roll(struct dice *d, uint64_t below) {
    return shmt_below(shmt_hash64(d->seed, d->drawn++, 0, 0), below);
}
static inline float draw(struct dice *d) { return (float)(2 * shmt_unit(shmt_hash64(d->seed, d->drawn++, 0, 0)) - 1); }

/* Examples, exactly as long as their arrays, so that AddressSanitizer sees a step beyond the end. */
struct examples {
    uint64_t start[EXAMPLES + 1];
    uint32_t *id, order[EXAMPLES];
    float *value;
};

static inline void make_examples(struct examples *x, struct dice *d) {
    x->id = malloc(EXAMPLES * LONGEST * sizeof *x->id);
    x->value = malloc(EXAMPLES * LONGEST * sizeof *x->value);
    uint64_t n = 0;
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        x->start[i] = n;
        x->order[i] = i;
        const uint64_t length = i % 8 == 3 ? 0 : roll(d, LONGEST + 1), first = roll(d, ROWS - 1);
        for (uint64_t j = 0; j < length; j++) {
            x->id[n] = (uint32_t)((first + 5 * j) % (ROWS - 1)); /* 202 and 5 have no common divisor: distinct */
            x->value[n++] = draw(d);
        }
    }
    x->start[EXAMPLES] = n;
    for (uint32_t i = EXAMPLES - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)roll(d, i + 1), kept = x->order[i];
        x->order[i] = x->order[other];
        x->order[other] = kept;
    }
    x->id = realloc(x->id, n * sizeof *x->id + (n == 0));
    x->value = realloc(x->value, n * sizeof *x->value + (n == 0));
}

static inline void free_examples(struct examples *x) {
    free(x->id);
    free(x->value);
}

/* Plain memory: it can be copied, compared, and shared with other processes. */
struct table {
    float weight[ROWS], grad[ROWS], share[ROWS], state[SHMT_MAX_PLANES * PLANE];
    _Atomic uint64_t counted[ROWS]; /* each with its weight (update/counted_priv.h) */
    _Atomic uint32_t lock[LOCKS];
    _Atomic uint32_t arrived; /* workers, so that they begin together */
    uint8_t touched[LINES];
};

static inline void make_table(struct table *t, struct dice *d) {
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < ROWS; i++) t->weight[i] = draw(d), t->share[i] = (float)(1 + roll(d, 50));
}

/* What a backend would give for this write mode and rule, without shares, map and counts. */
static inline struct shmt_span span_of(struct table *t, enum shmt_write write, enum shmt_rule_kind rule) {
    const bool live = write != SHMT_WRITE_AGGREGATE;
    const struct shmt_rule r = {.kind = rule};
    struct shmt_span span = {.weight = t->weight,
                             .sink = live ? t->weight : t->grad,
                             .state = live && shmt_rule_planes(&r, true) > 0 ? t->state : NULL,
                             .plane = PLANE,
                             .rows = ROWS,
                             .width = 1};
    if (write == SHMT_WRITE_LOCKED)
        span.locks = (struct shmt_locks){.word = t->lock, .first = 5, .mask = LOCKS - 1, .owner = OWNER};
    return span;
}

/* Whether the rule can be written so. */
static inline bool is_legal(enum shmt_write write, enum shmt_rule_kind rule) {
    const struct shmt_rule r = {.kind = rule, .momentum = 0.5f, .beta2 = 0.5f, .epsilon = 1, .beta = 1, .rho = 0.5f};
    return shmt_rule_check(&r, write, NULL) == 0;
}

/* A rule with constants at which every term counts. */
static inline struct shmt_rule rule_of(enum shmt_rule_kind kind, float l1, float l2) {
    return (struct shmt_rule){.kind = kind,
                              .l1 = l1,
                              .l2 = l2,
                              .momentum = 0.9f,
                              .beta2 = 0.99f,
                              .epsilon = 1e-3f,
                              .beta = 0.5f,
                              .rho = 0.95f,
                              .weight_decay = kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB ? l2 : 0};
}
