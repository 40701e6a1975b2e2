/* Seeds of tests/test_seeds.c that fail: each run is one of a child, which says on a shared page what it is at. When it fails, or
 * crashes, the parent tries the same seed, and some others, with fewer workers, epochs, examples and delays as long as one still breaks the
 * same promise, and prints the command for the smallest. A run is a function of these numbers alone, so that command shows it again.
 *
 * The parent calls seeds_search; all others are called by the child, on any stack. */
#pragma once

#include "conformance.h"

/* What may be smaller. UNTIL, DELAYS: of the delays that a seed draws those before the UNTIL-th are made, and of these the last
 * DELAYS; all others are none. */
enum seeds_knob { SEEDS_WORKERS, SEEDS_EPOCHS, SEEDS_EXAMPLES, SEEDS_ITEM, SEEDS_UNTIL, SEEDS_DELAYS, SEEDS_KNOBS };

struct seeds_case {
    struct kase kase;
    uint64_t seed;
    uint64_t knob[SEEDS_KNOBS]; /* that of workers is kase.n_seats, too */
};

/* What the environment asks for: TEST_WORKERS, TEST_EPOCHS, TEST_EXAMPLES, TEST_ITEM, TEST_UNTIL, TEST_DELAYS; else `standard`. */
uint64_t seeds_asked(enum seeds_knob knob, uint64_t standard);

/* Whether this mode is asked for (TEST_MODE; all are where it is not set). */
bool seeds_asks_for(const struct shmt_policy *policy);

/* Whether a run with so many workers is of the case's mode: a quorum of all is another. */
bool seeds_may_have(const struct kase *kase, uint64_t n_workers);

/* In a child: `all` calls `run` for each case; a failing one is tried again by `run`, 600 times at most, or TEST_TRIES. 0, or 1 when
 * one has failed. */
int seeds_search(void (*all)(void), void (*run)(const struct seeds_case *));

/* `run` is at this case now. */
void seeds_begin(const struct seeds_case *now);

/* Whether this delay, the next one, is to be made. */
bool seeds_delays(void);

/* The promise is broken. Not by cmocka: whoever finds it stands on a fiber's stack. */
_Noreturn void seeds_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
