/* Facts: what hosts must have alike, as lines "name=value" of a text, which can be held against those of another host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "link/agree.h"

#define SHMT_FACT_TEXT 160 /* room for a name, or for what is shown of a value */

struct shmt_facts {
    uint32_t n;
    bool full; /* something had no room */
    char text[SHMT_MOST_AGREED];
};

/* Adds a fact. Names are ours; of a value, what would break the line is replaced. */
void shmt_facts_add(struct shmt_facts *facts, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The first fact in which they differ. */
struct shmt_difference {
    char name[SHMT_FACT_TEXT], ours[SHMT_FACT_TEXT], theirs[SHMT_FACT_TEXT]; /* "none": one of them does not have it */
};

/* Whether they differ; `theirs` may be any n bytes. */
bool shmt_facts_differ(const struct shmt_facts *ours, const unsigned char *theirs, uint32_t n, struct shmt_difference *out);
