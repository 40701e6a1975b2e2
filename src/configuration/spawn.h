/* Option `spawn`: what workers are, and by which seed fibers run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/team.h"

struct shmt_spawn {
    const struct shmt_team_kind *kind; /* NULL: nobody has said anything, so processes */
    bool has_seed;                     /* else the run's is taken */
    uint64_t seed;
};

/* "processes", "threads", "fibers", "fibers:7". Errors: _USAGE. */
int shmt_spawn_parse(const char *given_as, const char *text, struct shmt_spawn *out, struct shmt_error *e);
