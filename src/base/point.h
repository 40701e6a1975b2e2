/* Points: places in the protocols, before and after words that others read, at which a test may end or stop the process. The
 * library has none of them: they are there only in those files that a test compiles once more with SHMT_POINTS
 * (tests/aim.c has the functions). */
#pragma once

#ifdef SHMT_POINTS
#    include <stdint.h>

void shmt_point(const char *name);
#    define SHMT_POINT(name) shmt_point(name)

/* What is about to be stored in a word that only grows; the test is told where it does not. */
void shmt_point_grows(const char *what, uint64_t before, uint64_t after);
#    define SHMT_GROWS(what, word, value) shmt_point_grows((what), load_relaxed(word), (value))
#else
#    define SHMT_POINT(name)              ((void)0)
#    define SHMT_GROWS(what, word, value) ((void)0)
#endif
