/* Option `slow`: who is slowed down, and how. Texts to plans. */
#pragma once

#include "base/error.h"
#include "ps/slow.h"

/* "3:5x,1:+2ms,random:0.1:10x" into *out; "": nobody. `given_as` is how the user wrote the option. Errors: _USAGE. */
int shmt_slow_parse(const char *given_as, const char *text, struct shmt_slow_plan *out, struct shmt_error *e);

/* Whether there are all those workers. Errors: _USAGE with the entry that names one too many. */
int shmt_slow_check(const struct shmt_slow_plan *plan, const char *text, uint32_t n_workers, struct shmt_error *e);
