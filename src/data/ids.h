/* A set of feature ids, of any 64 bits, each with a number.
 *
 * Readers gather the ids that occur, one set each; joined (ids_join.h), they are numbered in ascending order, and that is how
 * data whose ids are too large or too far apart for a table gets its columns (columns.h). Called by whoever loads data, and by
 * the reader and the writer of model files. One thread adds; any number may look. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The most that a set can have: so many columns a table can. */
#define SHMT_IDS_MAX (UINT32_MAX - 1)

/* Begins as {0}. */
struct shmt_ids {
    uint64_t *id; /* (n) by number */
    uint32_t n;
    bool failed; /* there was no memory for one, or there were too many */
    uint64_t room;
    const uint64_t *from; /* the list of a source that is open, which they are; NULL: of none */
    uint32_t *slot;       /* (1 << slot_bits) number + 1, by hash with linear probing; 0: free */
    uint32_t slot_bits;
};

/* Adds an id, or finds it there. A set that cannot grow is marked as failed. */
void shmt_ids_add(struct shmt_ids *ids, uint64_t id);

/* The number of an id; UINT32_MAX: it is not there. */
uint32_t shmt_ids_find(const struct shmt_ids *ids, uint64_t id);

/* Takes an array by malloc (n), of distinct ids, which nothing can find until they are put. False: no memory, and the array is
 * the caller's as before. */
bool shmt_ids_own(struct shmt_ids *ids, uint64_t *id, uint32_t n);

/* Lets id number `number` be found. Any threads, each number once, before anybody looks. */
void shmt_ids_put(const struct shmt_ids *ids, uint32_t number);

/* Takes n ids that ascend, and are copied. Errors: _MEMORY; _DATA: they do not ascend. */
int shmt_ids_take(const uint64_t *id, uint64_t n, struct shmt_ids *out, struct shmt_error *e);

void shmt_ids_free(struct shmt_ids *ids); /* {0} is fine, and is what it is then */
