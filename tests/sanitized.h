/*
 * Whether a sanitizer that watches memory is built in. Tests that limit memory or address
 * space ask: these sanitizers map terabytes, and keep what was freed.
 */
#pragma once

#include "base/sanitizer.h"
#include "skip.h"

#define SANITIZED (SHMT_UNDER_TSAN || SHMT_UNDER_ASAN)

/* Races are looked for, which one worker alone has not, and which are not seen between processes: each has a sanitizer of its own. */
#define WATCHES_RACES SHMT_UNDER_TSAN

/* For cases that show what is learned, with long runs: all that these execute, others execute, too. */
#define SKIP_LEARNING_IF_SANITIZED()                                          \
    do {                                                                      \
        if (SANITIZED) SKIP("what is learned does not depend on sanitizers"); \
    } while (0)
