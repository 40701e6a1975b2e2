/* How often a checkpoint is written: what option checkpoint-every says. Pure. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* One of them is set, the others are 0. */
struct shmt_every {
    double seconds;
    uint64_t steps; /* of the run: in sync batches, else items */
    uint32_t epochs;
};

/* "60s", "5m", "1.5h", "1000", "1000 steps", "1 epoch". A time has a unit: a number alone is steps.
 * Errors: _USAGE. */
int shmt_every_parse(const char *given_as, const char *value, struct shmt_every *out, struct shmt_error *e);
