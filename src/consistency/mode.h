/* Modes: names for points of the consistency space.
 *
 * Each mode is a row in mode.c, which says in words what theory promises of it and makes it known to the options, the help, the man
 * page and `shmtrain compare`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "consistency/policy.h"

/* What the number behind a mode's name is: the 4 of "ssp:4". */
enum shmt_mode_number { SHMT_NUMBER_NONE, SHMT_NUMBER_STALENESS, SHMT_NUMBER_QUORUM, SHMT_NUMBER_MERGE_EVERY };

struct shmt_mode {
    const char *name;     /* "ssp" */
    const char *known_as; /* in the literature, in a few words */
    const char *about;    /* what it does, in at most 50 characters */
    struct shmt_policy policy;
    enum shmt_mode_number number;
    bool may_copy; /* a copy per worker that is merged damped is a matter of speed, and the mode the same */
};

/* That number of a point; 0: SHMT_NUMBER_NONE. */
uint64_t shmt_mode_number_of(const struct shmt_policy *policy, enum shmt_mode_number which);

/* Mode i, from 0; NULL behind the last. */
const struct shmt_mode *shmt_mode_at(size_t i);

/* The mode that "ssp" or "ssp:4" names, whatever the number says; NULL: none. */
const struct shmt_mode *shmt_mode_find(const char *text);

/* The point that "ssp" or "ssp:4" stands for. Errors: _USAGE with the names that there are, or what the number may be; `given_as`:
 * what the sentence begins with, as "mode". */
int shmt_mode_parse(const char *given_as, const char *text, struct shmt_policy *out, struct shmt_error *e);

/* What is named of a policy, in the place of what its mode says. */
void shmt_axes_take(const struct shmt_axes *axes, struct shmt_policy *policy);

/* The name of a point: the mode's of which at most the numbers differ, else its axes, as "racy, staleness 0". Where several
 * modes are that point, the one `asked_for` (as in shmt_mode_find; NULL: none) is it, else the first; but what was asked for as
 * a mode that chooses no copies does not get the name of one that does (`node` with one copy is `hogwild`). Written to `out`;
 * 64 bytes are enough. */
void shmt_mode_name(const struct shmt_policy *policy, const char *asked_for, char *out, size_t bytes);
