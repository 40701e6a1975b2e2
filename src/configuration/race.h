/* Option `race-window`: how long racy pushes wait between loading and storing. A text to two numbers. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* "2us", "0.01:100us" into *ns_out and *share_out (1 where none is given); "": 0 ns. `given_as` is how the user
 * wrote the option. Errors: _USAGE; nothing is set then. */
int shmt_race_parse(const char *given_as, const char *text, uint64_t *ns_out, double *share_out, struct shmt_error *e);
